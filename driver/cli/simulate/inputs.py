"""Builds a replay from files and a cluster; inputs are recognised by their beginning."""

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
from driver.resources.dra import device_classes
from driver.scheduling.allocator import settings
from driver.scheduling.allocator.policies import configured_mix, ranking
from driver.scheduling.allocator.policies import workload_mix as policy_mix
from driver.scheduling.allocator.sharing_rules import device_filter
from driver.scheduling.snapshot import cluster_state as cluster_states

_PERCENT = 100
"""`compute` of a GPU as the kubelet plugin publishes it."""


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """Options of the simulation, as given."""

    files: tuple[str, ...]
    cluster: str | None
    policies: str
    driver: str
    namespace: str
    timeline: bool = False
    convert: bool = False
    kubeconfig: Path | None = None
    workload_mix: str | None = None


@dataclass(frozen=True, slots=True)
class SimulationInputs:
    """Tasks and world of the replay.

    `missing` says, by pod, what of it does not exist. `notes` are for people. With `trace` pods
    without a claim are placed too.
    """

    caches: cluster_states.CachedObjects
    tasks: tuple[replay.Task, ...]
    settings: settings.Settings
    missing: dict[str, str]
    notes: tuple[str, ...]
    trace: bool


@dataclass(frozen=True, slots=True)
class _World:
    dump: dump.Dump
    notes: tuple[str, ...]
    trace: bool = False


def load_inputs(simulate_options: SimulateOptions) -> SimulationInputs:
    """Read all of it.

    Raises:
        BadInput: something that was named cannot be read, or holds no pod.
        ApiError: the cluster refused, or was not reached.
    """
    judge = ranking.parse_policies(
        simulate_options.policies, _read_mix(simulate_options.workload_mix)
    )
    deciding = settings.Settings(judge, device_filter.ControllerRules(simulate_options.driver))
    rows, documents = _of_files(simulate_options.files)
    world = _world(simulate_options)
    classes = (
        _converted_classes(simulate_options.driver, world.dump, documents)
        if simulate_options.convert
        else None
    )
    desired = manifests.read(documents, simulate_options.namespace, classes)
    _refuse(desired.problems)
    _refuse_nothing(simulate_options.files, desired, rows)
    workload_set = simulation_workloads.build_workloads(desired, world.dump)
    maker = openb.Maker(simulate_options.driver, openb.FULL if world.trace else _PERCENT)
    traced = [_task(maker, row, path, timeline=simulate_options.timeline) for path, row in rows]
    waits = sum(1 for pod in world.dump.caches.pods.values() if pod.claims and pod.node is None)
    notes = (*world.notes, *desired.notes, *workload_set.notes)
    if waits:
        notes += (f"pods of the cluster that have no node yet: {waits}, not tried here",)
    return SimulationInputs(
        workload_set.caches,
        (*workload_set.tasks, *traced),
        deciding,
        {str(key): why for key, why in workload_set.missing.items()},
        notes,
        bool(rows),
    )


def _converted_classes(
    driver: str, cluster: dump.Dump, documents: Iterable[object]
) -> extended_resources.Classes:
    """Return the classes that pods are converted to: those of the cluster and of the manifests."""
    added = (
        document
        for document in dump.expand_lists(documents)
        if isinstance(document, dict) and document.get("kind") == "DeviceClass"
    )
    classes = {**cluster.caches.classes, **dump.read(added).caches.classes}
    labelled = device_classes.converted_resources(classes.values())
    return extended_resources.Classes(driver, labelled=labelled)


def run_replay(
    simulation_inputs: SimulationInputs,
    simulate_options: SimulateOptions,
    report_progress: replay.Told,
) -> replay.Report:
    """Decide for all of it."""
    simulated_scheduler = scheduler.SimulatedScheduler.from_caches(
        simulate_options.driver,
        simulation_inputs.caches,
        simulation_inputs.settings,
        every_pod=simulation_inputs.trace,
    )
    rule = replay.ReplayRule(wait=simulate_options.timeline, leave=simulate_options.timeline)
    return replay.Replay(simulated_scheduler, rule, report_progress).run(simulation_inputs.tasks)


