"""The steps of a plan, done."""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hack.cluster import errors, kubectl, progress, shell, toolchain
from hack.kind import (
    config,
    docker,
    driver,
    facts,
    kube,
    layout,
    machines,
    nodeimages,
    plan,
    programs,
    record,
)
from hack.kind import daemon as daemons

_CREATE_S, _READY_S = 900, 300
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asks `up` for; `node_image` and `own_daemon` as the command line explains."""

    machine: str
    node_image: str
    own_daemon: bool


@dataclass(frozen=True, slots=True)
class Work:
    """One run of `up`: what it works with."""

    where: layout.Layout
    cache: layout.Cache
    request: Request
    document: config.Document
    docker: docker.Docker
    kind: Path
    archives: driver.Archives
    wanted: plan.Wanted
    facts: plan.Facts
    steps: progress.Steps


def up(where: layout.Layout, cache: layout.Cache, request: Request, steps: progress.Steps) -> None:
    """Bring the cluster up, or on to what the checkout holds now."""
    document = config.parse((where.checkout / "kind-config.yaml").read_text())
    with toolchain.lock(cache.lock):
        _check_root()
        for folder in (cache.parts, cache.simulators):
            folder.mkdir(parents=True, exist_ok=True)
        kept = record.read(where)
        daemon = daemons.choose(cache, own=request.own_daemon, recorded=kept.host if kept else None)
        work = _prepare(where, cache, request, document, daemon, steps)
        planned = plan.up(work.wanted, work.facts)
        where.home.mkdir(parents=True, exist_ok=True)
        for step in planned:
            _ACTIONS[step.action](work, step)
    _hand_over(where)


def _check_root() -> None:
    if os.geteuid() != 0:
        raise errors.ClusterError(plan.NO_ROOT)


def _prepare(
    where: layout.Layout,
    cache: layout.Cache,
    request: Request,
    document: config.Document,
    daemon: docker.Docker,
    steps: progress.Steps,
) -> Work:
    workers = config.workers(document, where.name)
    facts_now = facts.read(daemon, where, cache)
    plan.refuse_foreign(where, facts_now, workers)
    kind = programs.kind(steps)
    with steps.step("Make the driver's image", 60):
        archives = driver.ensure(where.checkout)
    with steps.step("Make what simulated GPUs run in", 20):
        runtime = machines.ensure_runtime(where.checkout, cache)
    wanted = plan.Wanted(where, workers, runtime, archives.names())
    return Work(where, cache, request, document, daemon, kind, archives, wanted, facts_now, steps)


def _raise_inotify(work: Work, _step: plan.Step) -> None:
    before = work.facts.inotify_instances
    INOTIFY.write_text(str(plan.INOTIFY_INSTANCES))
    work.where.inotify.write_text(f"{before}\n")
    work.steps.say(
        f"    fs.inotify.max_user_instances: {before} is too few for a cluster of kind, "
        f"{plan.INOTIFY_INSTANCES} until `down`"
    )


def _delete(work: Work, _step: plan.Step) -> None:
    with work.steps.step("Delete what an earlier run left half made", 5):
        delete(work.docker, work.kind, work.where)


def delete(daemon: docker.Docker, kind: Path, where: layout.Layout) -> None:
    """Delete a cluster's containers by kind's own command."""
    flags = (f"--name={where.name}", f"--kubeconfig={where.kubeconfig}")
    shell.run((str(kind), "delete", "cluster", *flags), env=daemon.environment(), timeout=300)


def _create(work: Work, _step: plan.Step) -> None:
    where, host = work.where, work.facts.host
    image = nodeimages.choose(work.request.node_image, work.docker, work.cache, host, work.steps)
    with work.steps.step("Lay out the simulated machines", 5):
        for worker in work.wanted.workers:
            machines.create(where, worker, work.request.machine)
    where.begun.touch()
    text = config.render(work.document, where, work.cache, host)
    words = (str(work.kind), "create", "cluster", "--config=-", f"--image={image}", "--retain")
    with work.steps.step(f"Have kind create the cluster {where.name}", 90):
        shell.run(
            (*words, f"--kubeconfig={where.kubeconfig}"),
            env=work.docker.environment(),
            standard_input=text,
            timeout=_CREATE_S,
        )
    made = record.Record(host=work.docker.host, node_image=image, machine=work.request.machine)
    record.write(where, made)


def _start(work: Work, step: plan.Step) -> None:
    with work.steps.step(f"Start {', '.join(step.nodes)}", 20):
        work.docker.run("start", *step.nodes, timeout=120)
        kubectl.wait("the API server answers", lambda: kube.answers(work.where), _READY_S)


def _start_gpus(work: Work, step: plan.Step) -> None:
    with work.steps.step("Start the simulated GPUs", 10):
        for node in step.nodes:
            machines.install(work.docker, node, work.wanted.runtime)


def _load(work: Work, step: plan.Step) -> None:
    nodes = step.nodes or tuple(
        str(raw["Name"]).lstrip("/") for raw in facts.containers(work.docker, work.where.name)
    )
    with work.steps.step("Load the images into the nodes", 30):
        driver.load(work.docker, work.kind, work.where, work.archives, nodes)


def _install(work: Work, _step: plan.Step) -> None:
    where = work.where
    with work.steps.step("Wait until the nodes are ready", 20):
        kubectl.wait("every node is Ready", lambda: kube.is_ready(where), _READY_S)
    with work.steps.step("Install the chart", 40):
        driver.install(where, f"--set=image.digest={work.archives.digest}")


_ACTIONS: Mapping[plan.Action, Callable[[Work, plan.Step], None]] = {
    plan.Action.RAISE_INOTIFY: _raise_inotify,
    plan.Action.DELETE: _delete,
    plan.Action.CREATE: _create,
    plan.Action.START: _start,
    plan.Action.GPUS: _start_gpus,
    plan.Action.IMAGES: _load,
    plan.Action.INSTALL: _install,
}


def _hand_over(where: layout.Layout) -> None:
    """The kubeconfig is the person's who called sudo."""
    owner = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if owner[0] and owner[1]:
        for path in (where.dot, where.home, where.kubeconfig):
            os.chown(path, int(owner[0]), int(owner[1]))


