"""From files and a cluster to a replay: what each input is, is seen by how it begins."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driver import errors
from driver.api import workload_mix
from driver.cli import cluster_state, yaml_input
from driver.cli.simulation import dump, manifests, openb, replay, scheduler
from driver.cli.simulation import workloads as simulation_workloads
from driver.resources import extended_resources
from driver.scheduling.allocator import settings
from driver.scheduling.allocator.policies import configured_mix, ranking
from driver.scheduling.allocator.policies import workload_mix as policy_mix
from driver.scheduling.allocator.sharing_rules import device_filter
from driver.scheduling.snapshot import cluster_state as cluster_states

_PERCENT = 100
"""`compute` of a GPU as the kubelet plugin publishes it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What to simulate, as it was said."""

    files: tuple[str, ...]
    cluster: str | None
    policies: str
    driver: str
    namespace: str
    timeline: bool = False
    convert: bool = False
    kubeconfig: Path | None = None
    usual: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What is to be replayed, and where.

    `lacking` says, by pod, what of it is not there. `notes` are for people. With `trace` pods
    without a claim are placed too.
    """

    caches: cluster_states.CachedObjects
    tasks: tuple[replay.Task, ...]
    deciding: settings.Settings
    lacking: dict[str, str]
    notes: tuple[str, ...]
    trace: bool


@dataclass(frozen=True, slots=True)
class _World:
    dump: dump.Dump
    notes: tuple[str, ...]
    trace: bool = False


def find(asked: Asked) -> Found:
    """Read all of it.

    Raises:
        BadInput: something that was named cannot be read, or holds no pod.
        ApiError: the cluster refused, or was not reached.
    """
    judge = ranking.parse_policies(asked.policies, _usual(asked.usual))
    deciding = settings.Settings(judge, device_filter.ControllerRules(asked.driver))
    rows, documents = _of_files(asked.files)
    classes = extended_resources.Classes(asked.driver) if asked.convert else None
    wanted = manifests.read(documents, asked.namespace, classes)
    _refuse(wanted.problems)
    _refuse_nothing(asked.files, wanted, rows)
    there = _world(asked)
    made = simulation_workloads.make(wanted, there.dump)
    maker = openb.Maker(asked.driver, openb.FULL if there.trace else _PERCENT)
    traced = [_task(maker, row, where, timeline=asked.timeline) for where, row in rows]
    waits = sum(1 for pod in there.dump.caches.pods.values() if pod.claims and pod.node is None)
    notes = (*there.notes, *wanted.notes, *made.notes)
    if waits:
        notes += (f"pods of the cluster that have no node yet: {waits}, not tried here",)
    return Found(
        made.caches,
        (*made.tasks, *traced),
        deciding,
        {str(key): why for key, why in made.lacking.items()},
        notes,
        bool(rows),
    )


def run(found: Found, asked: Asked, told: replay.Told) -> replay.Report:
    """Decide for all of it."""
    at = scheduler.Desk.of(asked.driver, found.caches, found.deciding, every_pod=found.trace)
    rule = replay.Rule(wait=asked.timeline, leave=asked.timeline)
    return replay.Replay(at, rule, told).run(found.tasks)


def _of_files(files: Iterable[str]) -> tuple[list[tuple[str, openb.Row]], list[Any]]:
    """Lines of traces, each with its file, and documents."""
    rows: list[tuple[str, openb.Row]] = []
    documents: list[Any] = []
    for name in files:
        if Path(name).is_dir():
            documents += yaml_input.read(name)
            continue
        text, where = yaml_input.text_of(name), yaml_input.called(name)
        if openb.is_nodes(text):
            raise errors.BadInput(
                where, "is a list of nodes", "it with --cluster, and pods with -f"
            )
        if openb.is_pods(text):
            rows += ((where, row) for row in openb.read_pods(text, where))
            _refuse_twice(rows)
        else:
            documents += yaml_input.parse(text, where)
    return rows, documents


def _world(asked: Asked) -> _World:
    """The cluster; what cannot be read of it is noted, and the rest counts."""
    if asked.cluster is not None and not Path(asked.cluster).is_dir():
        text, where = yaml_input.text_of(asked.cluster), yaml_input.called(asked.cluster)
        if openb.is_pods(text):
            raise errors.BadInput(
                where, "is a list of pods", "it with -f, and nodes with --cluster"
            )
        if openb.is_nodes(text):
            caches = openb.caches(openb.read_nodes(text, where), asked.driver)
            return _World(dump.Dump(caches), (), trace=True)
        seen = cluster_state.World(dump.read(yaml_input.parse(text, where)))
    else:
        seen = cluster_state.read(asked.cluster, asked.kubeconfig)
    if not seen.dump.caches.nodes:
        _refuse(seen.dump.problems)
        raise errors.BadInput(asked.cluster or "the cluster", "has no nodes")
    problems = (f"of the cluster: {one}" for one in seen.dump.problems)
    unseen = (f"not seen of the cluster: {one}" for one in seen.unseen)
    return _World(seen.dump, (*problems, *unseen))


def _usual(name: str | None) -> policy_mix.WorkloadMix:
    """What is usually asked by a file; without one as the controller takes it."""
    if name is None:
        return policy_mix.DEFAULT_MIX
    where = yaml_input.called(name)
    document, *more = yaml_input.parse(yaml_input.text_of(name), where)
    if more or not isinstance(document, dict):
        raise errors.BadInput(where, "is something else", "one UsualWorkloads document")
    return configured_mix.build_mix(workload_mix.read(document, where))


def _task(maker: openb.Maker, row: openb.Row, where: str, *, timeline: bool) -> replay.Task:
    if not timeline:
        return maker.task(row.name, row.pod)
    if row.created is None:
        problem = f"pod {row.name} has no creation_time"
        raise errors.BadInput(where, problem, "seconds, for --timeline")
    return maker.task(row.name, row.pod, row.created, row.lasts)


def _refuse(problems: Sequence[dump.Problem]) -> None:
    if problems:
        first, *rest = (str(one) for one in problems)
        more = "".join(f"\n{one}" for one in rest)
        raise errors.BadInput("input", f"cannot be read: {first}{more}")


def _refuse_twice(rows: Sequence[tuple[str, openb.Row]]) -> None:
    seen: set[str] = set()
    for where, row in rows:
        if row.name in seen:
            raise errors.BadInput(where, f"pod {row.name} stands in two lists")
        seen.add(row.name)


def _refuse_nothing(
    files: Sequence[str], wanted: manifests.Manifests, rows: Sequence[object]
) -> None:
    if wanted.wanted or rows:
        return
    others = wanted.others
    found = [f"{count} {kind}" for kind, count in others.ignored.items()]
    problem = f"holds no pod, but {', '.join(found)}" if found else "holds no pod"
    expected = "Pods, or workloads with a pod template"
    raise errors.BadInput(", ".join(files) or "-f", problem, expected)
