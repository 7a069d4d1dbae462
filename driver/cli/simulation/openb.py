"""The public Alibaba trace `openb` (2023) as nodes and pods of a cluster. Pure.

Its nodes have whole GPUs; a pod asks some of them, or so many thousandths of one. Each GPU is
published whole and as an MPS face of a thousand parts, as the kubelet plugin would.
"""

import csv
import functools
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from driver import errors, ids, names
from driver.cli.simulation import replay
from driver.resources.core import nodes, pods
from driver.resources.dra import claims, device_classes, slices
from driver.scheduling.snapshot import cluster_state

Raw = dict[str, Any]
FULL = 1000
"""A whole GPU."""
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
TIME_COLUMNS = ("creation_time", "deletion_time", "scheduled_time")
_TAINT = {"key": names.ALLOCATOR_TAINT, "value": "controller", "effect": "NoSchedule"}
_MOST_GPUS = 64


class Node(NamedTuple):
    """CPU in milli, memory in MiB."""

    name: str
    cpu: int
    memory: int
    gpus: int
    model: str


class Pod(NamedTuple):
    """Requests of a pod: `gpus` of `milli` thousandths each, of one of `models` if given."""

    cpu: int
    memory: int
    gpus: int
    milli: int
    models: tuple[str, ...]

    @property
    def demand(self) -> int:
        """GPU thousandths."""
        return self.gpus * self.milli


@dataclass(frozen=True, slots=True)
class PodRow:
    """A line of a pod list; times are in seconds, None where they are not told."""

    name: str
    pod: Pod
    created: float | None = None
    deleted: float | None = None
    scheduled: float | None = None

    @property
    def duration_s(self) -> float | None:
        """Run time; for a pod that never ran, the time it existed."""
        if self.deleted is None or self.created is None:
            return None
        begun = self.created if self.scheduled is None else self.scheduled
        return max(self.deleted - begun, 0.0)


def is_nodes(text: str) -> bool:
    """Return whether a text begins as a list of nodes does."""
    return _has(text, NODE_COLUMNS)


def is_pods(text: str) -> bool:
    """Return whether a text begins as a list of pods does."""
    return _has(text, POD_COLUMNS)


def _has(text: str, columns: Iterable[str]) -> bool:
    header = [item.strip() for item in text.partition("\n")[0].split(",")]
    return set(columns) <= set(header)


def read_nodes(text: str, path: str) -> tuple[Node, ...]:
    """Read a list of nodes. Raises BadInput with file, line and field."""
    result = []
    for line, row in _rows(text, path, NODE_COLUMNS):
        gpus = _number(row, "gpu", line, most=_MOST_GPUS)
        cpu, memory = _number(row, "cpu_milli", line), _number(row, "memory_mib", line)
        result.append(Node(row["sn"], cpu, memory, gpus, row["model"]))
    return tuple(result)


def read_pods(text: str, path: str) -> tuple[PodRow, ...]:
    """Read a list of pods. Raises BadInput with file, line and field."""
    return tuple(_row(row, line) for line, row in _rows(text, path, POD_COLUMNS))


def _row(row: Mapping[str, str], line: str) -> PodRow:
    gpus = _number(row, "num_gpu", line, most=_MOST_GPUS)
    milli = _number(row, "gpu_milli", line, most=FULL) if gpus else 0
    if gpus and not milli:
        raise errors.BadInput(f"{line}, gpu_milli", "is 0", f"1 to {FULL} thousandths of a GPU")
    if gpus > 1 and milli < FULL:
        raise errors.BadInput(f"{line}, gpu_milli", f"is {milli} of {gpus} GPUs", f"{FULL}")
    models = tuple(sorted(filter(None, (row.get("gpu_spec") or "").split("|"))))
    cpu, memory = _number(row, "cpu_milli", line), _number(row, "memory_mib", line)
    times = (_time(row, name, line) for name in TIME_COLUMNS)
    return PodRow(row["name"], Pod(cpu, memory, gpus, milli, models), *times)


