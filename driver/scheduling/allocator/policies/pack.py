"""pack and spread: how many GPUs of a node are in use."""

from driver.scheduling.allocator.policies import base

_HALF = base.MAX_SCORE // 2


class Pack:
    """Uses no idle GPU while one in use has room, and no idle node while one in use has.

    This keeps whole GPUs and whole nodes free.
    """

    name = "pack"

    def score(self, candidate: base.Candidate) -> int:
        """Return half for using no idle GPU, and up to half for the node's GPUs in use before."""
        capacity, total = candidate.before, max(len(candidate.before.gpus), 1)
        opens = candidate.after.idle_gpus < capacity.idle_gpus
        return (0 if opens else _HALF) + _HALF * (total - capacity.idle_gpus) // total

    def explain(self, candidate: base.Candidate) -> str:
        """Return the idle GPUs before and after."""
        return f"the fullest node that still fits: {_idle_counts(candidate)}"


class Spread:
    """The opposite of pack: few neighbours as long as there is room."""

    name = "spread"

    def score(self, candidate: base.Candidate) -> int:
        """Return the inverse of pack's score."""
        return base.MAX_SCORE - Pack().score(candidate)

    def explain(self, candidate: base.Candidate) -> str:
        """Return the idle GPUs before and after."""
        return f"the emptiest node: {_idle_counts(candidate)}"


def _idle_counts(candidate: base.Candidate) -> str:
    return (
        f"{candidate.before.idle_gpus} of {len(candidate.before.gpus)} GPUs were free, "
        f"{candidate.after.idle_gpus} are left"
    )
