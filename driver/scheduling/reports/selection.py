"""Selection of a part of a list, and of nodes. Pure."""

from dataclasses import dataclass

from driver.scheduling.reports import model, paging


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Part of a list: what follows the key `after`, at most `limit`."""

    after: str = ""
    limit: int = paging.DEFAULT_LIMIT


ALL = PageRequest(limit=paging.MAX_LIMIT)


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """Filter of nodes: those with a GPU that has all of it; "" for any.

    `name` is a part of the node's name, `mode` one of `model.Mode` or "free", `health` one of
    `model.Health`.
    """

    name: str = ""
    product: str = ""
    mode: str = ""
    health: str = ""

    def matches(self, node: model.Node) -> bool:
        """Return whether a node is selected."""
        return self.name in node.name and (
            not (self.product or self.mode or self.health)
            or any(self.matches_gpu(gpu) for gpu in node.gpus)
        )

    def matches_gpu(self, gpu: model.Gpu) -> bool:
        """Return whether a GPU matches all of it, whatever its node's name."""
        return (
            self.product in {"", gpu.product}
            and self.mode in {"", gpu.mode}
            and self.health in {"", gpu.health}
        )


ANY = NodeFilter()
"""Every node."""
