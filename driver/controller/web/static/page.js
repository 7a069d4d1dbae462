// What markup alone cannot do: `/` goes to the filter, and a connection that is lost is told.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea");
  const filter = document.getElementById("filter");
  if (event.key !== "/" || typing || !filter || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  filter.focus();
  filter.select();
});
document.addEventListener("htmx:error", () => document.body.classList.add("alone"));
document.addEventListener("htmx:after:request", () => document.body.classList.remove("alone"));
