"""Chain of policies: a later one decides only where earlier ones score equally."""

from collections.abc import Hashable, Mapping, Sequence

from driver import errors
from driver.scheduling.allocator import policies
from driver.scheduling.allocator.policies import base, workload_mix

Scores = tuple[int, ...]
"""One score per policy, higher is better."""


class PolicyChain:
    """The deciding policies, in order."""

    def __init__(
        self, ordered: Sequence[base.Policy], mix: workload_mix.WorkloadMix = workload_mix.EMPTY_MIX
    ) -> None:
        self._policies = tuple(ordered)
        self._mix = mix

    @property
    def mix(self) -> workload_mix.WorkloadMix:
        """Workload mix of the policies."""
        return self._mix

    def with_mix(self, mix: workload_mix.WorkloadMix) -> "PolicyChain":
        """Return the same policies with another mix."""
        chain = (policies.POLICIES[policy.name](mix) for policy in self._policies)
        return PolicyChain([*chain], mix)

    def scores_by_name(self, scores: Scores) -> Mapping[str, int]:
        """Return the score of each policy by its name."""
        return {policy.name: score for policy, score in zip(self._policies, scores, strict=True)}

    def cpu_step(self, cpu: int, remaining: int) -> Hashable:
        """Return a value equal for milli CPUs that no policy distinguishes.

        For a node with at most `remaining` thousandths of GPUs left.
        """
        return self._mix.cpu_step(cpu, remaining)

    @property
    def has_policies(self) -> bool:
        """True if there is any policy."""
        return bool(self._policies)

    @property
    def count(self) -> int:
        """Number of policies."""
        return len(self._policies)

    def score(self, policy: int, candidate: base.Candidate) -> int:
        """Return the score of one policy, by its index."""
        return self._policies[policy].score(candidate)

    def scores(self, candidate: base.Candidate) -> Scores:
        """Return the score of each policy."""
        return tuple(policy.score(candidate) for policy in self._policies)

    def explain_choice(self, candidate: base.Candidate, own: Scores, rival: Scores | None) -> str:
        """Return why a candidate was preferred to another node's, by the policy that decided.

        Both by their `scores`. If all are equal the last policy explains. None: no other node fits.
        """
        if rival is None:
            return "the only node that fits"
        deciding_policies = (
            policy for policy, a, b in zip(self._policies, own, rival, strict=True) if a != b
        )
        order = [*deciding_policies, *reversed(self._policies)]
        return next(
            filter(None, (policy.explain(candidate) for policy in order)), "the first by name"
        )


def parse_policies(
    text: str, mix: workload_mix.WorkloadMix = workload_mix.DEFAULT_MIX
) -> PolicyChain:
    """Return the policies of `topology,pack`, in that order; "": none. Raises BadInput."""
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    unknown = [name for name in names if name not in policies.POLICIES]
    if unknown:
        valid = ", ".join(sorted(policies.POLICIES))
        raise errors.BadInput("policies", f"{unknown[0]!r} is no policy", f"some of {valid}")
    return PolicyChain([policies.POLICIES[name](mix) for name in dict.fromkeys(names)], mix)
