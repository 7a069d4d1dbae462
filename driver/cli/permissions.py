"""A right in words, and how kubectl is asked about it. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Right:
    """To do `verb` to a `resource`, which may name a subresource: `pods/eviction`."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        """`patch resourceclaims.resource.k8s.io/status -n team`."""
        plural, slash, below = self.resource.partition("/")
        return f"{self.verb} {self._of_group(plural)}{slash}{below}{self._within()}"

    @property
    def question(self) -> str:
        """`kubectl auth can-i patch resourceclaims.resource.k8s.io --subresource=status`."""
        plural, _, below = self.resource.partition("/")
        more = f" --subresource={below}" if below else ""
        return f"kubectl auth can-i {self.verb} {self._of_group(plural)}{more}{self._within()}"

    def _of_group(self, plural: str) -> str:
        return f"{plural}.{self.group}" if self.group else plural

    def _within(self) -> str:
        return f" -n {self.namespace}" if self.namespace else ""
