"""Which pods make up which gang, and what a gang asks for as a whole. Pure.

Pods say it by the label `ration.dev/gang` and the annotation `ration.dev/gang-size`, or name a
PodGroup, which says how many have to run at once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from driver import errors, ids, names
from driver.api import crd
from driver.resources import pod_groups
from driver.resources.core import pods
from driver.scheduling.gangs import topology

TIMEOUT_S = 120.0
"""How long a gang has to be bound, once its devices are written."""
_MAX_SIZE = 4096
_ANYWHERE = topology.Topology()


@dataclass(frozen=True, slots=True)
class Gang:
    """The live pods of a gang, by name; `wanted` of them have to run at once.

    With `exact` there are to be no more than that.
    """

    key: ids.Key
    members: tuple[pods.Pod, ...]
    min_members: int
    is_exact: bool = True
    topology_request: topology.Topology = _ANYWHERE
    timeout_s: float = TIMEOUT_S

    @property
    def priority(self) -> int:
        """The highest of its members."""
        return max(one.priority for one in self.members)

    @property
    def created(self) -> str:
        """When its first member was made (RFC 3339)."""
        return min(one.created for one in self.members)


def gang_key(pod: pods.Pod) -> ids.Key | None:
    """The key of a pod's gang, `namespace/name`; None for one that is in none."""
    return ids.Key(f"{pod.namespace}/{pod.gang}") if pod.gang else None


class GangIndex:
    """Kept by the changes of pods."""

    def __init__(self) -> None:
        self._members: dict[ids.Key, dict[ids.Key, pods.Pod]] = {}
        self._gangs: dict[ids.Key, ids.Key] = {}

    def __len__(self) -> int:
        """How many gangs have live pods."""
        return len(self._members)

    def set_pod(self, key: ids.Key, pod: pods.Pod | None) -> None:
        """A pod came, changed or went; one that ended or ends does not count."""
        before = self._gangs.pop(key, None)
        if before is not None:
            there = self._members[before]
            there.pop(key, None)
            if not there:
                del self._members[before]
        gang = gang_key(pod) if pod is not None and not pod.finished and not pod.deleting else None
        if gang is not None and pod is not None:
            self._gangs[key] = gang
            self._members.setdefault(gang, {})[key] = pod

    def members(self, gang: ids.Key) -> tuple[pods.Pod, ...]:
        """The live pods of a gang, by name."""
        return tuple(pod for _, pod in sorted(self._members.get(gang, {}).items()))


def read_gang(
    key: ids.Key, members: Sequence[pods.Pod], group: pod_groups.PodGroup | None
) -> Gang | None:
    """A gang of its live pods; None where its PodGroup wants no gang.

    Raises:
        BadInput: what the pods or the group say of it makes no gang; the path is in the pods.
    """
    said = _declared_size(members)
    if said is None and group is None:
        where = f"metadata.annotations[{names.GANG_SIZE}]"
        expected = "how many pods the gang has, or a PodGroup of its name"
        raise errors.BadInput(where, f"gang {key} does not say its size", expected)
    if said is None and group is not None and group.least < 1:
        return None
    wanted = said if said is not None else group.least if group else 0
    if said is not None and len(members) > said:
        where = f"metadata.annotations[{names.GANG_SIZE}]"
        problem = f"{said} is below the {len(members)} pods that gang {key} has"
        raise errors.BadInput(where, problem, f"{len(members)}, or fewer pods")
    near = _topology(members)
    return Gang(key, tuple(members), wanted, said is not None, near, _timeout_s(members))


def _declared_size(members: Sequence[pods.Pod]) -> int | None:
    where = f"metadata.annotations[{names.GANG_SIZE}]"
    text = _common_value(where, (one.gang_size for one in members))
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _MAX_SIZE:
        raise errors.BadInput(where, f"{text!r} is no size", f"a number from 1 to {_MAX_SIZE}")
    return int(text)


def _topology(members: Sequence[pods.Pod]) -> topology.Topology:
    required, preferred = (
        _common_value(f"metadata.annotations[{key}]", (one.asks.get(key, "") for one in members))
        for key in (names.TOPOLOGY_REQUIRED, names.TOPOLOGY_PREFERRED)
    )
    levels = tuple(one for one in (required, preferred) if one)
    if required and required == preferred:
        levels, preferred = (required,), ""
    return topology.Topology(levels, required or None, preferred or None)


def _timeout_s(members: Sequence[pods.Pod]) -> float:
    where = f"metadata.annotations[{names.GANG_TIMEOUT}]"
    text = _common_value(where, (one.asks.get(names.GANG_TIMEOUT, "") for one in members))
    try:
        return crd.seconds(text) or TIMEOUT_S
    except ValueError as error:
        raise errors.BadInput(where, str(error)) from error


def _common_value(where: str, found: Iterable[str]) -> str:
    """What all of them say; those that say nothing agree."""
    said = sorted({one for one in found if one})
    if len(said) > 1:
        listed = ", ".join(repr(one) for one in said)
        raise errors.BadInput(where, f"pods of one gang say {listed}", "one value")
    return said[0] if said else ""
