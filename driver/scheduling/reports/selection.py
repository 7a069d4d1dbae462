"""Which part of a list is asked for, and which nodes. Pure."""

from dataclasses import dataclass

from driver.scheduling.reports import model, paging


@dataclass(frozen=True, slots=True)
class Part:
    """Which part of a list: what follows the key `after`, at most `limit`."""

    after: str = ""
    limit: int = paging.USUAL


ALL = Part(limit=paging.MOST)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which nodes: those with a GPU that is all of it; "" for any.

    `name` is a part of the node's name, `mode` one of `model.Mode` or "free", `health` one of
    `model.Health`.
    """

    name: str = ""
    product: str = ""
    mode: str = ""
    health: str = ""

    def has(self, one: model.Node) -> bool:
        """Whether a node is wanted."""
        return self.name in one.name and (
            not (self.product or self.mode or self.health)
            or any(self.fits(gpu) for gpu in one.gpus)
        )

    def fits(self, gpu: model.Gpu) -> bool:
        """Whether a GPU is all of it, whatever its node's name."""
        return (
            self.product in {"", gpu.product}
            and self.mode in {"", gpu.mode}
            and self.health in {"", gpu.health}
        )


ANY = Wanted()
"""Every node."""