def _rows(
    text: str, path: str, columns: tuple[str, ...]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Each line with its place, `file line 7`; the first column names it."""
    reader = csv.DictReader(io.StringIO(text), restval="", skipinitialspace=True)
    header = [*(reader.fieldnames or ())]
    lacking = [column for column in columns if column not in header]
    if lacking:
        problem = f"has no column {', '.join(lacking)}"
        raise errors.BadInput(f"{path} line 1", problem, ",".join(columns))
    seen: set[str] = set()
    try:
        for row in reader:
            line, name = f"{path} line {reader.line_num}", row[columns[0]]
            if None in row:
                problem = f"has more than {len(header)} fields"
                raise errors.BadInput(line, problem, ",".join(header))
            if not name or name in seen:
                problem = f"{name} stands twice" if name else "is empty"
                raise errors.BadInput(f"{line}, {columns[0]}", problem, "a name of its own")
            seen.add(name)
            yield line, row
    except csv.Error as error:
        raise errors.BadInput(f"{path} line {reader.line_num}", f"is no CSV: {error}") from error


def _number(row: Mapping[str, str], name: str, line: str, most: int = 1 << 40) -> int:
    text = row[name]
    if not (text.isascii() and text.isdigit()) or int(text) > most:
        expected = f"a whole number up to {most}" if most < 1 << 40 else "a whole number"
        raise errors.BadInput(f"{line}, {name}", f"is {text!r}", expected)
    return int(text)


def _time(row: Mapping[str, str], name: str, line: str) -> float | None:
    text = row.get(name) or ""
    if not text:
        return None
    try:
        result = float(text)
    except ValueError:
        result = -1.0
    if not 0 <= result < float("inf"):
        raise errors.BadInput(f"{line}, {name}", f"is {text!r}", "seconds from 0 on, or nothing")
    return result


def caches(node_list: Iterable[Node], driver: str = names.DRIVER) -> cluster_state.CachedObjects:
    """The cluster that the nodes make, with the two classes that the pods ask for."""
    current = [*node_list]
    kinds = (_class(driver, names.CLASS_GPU, "gpu"), _class(driver, names.CLASS_MPS, "gpu-share"))
    return cluster_state.CachedObjects(
        nodes={ids.Key(node.name): nodes.parse(_node(node)) for node in current},
        slices={
            ids.Key(raw["metadata"]["name"]): slices.parse(raw)
            for node in current
            for raw in _slices(driver, node)
        },
        classes={ids.Key(raw["metadata"]["name"]): device_classes.parse(raw) for raw in kinds},
        claims={},
        pods={},
    )


class Maker:
    """Makes tasks of what pods ask. `whole` is the `compute` that a whole GPU publishes."""

    def __init__(self, driver: str = names.DRIVER, whole: int = FULL) -> None:
        self._driver = driver
        self._whole = whole
        self._template = functools.cache(self._parsed)

    def task(
        self, name: str, pod: Pod, time: float = 0.0, lasts: float | None = None
    ) -> replay.Task:
        """One, with its claim where it asks a GPU."""
        template, claim = self._template(pod)
        own = tuple(replace(template.claims[0], claim=name) for _ in template.claims)
        task = replace(template, name=name, uid=ids.PodUid(name), claims=own)
        if claim is None:
            return replay.Task(task, (), time, lasts)
        return replay.Task(task, (replace(claim, name=name, uid=ids.ClaimUid(name)),), time, lasts)

    def _parsed(self, pod: Pod) -> tuple[pods.Pod, claims.Claim | None]:
        if not pod.gpus:
            return pods.parse(_pod(pod)), None
        return pods.parse(_pod(pod)), claims.parse(_claim(self._driver, pod, self._whole))


def _meta(name: str, **more: str) -> Raw:
    return {"name": name, "uid": name, "resourceVersion": "1", **more}


def _of(driver: str) -> str:
    return f'device.driver == "{driver}" && device.attributes["{driver}"]'


def _class(driver: str, name: str, kind: str) -> Raw:
    expression = f'{_of(driver)}.type == "{kind}"'
    return {"metadata": _meta(name), "spec": {"selectors": [{"cel": {"expression": expression}}]}}


def _node(node: Node) -> Raw:
    room = {"cpu": f"{node.cpu}m", "memory": f"{node.memory}Mi", "pods": "100000"}
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": _meta(node.name),
        "spec": {},
        "status": {"allocatable": room, "conditions": ready},
    }


def _slices(driver: str, node: Node) -> list[Raw]:
    pool = {"name": node.name, "generation": 1, "resourceSliceCount": 2}
    shared = {"driver": driver, "nodeName": node.name, "pool": pool}
    item = {"gpu": {"value": "1"}}
    sets = [{"name": f"gpu-{index}", "counters": item} for index in range(node.gpus)]
    devices = [
        device
        for index in range(node.gpus)
        for device in (_device(node, index, "gpu", {}), _device(node, index, "gpu-share", _SHARE))
    ]
    return [
        {"metadata": _meta(f"{node.name}-0"), "spec": {**shared, "sharedCounters": sets}},
        {"metadata": _meta(f"{node.name}-1"), "spec": {**shared, "devices": devices}},
    ]


_POLICY = {"default": "1", "validRange": {"min": "1", "max": f"{FULL}", "step": "1"}}
_SHARE: Mapping[str, Any] = {
    "allowMultipleAllocations": True,
    "capacity": {"compute": {"value": f"{FULL}", "requestPolicy": _POLICY}},
}


def _device(node: Node, index: int, kind: str, more: Mapping[str, Any]) -> Raw:
    values = {"type": kind, "productName": node.model, "uuid": f"GPU-{node.name}-{index}"}
    if more:
        values["sharing"] = names.SHARING_MPS
    use = {"counterSet": f"gpu-{index}", "counters": {"gpu": {"value": "1"}}}
    return {
        "name": f"gpu-{index}" if kind == "gpu" else f"gpu-{index}-mps",
        "attributes": {name: {"string": text} for name, text in values.items()},
        "taints": [_TAINT],
        "consumesCounters": [use],
        **more,
    }


def _claim(driver: str, pod: Pod, whole: int) -> Raw:
    shared = pod.milli < FULL
    requested: Raw = {"deviceClassName": names.CLASS_MPS if shared else names.CLASS_GPU}
    if shared:
        requested["capacity"] = {"requests": {"compute": str(-(-pod.milli * whole // FULL))}}
    else:
        requested["count"] = pod.gpus
    if pod.models:
        any_of = " || ".join(f'{_of(driver)}.productName == "{model}"' for model in pod.models)
        requested["selectors"] = [{"cel": {"expression": any_of}}]
    requests = [{"name": "gpu", "exactly": requested}]
    return {
        "metadata": _meta("claim", namespace="default"),
        "spec": {"devices": {"requests": requests}},
    }


def _pod(pod: Pod) -> Raw:
    asks = {"cpu": f"{pod.cpu}m", "memory": f"{pod.memory}Mi"}
    spec: Raw = {"containers": [{"name": "c", "resources": {"requests": asks}}]}
    if pod.gpus:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "claim"}]
    return {
        "metadata": _meta("pod", namespace="default"),
        "spec": spec,
        "status": {"phase": "Pending"},
    }
