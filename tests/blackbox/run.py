"""One run: a cluster, the subject's objects in it, and a worker a node, group by group."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from hack.cluster import api, errors, kubectl, layout, shell, state, versions
from tests.blackbox import catalogue, report, session, subject, turns

ROOT = Path(__file__).parents[2]
WHERE = layout.Layout(ROOT)
_GROUP_S = 1800
_END_S = 90
NEIGHBOUR = subject.FOLDER / "minimal.toml"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """Options of a run; `line` is a line of Kubernetes, None the default.

    `names` are the nodes to use of a cluster that is up; without, the first `nodes` of it.
    """

    file: Path
    cases: tuple[catalogue.Case, ...]
    nodes: int
    line: str | None
    names: tuple[str, ...] = ()


def go(request: Asked, say: Say) -> report.Report:
    """Run the cases. Raises BadSubjectError, ClusterError."""
    tried = subject.read(request.file)
    with _cluster(request, say) as cluster, tempfile.TemporaryDirectory(prefix="bb") as folder:
        for item in (tried, subject.read(NEIGHBOUR)):
            _apply(item, (request.file if item is tried else NEIGHBOUR).parent)
        done = _run_all(request, _nodes(request, cluster), Path(folder), say)
        return report.Report(tried.name, cluster.kubernetes, done)


def _nodes(request: Asked, cluster: api.Cluster) -> tuple[str, ...]:
    for name in request.names:
        if name not in cluster.nodes():
            joined = ", ".join(cluster.nodes())
            raise errors.ClusterError(f"--on {name}: no such node; expected one of {joined}")
    return request.names or cluster.nodes()[: request.nodes]


@contextlib.contextmanager
def _cluster(request: Asked, say: Say) -> Iterator[api.Cluster]:
    """The one that is up without a driver, or one for this run."""
    line = versions.load().line(request.line)
    try:
        cluster, ours = api.Cluster.load(ROOT), False
    except errors.ClusterError:
        say(f"A cluster of Kubernetes {line} comes up")
        _hack("up", "--nodes", str(request.nodes), "--driver", "none", "--kubernetes", line)
        cluster, ours = api.Cluster.load(ROOT), True
    if cluster.kubernetes != line or cluster.driver is not state.Driver.NONE:
        raise errors.ClusterError(
            f"a cluster of Kubernetes {cluster.kubernetes} with the driver as {cluster.driver} "
            f"is up; expected {line} with none: end it first, make cluster-down"
        )
    try:
        yield cluster
    finally:
        if ours:
            _hack("down")


def _hack(*words: str) -> None:
    command = [sys.executable, "-m", "hack.cluster", *words]
    environment = {**os.environ}
    environment.pop("K8S", None)
    done = subprocess.run(
        command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL, env=environment
    )
    if done.returncode:
        raise errors.ClusterError(f"hack.cluster {words[0]} ended with {done.returncode}")


def _apply(item: subject.Subject, folder: Path) -> None:
    """Have the subject's objects in the cluster."""
    texts = [(folder / name).read_text() for name in item.cluster.manifests]
    if item.cluster.objects:
        words = subject.filled(item.cluster.objects, {"python": sys.executable})
        texts.append(shell.run(words, cwd=ROOT, timeout=120))
    flags = ("--server-side", "--force-conflicts", "--field-manager=blackbox")
    for text in texts:
        kubectl.run(WHERE, "apply", *flags, "--filename=-", standard_input=text)


def _run_all(
    request: Asked, nodes: Sequence[str], folder: Path, say: Say
) -> tuple[report.Result, ...]:
    """The results; of a run that is broken off, those that there are."""
    groups = turns.Turns((case.group for case in request.cases), len(nodes))
    over = threading.Event()
    out = folder / "results"
    out.touch()

    def work(node: str) -> None:
        position = session.Session(str(request.file), node, str(out))
        group = groups.next()
        while group is not None and not over.is_set():
            _run_group(request, group, position, say, over)
            group = groups.next(group)

    workers = [threading.Thread(target=work, args=(node,)) for node in nodes]
    for worker in workers:
        worker.start()
    try:
        for worker in workers:
            worker.join()
    except KeyboardInterrupt:
        say("Broken off: what is done is told")
        over.set()
        for worker in workers:
            worker.join()
    lines = out.read_text().splitlines()
    return report.read(lines, request.cases, whole=not over.is_set())


def _run_group(
    request: Asked, group: str, reported: session.Session, say: Say, over: threading.Event
) -> None:
    cases = [case for case in request.cases if case.group == group]
    values = session.Session(
        reported.subject, reported.node, reported.out, tuple(case.number for case in cases)
    )
    log = WHERE.logs / f"blackbox-{request.file.stem}-{group}.log"
    say(f"{group}: {len(cases)} cases on {reported.node}; {log.relative_to(ROOT)}")
    files = sorted({str(case.file) for case in cases})
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:randomly", *files]
    with log.open("w") as file:
        try:
            done = _wait(command, values, file, over)
        except subprocess.TimeoutExpired:
            done = -1
    say(f"{group}: {'done' if done == 0 else 'not all passed'}")


def _wait(
    command: Sequence[str], values: session.Session, log: TextIO, over: threading.Event
) -> int:
    """The group's exit code; what is broken off ends the group. Raises TimeoutExpired."""
    with subprocess.Popen(
        command, cwd=ROOT, env=values.environment(), stdout=log, stderr=subprocess.STDOUT
    ) as process:
        for _ in range(_GROUP_S):
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(1)
            if over.is_set():
                process.send_signal(signal.SIGINT)
                return process.wait(_END_S)
        process.kill()
    raise subprocess.TimeoutExpired(command, _GROUP_S)
