"""pack: fill nodes that are in use before opening fresh ones, so that whole nodes stay free."""

from driver.controller.allocation.policies import base


class Pack:
    """Scores the share of the node's GPUs that are in use once the workload is placed."""

    name = "pack"

    def score(self, candidate: base.Candidate) -> int:
        """The share in use after placing, in percent."""
        used = candidate.total - candidate.left
        return base.MAX_SCORE * used // max(candidate.total, 1)

    def explain(self, candidate: base.Candidate) -> str:
        """How full the node was, and is."""
        return (
            f"the fullest node that still fits: {candidate.free} of {candidate.total} GPUs "
            f"were free, {candidate.left} are left"
        )
