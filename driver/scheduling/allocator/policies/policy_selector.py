"""Policies of a workload: those of its DeviceClass, else the controller's. Pure."""

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
    """Selector for one cluster. If classes differ, the class of the first request decides."""

    def __init__(self, default: ranking.PolicyChain) -> None:
        self._default = default
        self._estimator = mix_estimator.WorkloadMixEstimator(default.mix)
        self._chains: OrderedDict[_Key, ranking.PolicyChain] = OrderedDict()

    def prepare(self, view: snapshot.Snapshot) -> None:
        """Read the nodes that the mix depends on, ahead of the first decision."""
        self._estimator.estimate(view)

    def select(
        self, view: snapshot.Snapshot, specs: Iterable[allocator_requests.RequestSpec]
    ) -> ranking.PolicyChain | allocator_types.Unschedulable:
        """Return the policies with the current mix; the same object while it does not change."""
        name, policies_text = _class_policies(view, specs)
        mix = self._estimator.estimate(view)
        chain = self._chains.get((policies_text, mix))
        if chain is None:
            try:
                chain = (
                    self._default.with_mix(mix)
                    if policies_text is None
                    else ranking.parse_policies(policies_text, mix)
                )
            except errors.BadInput as error:
                source = f"DeviceClass {name}: annotation {names.POLICIES_ANNOTATION}"
                detail = f"{source}: {error.problem}; expected {error.expected}"
                return allocator_types.Unschedulable(reasons.Reason.CONFIG_INVALID, detail)
            self._chains[policies_text, mix] = chain
        self._chains.move_to_end((policies_text, mix))
        while len(self._chains) > _MAX_CHAINS:
            self._chains.popitem(last=False)
        return chain


def _class_policies(
    view: snapshot.Snapshot, specs: Iterable[allocator_requests.RequestSpec]
) -> tuple[str, str | None]:
    """Return the first class with policies of its own, and their text; None without one."""
    for spec in specs:
        for subrequest in spec.subrequests:
            device_class = view.classes[subrequest.request.device_class]
            if device_class.policies is not None:
                return device_class.name, device_class.policies
    return "", None
