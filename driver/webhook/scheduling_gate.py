"""The scheduling gate of a new pod whose claims the controller allocates (D2). Pure.

Behind it kube-scheduler does not try the pod before its claims are allocated: such a try is in
vain, and leaves the warning FailedScheduling on a pod that starts a moment later.
"""

from collections.abc import Iterable, Mapping

from driver import names
from driver.resources import fields
from driver.webhook.validation import configs, opaque


def gate_patch(
    pod: fields.Raw, parts: Iterable[opaque.ConfigPart], classes: configs.ClusterFacts
) -> tuple[Mapping[str, object], ...]:
    """The JSON patch that gates a pod; none where nothing it asks is surely our driver's.

    `parts` are all claims and templates that the pod names.

    Raises:
        BadInput: a field has another type than the API's.
    """
    spec = fields.mapping(pod, "spec")
    gates = [gate.get("name") for _, gate in fields.objects(spec, "schedulingGates", "spec")]
    if fields.text(spec, "nodeName", "spec") or names.ALLOCATION_GATE in gates:
        return ()
    if not any(_asks_ours(part, classes) for part in parts):
        return ()
    entry = {"name": names.ALLOCATION_GATE}
    if "schedulingGates" in spec:
        return ({"op": "add", "path": "/spec/schedulingGates/-", "value": entry},)
    return ({"op": "add", "path": "/spec/schedulingGates", "value": [entry]},)


def _asks_ours(part: opaque.ConfigPart, classes: configs.ClusterFacts) -> bool:
    """Tell whether a request demands our driver; one that leaves the driver open does not."""
    ways = (
        way for request in configs.parse_requests(part) for way in classes.candidate_ways(request)
    )
    return any(way.is_named for way in ways)
