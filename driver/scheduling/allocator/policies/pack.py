"""pack and spread: how many GPUs of a node are in use."""

from driver.scheduling.allocator.policies import base

_HALF = base.MAX_SCORE // 2


class Pack:
    """Opens no GPU where one in use has room, and no node where one in use has.

    So whole GPUs and whole nodes stay free.
    """

    name = "pack"

    def score(self, candidate: base.Candidate) -> int:
        """Half for opening no GPU, up to half for how many of the node's were in use before."""
        room, total = candidate.before, max(len(candidate.before.gpus), 1)
        opens = candidate.after.idle_gpus < room.idle_gpus
        return (0 if opens else _HALF) + _HALF * (total - room.idle_gpus) // total

    def explain(self, candidate: base.Candidate) -> str:
        """How full the node was, and is."""
        return f"the fullest node that still fits: {_idle_counts(candidate)}"


class Spread:
    """The opposite of pack: neighbours are few as long as there is room."""

    name = "spread"

    def score(self, candidate: base.Candidate) -> int:
        """As much as pack dislikes it."""
        return base.MAX_SCORE - Pack().score(candidate)

    def explain(self, candidate: base.Candidate) -> str:
        """How full the node was, and is."""
        return f"the emptiest node: {_idle_counts(candidate)}"


def _idle_counts(candidate: base.Candidate) -> str:
    return (
        f"{candidate.before.idle_gpus} of {len(candidate.before.gpus)} GPUs were free, "
        f"{candidate.after.idle_gpus} are left"
    )
