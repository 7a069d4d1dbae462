"""Which policies decide about a workload: those of its DeviceClass, else the controller's. Pure."""

from collections import OrderedDict
from collections.abc import Iterable

from driver import errors, names, reasons
from driver.scheduling.allocator import requests as allocator_requests
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.policies import mix_estimator, ranking, workload_mix
from driver.scheduling.snapshot import snapshot

_MAX_CHAINS = 16
_Key = tuple[str | None, workload_mix.WorkloadMix]


class PolicySelector:
    """Of one cluster. Whose classes differ in this, the class of the first request decides."""

    def __init__(self, default: ranking.PolicyChain) -> None:
        self._default = default
        self._estimator = mix_estimator.WorkloadMixEstimator(default.mix)
        self._chains: OrderedDict[_Key, ranking.PolicyChain] = OrderedDict()

    def select(
        self, view: snapshot.Snapshot, wants: Iterable[allocator_requests.RequestSpec]
    ) -> ranking.PolicyChain | allocator_types.Unschedulable:
        """The policies, with what is usually asked now; the same object as long as it is."""
        name, words = _class_policies(view, wants)
        now = self._estimator.estimate(view)
        found = self._chains.get((words, now))
        if found is None:
            try:
                found = (
                    self._default.with_mix(now)
                    if words is None
                    else ranking.parse_policies(words, now)
                )
            except errors.BadInput as error:
                where = f"DeviceClass {name}: annotation {names.POLICIES_ANNOTATION}"
                detail = f"{where}: {error.problem}; expected {error.expected}"
                return allocator_types.Unschedulable(reasons.Reason.CONFIG_INVALID, detail)
            self._chains[words, now] = found
        self._chains.move_to_end((words, now))
        while len(self._chains) > _MAX_CHAINS:
            self._chains.popitem(last=False)
        return found


def _class_policies(
    view: snapshot.Snapshot, wants: Iterable[allocator_requests.RequestSpec]
) -> tuple[str, str | None]:
    """The first class that orders its own policies, and what it says; None: no class does."""
    for want in wants:
        for way in want.subrequests:
            found = view.classes[way.request.device_class]
            if found.policies is not None:
                return found.name, found.policies
    return "", None