def down(where: layout.Layout, cache: layout.Cache, steps: progress.Steps) -> None:
    """Delete the cluster and all that `up` made but images; end a daemon of our own."""
    _check_root()
    with toolchain.lock(cache.lock):
        kept = record.read(where)
        try:
            daemon = daemons.choose(cache, own=False, recorded=kept.host if kept else None)
        except errors.ClusterError:
            if not where.home.exists() and daemons.process(cache) is None:
                steps.say("No cluster of kind is up.")
                return
            raise
        nodes = facts.containers(daemon, where.name)
        if nodes:
            plan.refuse_foreign(where, facts.read(daemon, where, cache))
            with steps.step(f"Delete the cluster {where.name}", 10):
                delete(daemon, programs.kind(steps), where)
        _restore_inotify(where)
        clear(where)
        if daemons.stop(daemon, cache):
            steps.say("The Docker daemon of our own is ended; its images stay in the cache.")
        elif daemons.is_own(daemon, cache):
            listing = f"docker --host={daemon.host} ps --all"
            steps.say(f"The Docker daemon of our own goes on, for other containers: {listing}")


def clear(where: layout.Layout) -> None:
    """Remove the cluster's files from the checkout, and their folder with the last cluster's."""
    shutil.rmtree(where.home, ignore_errors=True)
    if where.dot.is_dir() and not any(where.dot.iterdir()):
        where.dot.rmdir()


def _restore_inotify(where: layout.Layout) -> None:
    if where.inotify.is_file() and INOTIFY.read_text().strip() == str(plan.INOTIFY_INSTANCES):
        INOTIFY.write_text(where.inotify.read_text().strip())
