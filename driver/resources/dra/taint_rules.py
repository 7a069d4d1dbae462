"""DeviceTaintRules: taints that administrators and monitors put on devices from outside (KEP-5055).

kube-scheduler sees slices with the rules laid over them, so our own picture must too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from driver import names
from driver.resources import fields
from driver.resources.dra import slices

_EVICTION = "EvictionInProgress"
"""Condition that kube-controller-manager sets on every rule, whatever its effect (KEP-5055)."""


@dataclass(frozen=True, slots=True)
class TaintRule:
    """A taint for the devices that every given name fits; None fits all of them.

    `selects` is false without a selector: such a rule is for no device at all. `is_allocator_rule`:
    the controller made it to be the allocator of the devices. `fence` is the field manager of the
    term that wrote it last. `observed`: kube-controller-manager has written a condition, as it does
    for every rule while the feature gate DRADeviceTaintRules is on.
    """

    name: str
    taint: slices.Taint
    selects: bool
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    uid: str = ""
    generation: int = 0
    is_allocator_rule: bool = False
    fence: str = field(default="", compare=False)
    observed: bool = field(default=False, compare=False)
    version: str = field(default="", compare=False)

    def may_apply(self, resource_slice: slices.Slice) -> bool:
        """Return whether the rule may apply to a device of the slice."""
        return (
            self.selects
            and self.driver in (None, resource_slice.driver)
            and self.pool in (None, resource_slice.pool)
        )


def parse(obj: fields.Raw) -> TaintRule:
    """Read a DeviceTaintRule. Raises BadInput."""
    meta = fields.mapping(obj, "metadata")
    spec = fields.mapping(obj, "spec")
    selector = fields.mapping(spec, "deviceSelector", "spec")
    labels = fields.text_map(meta, "labels", "metadata")
    status = fields.mapping(obj, "status")
    return TaintRule(
        name=fields.required_text(meta, "name", "metadata"),
        taint=slices.parse_taint(fields.mapping(spec, "taint", "spec"), "spec.taint"),
        selects=spec.get("deviceSelector") is not None,
        driver=fields.text(selector, "driver", "spec.deviceSelector") or None,
        pool=fields.text(selector, "pool", "spec.deviceSelector") or None,
        device=fields.text(selector, "device", "spec.deviceSelector") or None,
        uid=fields.text(meta, "uid", "metadata"),
        generation=fields.integer(meta, "generation", "metadata"),
        is_allocator_rule=labels.get(names.ALLOCATOR_RULE) == "true",
        fence=fields.text_map(meta, "annotations", "metadata").get(names.FENCE, ""),
        observed=any(
            condition.get("type") == _EVICTION
            for _, condition in fields.objects(status, "conditions", "status")
        ),
        version=fields.text(meta, "resourceVersion", "metadata"),
    )


def managed_drivers(rules: Iterable[TaintRule]) -> frozenset[str]:
    """Return the drivers beside ours whose devices the controller allocates, by its rules."""
    drivers = (rule.driver for rule in rules if rule.is_allocator_rule)
    return frozenset(driver for driver in drivers if driver is not None)


def apply_rules(
    resource_slices: Iterable[slices.Slice], rules: Iterable[TaintRule]
) -> Iterable[slices.Slice]:
    """The slices with the taints of the rules beside their devices' own."""
    taint_rules = sorted(rules, key=lambda rule: rule.name)
    for resource_slice in resource_slices:
        mine = [rule for rule in taint_rules if rule.may_apply(resource_slice)]
        yield _with(resource_slice, mine) if mine else resource_slice


def _with(resource_slice: slices.Slice, rules: Sequence[TaintRule]) -> slices.Slice:
    devices = tuple(
        replace(device, taints=(*device.taints, *more))
        if (more := tuple(r.taint for r in rules if r.device in (None, device.name)))
        else device
        for device in resource_slice.devices
    )
    return replace(resource_slice, devices=devices)
