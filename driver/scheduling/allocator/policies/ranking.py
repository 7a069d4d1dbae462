"""Policies in their order: a later one decides only where the earlier ones see no difference."""

from collections.abc import Hashable, Mapping, Sequence

from driver import errors
from driver.scheduling.allocator import policies
from driver.scheduling.allocator.policies import base, workload_mix

Scores = tuple[int, ...]
"""One a policy, higher is better."""


class PolicyChain:
    """The policies that decide, the first one first."""

    def __init__(
        self, found: Sequence[base.Policy], usual: workload_mix.WorkloadMix = workload_mix.EMPTY_MIX
    ) -> None:
        self._policies = tuple(found)
        self._mix = usual

    @property
    def mix(self) -> workload_mix.WorkloadMix:
        """What is usually asked, as the policies know it."""
        return self._mix

    def with_mix(self, usual: workload_mix.WorkloadMix) -> "PolicyChain":
        """The same policies, where something else is usually asked."""
        made = (policies.POLICIES[one.name](usual) for one in self._policies)
        return PolicyChain([*made], usual)

    def scores_by_name(self, scores: Scores) -> Mapping[str, int]:
        """What each policy said, by its name."""
        return {one.name: score for one, score in zip(self._policies, scores, strict=True)}

    def cpu_step(self, room: base.NodeCapacity, cpu: int) -> Hashable:
        """The same for amounts of CPU between which no policy sees a difference, in a room."""
        return self._mix.cpu_step(cpu, room.remaining)

    @property
    def has_policies(self) -> bool:
        """Whether there is any policy."""
        return bool(self._policies)

    @property
    def count(self) -> int:
        """How many policies there are."""
        return len(self._policies)

    def score(self, policy: int, candidate: base.Candidate) -> int:
        """What one of them says of a candidate, called by its place."""
        return self._policies[policy].score(candidate)

    def scores(self, candidate: base.Candidate) -> Scores:
        """What each policy says of a candidate."""
        return tuple(one.score(candidate) for one in self._policies)

    def explain_choice(self, candidate: base.Candidate, own: Scores, rival: Scores | None) -> str:
        """Why a candidate was preferred to another node's, in the words of the policy that decided.

        Both by their `scores`. Where all score the two alike the last policy speaks. None: no other
        node fits.
        """
        if rival is None:
            return "the only node that fits"
        deciding = (one for one, a, b in zip(self._policies, own, rival, strict=True) if a != b)
        order = [*deciding, *reversed(self._policies)]
        return next(filter(None, (one.explain(candidate) for one in order)), "the first by name")


def parse_policies(
    words: str, usual: workload_mix.WorkloadMix = workload_mix.DEFAULT_MIX
) -> PolicyChain:
    """The policies named, `topology,pack`, in that order; "": none. Raises BadInput."""
    names = [one.strip() for one in words.split(",")] if words.strip() else []
    wrong = [one for one in names if one not in policies.POLICIES]
    if wrong:
        known = ", ".join(sorted(policies.POLICIES))
        raise errors.BadInput("policies", f"{wrong[0]!r} is no policy", f"some of {known}")
    return PolicyChain([policies.POLICIES[one](usual) for one in dict.fromkeys(names)], usual)