def _of_files(files: Iterable[str]) -> tuple[list[tuple[str, openb.PodRow]], list[Any]]:
    """Lines of traces, each with its file, and documents."""
    rows: list[tuple[str, openb.PodRow]] = []
    documents: list[Any] = []
    for name in files:
        if Path(name).is_dir():
            documents += yaml_input.read(name)
            continue
        text, path = yaml_input.read_text(name), yaml_input.display_name(name)
        if openb.is_nodes(text):
            raise errors.BadInput(path, "is a list of nodes", "it with --cluster, and pods with -f")
        if openb.is_pods(text):
            rows += ((path, row) for row in openb.read_pods(text, path))
            _refuse_twice(rows)
        else:
            documents += yaml_input.parse(text, path)
    return rows, documents


def _world(simulate_options: SimulateOptions) -> _World:
    """The cluster; what cannot be read of it is noted, and the rest counts."""
    if simulate_options.cluster is not None and not Path(simulate_options.cluster).is_dir():
        text, path = (
            yaml_input.read_text(simulate_options.cluster),
            yaml_input.display_name(simulate_options.cluster),
        )
        if openb.is_pods(text):
            raise errors.BadInput(path, "is a list of pods", "it with -f, and nodes with --cluster")
        if openb.is_nodes(text):
            caches = openb.caches(openb.read_nodes(text, path), simulate_options.driver)
            return _World(dump.Dump(caches), (), trace=True)
        seen = cluster_state.ObservedState(dump.read(yaml_input.parse(text, path)))
    else:
        seen = cluster_state.read(simulate_options.cluster, simulate_options.kubeconfig)
    if not seen.dump.caches.nodes:
        _refuse(seen.dump.problems)
        raise errors.BadInput(simulate_options.cluster or "the cluster", "has no nodes")
    problems = (f"of the cluster: {read_problem}" for read_problem in seen.dump.problems)
    unseen = (f"not seen of the cluster: {read_problem}" for read_problem in seen.unreadable)
    return _World(seen.dump, (*problems, *unseen))


def _read_mix(name: str | None) -> policy_mix.WorkloadMix:
    """Read the workload mix from a file; without one return the controller's default."""
    if name is None:
        return policy_mix.DEFAULT_MIX
    path = yaml_input.display_name(name)
    document, *more = yaml_input.parse(yaml_input.read_text(name), path)
    if more or not isinstance(document, dict):
        raise errors.BadInput(path, "is something else", "one WorkloadMix document")
    return configured_mix.build_mix(workload_mix.read(document, path))


def _task(maker: openb.Maker, row: openb.PodRow, path: str, *, timeline: bool) -> replay.Task:
    if not timeline:
        return maker.task(row.name, row.pod)
    if row.created is None:
        problem = f"pod {row.name} has no creation_time"
        raise errors.BadInput(path, problem, "seconds, for --timeline")
    return maker.task(row.name, row.pod, row.created, row.duration_s)


def _refuse(problems: Sequence[dump.ReadProblem]) -> None:
    if problems:
        first, *rest = (str(read_problem) for read_problem in problems)
        more = "".join(f"\n{read_problem}" for read_problem in rest)
        raise errors.BadInput("input", f"cannot be read: {first}{more}")


def _refuse_twice(rows: Sequence[tuple[str, openb.PodRow]]) -> None:
    seen: set[str] = set()
    for path, row in rows:
        if row.name in seen:
            raise errors.BadInput(path, f"pod {row.name} stands in two lists")
        seen.add(row.name)


def _refuse_nothing(
    files: Sequence[str], desired: manifests.Manifests, rows: Sequence[object]
) -> None:
    if desired.workloads or rows:
        return
    others = desired.others
    result = [f"{count} {kind}" for kind, count in others.ignored.items()]
    problem = f"holds no pod, but {', '.join(result)}" if result else "holds no pod"
    expected = "Pods, or workloads with a pod template"
    raise errors.BadInput(", ".join(files) or "-f", problem, expected)
