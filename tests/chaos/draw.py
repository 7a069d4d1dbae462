"""Schedule of faults, drawn from the seed: the same seed draws the same. Pure.

Faults come out of bags: of each kind a bag has as many as its weight, shuffled by the seed and the
bag's number. So a run of one bag has met every kind, and fault 300 is drawn without the others.
"""

import json
import random  # noqa: TID251 - the same every time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from driver import errors

NODES, GPUS = 2, 8
PAUSE_S = (0.3, 1.5)
"""Of calm before a fault."""


class Kind(StrEnum):
    """Kind of a fault."""

    PLUGIN_KILLED = "plugin-killed"
    SUPERVISOR_KILLED = "supervisor-killed"
    LEADER_KILLED = "leader-killed"
    STANDBY_KILLED = "standby-killed"
    KUBELET_KILLED = "kubelet-killed"
    CONTAINERD_KILLED = "containerd-killed"
    API_SERVER_KILLED = "apiserver-killed"
    ETCD_KILLED = "etcd-killed"
    SCHEDULER_KILLED = "scheduler-killed"
    CONTROLLER_MANAGER_KILLED = "controller-manager-killed"
    LEADER_FROZEN = "leader-frozen"
    STANDBY_FROZEN = "standby-frozen"
    PLUGIN_FROZEN = "plugin-frozen"
    SUPERVISOR_FROZEN = "supervisor-frozen"
    XID_FATAL = "xid-fatal"
    XID_HARMLESS = "xid-harmless"
    GPU_LOST = "gpu-lost"
    ECC = "ecc"
    NVML_SLOW = "nvml-slow"
    NVML_REFUSES = "nvml-refuses"
    MIG_REFUSED = "mig-refused"
    MPS_DIED = "mps-died"
    STATE_FULL = "state-full"
    CDI_FULL = "cdi-full"
    CDI_WIPED = "cdi-wiped"
    CLOCK_FORWARD = "clock-forward"
    CLOCK_BACK = "clock-back"
    NODE_REBOOTED = "node-rebooted"
    API_REFUSES = "api-refuses"
    API_DROPS = "api-drops"
    API_HALF_OPEN = "api-half-open"
    WATCHES_LIE = "watches-lie"
    LEADER_PARTITIONED = "leader-partitioned"
    PLUGIN_PARTITIONED = "plugin-partitioned"
    POD_FORCE_DELETED = "pod-force-deleted"
    CLAIM_RECREATED = "claim-recreated"


USUAL = 2
"""Weight of a kind that is soon over; of the others one."""
_RARE = frozenset(
    {
        *(Kind.LEADER_KILLED, Kind.LEADER_FROZEN, Kind.LEADER_PARTITIONED),
        *(Kind.KUBELET_KILLED, Kind.API_SERVER_KILLED, Kind.ETCD_KILLED, Kind.NODE_REBOOTED),
    }
)
_LASTS_S: Mapping[Kind, tuple[float, float]] = {
    Kind.LEADER_FROZEN: (14.0, 20.0),
    Kind.LEADER_PARTITIONED: (14.0, 20.0),
    Kind.STANDBY_FROZEN: (2.0, 6.0),
    Kind.PLUGIN_FROZEN: (2.0, 6.0),
    Kind.PLUGIN_PARTITIONED: (2.0, 8.0),
    Kind.SUPERVISOR_FROZEN: (2.0, 6.0),
    Kind.API_HALF_OPEN: (2.0, 4.0),
}
_BRIEF_S = (1.0, 4.0)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: what, on which node and GPU where that matters, for how long.

    `seed` is for what it draws by itself: which pod, which request of the API.
    """

    number: int
    kind: Kind
    node: int
    gpu: int
    seconds: float
    pause_s: float
    seed: int


def faults(seed: int, among: Collection[Kind], first: int = 0) -> Iterator[Fault]:
    """Faults from number `first` on, without end; none where there are no kinds."""
    bag = [kind for kind in Kind if kind in among for _ in range(1 if kind in _RARE else USUAL)]
    number = first
    while bag:
        shuffled = random.Random(f"{seed}/bag/{number // len(bag)}").sample(bag, len(bag))  # noqa: S311 - no secret
        yield _fault(seed, number, shuffled[number % len(bag)])
        number += 1


def _fault(seed: int, number: int, kind: Kind) -> Fault:
    numbers = random.Random(f"{seed}/fault/{number}")  # noqa: S311 - no secret
    return Fault(
        number=number,
        kind=kind,
        node=numbers.randrange(NODES),
        gpu=numbers.randrange(GPUS),
        seconds=round(numbers.uniform(*_LASTS_S.get(kind, _BRIEF_S)), 2),
        pause_s=round(numbers.uniform(*PAUSE_S), 2),
        seed=numbers.randrange(1 << 31),
    )


def render(results: Iterable[Fault]) -> str:
    """One line of JSON a fault: what `parse` reads."""
    return "".join(f"{json.dumps(asdict(result))}\n" for result in results)


def parse(text: str, location: str) -> tuple[Fault, ...]:
    """Faults as `render` wrote them. Raises BadInput, with the line."""
    results = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            raw = json.loads(line)
            results.append(Fault(**{**raw, "kind": Kind(raw["kind"])}))
        except (ValueError, TypeError, KeyError) as error:
            problem = f"is no fault: {error}"
            expected = "a line that a run has written: faults.jsonl"
            raise errors.BadInput(f"{location}:{number}", problem, expected) from error
    return tuple(results)


def kinds(text: str) -> frozenset[Kind]:
    """Kinds by their names, with commas between. Raises BadInput."""
    names = [word.strip() for word in text.split(",") if word.strip()]
    wrong = [name for name in names if name not in set(Kind)]
    if wrong or not names:
        raise errors.BadInput("--only", f"{', '.join(wrong) or 'nothing'}", ", ".join(Kind))
    return frozenset(Kind(name) for name in names)
