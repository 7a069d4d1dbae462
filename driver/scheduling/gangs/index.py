"""Gang membership, and the requirements of a gang as a whole. Pure.

Pods declare it by the label `ration.dev/gang` and the annotation `ration.dev/gang-size`, or name a
PodGroup with the number of pods that have to run at once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from driver import errors, ids, names
from driver.api import crd
from driver.resources import pod_groups
from driver.resources.core import pods
from driver.scheduling.gangs import topology

TIMEOUT_S = 120.0
"""Time for a gang to be bound, once its devices are written."""
_MAX_SIZE = 4096
_ANYWHERE = topology.Topology()
_NATIVE_GROUPS = "of Kubernetes' own with controller.podGroups"


@dataclass(frozen=True, slots=True)
class Gang:
    """The live pods of a gang, by name; at least `min_members` have to run at once.

    With `is_exact` there are to be no more than that.
    """

    key: ids.Key
    members: tuple[pods.Pod, ...]
    min_members: int
    is_exact: bool = True
    topology_request: topology.Topology = _ANYWHERE
    timeout_s: float = TIMEOUT_S

    @property
    def priority(self) -> int:
        """Highest priority of its members."""
        return max(member.priority for member in self.members)

    @property
    def created(self) -> str:
        """Creation time of its first member (RFC 3339)."""
        return min(member.created for member in self.members)


def gang_key(pod: pods.Pod) -> ids.Key | None:
    """Return the key of a pod's gang, `namespace/name`; None without a gang."""
    return ids.Key(f"{pod.namespace}/{pod.gang}") if pod.gang else None


class GangIndex:
    """Index of gang members, fed with every pod."""

    def __init__(self) -> None:
        self._members: dict[ids.Key, dict[ids.Key, pods.Pod]] = {}
        self._gangs: dict[ids.Key, ids.Key] = {}

    def __len__(self) -> int:
        """Number of gangs with live pods."""
        return len(self._members)

    def set_pod(self, key: ids.Key, pod: pods.Pod | None) -> None:
        """Set or delete a pod; finished and terminating pods do not count."""
        previous = self._gangs.pop(key, None)
        if previous is not None:
            members = self._members[previous]
            members.pop(key, None)
            if not members:
                del self._members[previous]
        gang = gang_key(pod) if pod is not None and not pod.finished and not pod.deleting else None
        if gang is not None and pod is not None:
            self._gangs[key] = gang
            self._members.setdefault(gang, {})[key] = pod

    def members(self, gang: ids.Key) -> tuple[pods.Pod, ...]:
        """Return the live pods of a gang, by name."""
        return tuple(pod for _, pod in sorted(self._members.get(gang, {}).items()))


def read_gang(
    key: ids.Key, members: Sequence[pods.Pod], group: pod_groups.PodGroup | None
) -> Gang | None:
    """Return the gang of some live pods; None if its PodGroup requires no gang.

    A PodGroup's topology constraint is a required level, as the annotation's.

    Raises:
        BadInput: the pods or the group are no valid gang; the path is in the pods.
    """
    size = _declared_size(members)
    if size is None and group is None:
        path = f"metadata.annotations[{names.GANG_SIZE}]"
        expected = "how many pods the gang has, or a PodGroup of its name"
        if any(member.pod_group for member in members):
            expected += f" ({_NATIVE_GROUPS})"
        raise errors.BadInput(path, f"gang {key} does not say its size", expected)
    if group is not None:
        _check_group(members, group)
    if size is None and group is not None and group.min_members < 1:
        return None
    min_members = size if size is not None else group.min_members if group else 0
    if size is not None and len(members) > size:
        path = f"metadata.annotations[{names.GANG_SIZE}]"
        problem = f"{size} is below the {len(members)} pods that gang {key} has"
        raise errors.BadInput(path, problem, f"{len(members)}, or fewer pods")
    topology_request = _topology(members, group.topology_key if group else "")
    return Gang(
        key, tuple(members), min_members, size is not None, topology_request, _timeout_s(members)
    )


def _check_group(members: Sequence[pods.Pod], group: pod_groups.PodGroup) -> None:
    """Refuse what kube-scheduler would leave pending, or what is not supported here."""
    path = "spec.schedulingGroup.podGroupName"
    native = [member for member in members if member.pod_group == group.name]
    if not native:
        return
    if group.parent:
        problem = f"PodGroup {group.name} belongs to CompositePodGroup {group.parent}"
        expected = "a PodGroup without parentCompositePodGroupName: these are not supported"
        raise errors.BadInput(path, problem, expected)
    for member in native:
        if group.priority is not None and member.priority != group.priority:
            problem = (
                f"PodGroup {group.name} has the priority {group.priority}, pod {member.name} "
                f"{member.priority}"
            )
            raise errors.BadInput(path, problem, "one priorityClassName in the group and its pods")
    if group.topology_key and group.min_members < 1:
        problem = f"PodGroup {group.name} has a topology constraint, and no gang policy"
        raise errors.BadInput(path, problem, "schedulingPolicy.gang beside schedulingConstraints")


def _declared_size(members: Sequence[pods.Pod]) -> int | None:
    path = f"metadata.annotations[{names.GANG_SIZE}]"
    text = _common_value(path, (member.gang_size for member in members))
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _MAX_SIZE:
        raise errors.BadInput(path, f"{text!r} is no size", f"a number from 1 to {_MAX_SIZE}")
    return int(text)


def _topology(members: Sequence[pods.Pod], group_key: str) -> topology.Topology:
    """Return the levels that the pods name; `group_key` is that of their PodGroup, "" for none."""
    required, preferred = (
        _common_value(
            f"metadata.annotations[{key}]",
            (member.scheduling_annotations.get(key, "") for member in members),
        )
        for key in (names.TOPOLOGY_REQUIRED, names.TOPOLOGY_PREFERRED)
    )
    if group_key and required not in {"", group_key}:
        path = f"metadata.annotations[{names.TOPOLOGY_REQUIRED}]"
        problem = f"the pods say {required!r}, their PodGroup {group_key!r}"
        raise errors.BadInput(path, problem, "one value")
    required = required or group_key
    levels = tuple(member for member in (required, preferred) if member)
    if required and required == preferred:
        levels, preferred = (required,), ""
    return topology.Topology(levels, required or None, preferred or None)


def _timeout_s(members: Sequence[pods.Pod]) -> float:
    path = f"metadata.annotations[{names.GANG_TIMEOUT}]"
    text = _common_value(
        path, (member.scheduling_annotations.get(names.GANG_TIMEOUT, "") for member in members)
    )
    try:
        return crd.seconds(text) or TIMEOUT_S
    except ValueError as error:
        raise errors.BadInput(path, str(error)) from error


def _common_value(path: str, texts: Iterable[str]) -> str:
    """Return the value of all that have one; raise BadInput if they differ."""
    values = sorted({text for text in texts if text})
    if len(values) > 1:
        listed = ", ".join(repr(text) for text in values)
        raise errors.BadInput(path, f"pods of one gang say {listed}", "one value")
    return values[0] if values else ""
