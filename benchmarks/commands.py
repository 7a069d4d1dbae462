"""Measure `ration` at fleets of 8 GPUs a node: `python -m benchmarks.commands`.

Each command runs as a process of its own, by the controller's API at 1,000 nodes and by the objects
of an API server alone at 100, on the fleet of `benchmarks.page`. Processor time of the command, its
start included; what the servers take is not in it. `--help` and `version`, which ask nobody, and
`who` at the two nodes of the demo are measured without any bytecode as well: neither ours, nor the
libraries', nor Python's own.
"""

import argparse
import contextlib
import dataclasses
import http.server
import json
import os
import resource as usage
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks import calibrators, page, record
from driver.kube import gvr
from tests.support import web_page
from tests.support.scenarios import fleets

NODES, LISTED_NODES, ROUNDS, STARTS, DEMO = 1_000, 100, 3, 5, 2
"""Without a controller each command reads every slice: 25 s of it at 1,000 nodes."""
_MORE = 4
"""Times as many runs of what takes 30 to 300 ms: a machine's pace changes for seconds."""
_OK, _MISSING = 200, 404
_VERSION = {"resourceVersion": "1"}
_KINDS = {
    "Node": gvr.NODES,
    "ResourceSlice": gvr.RESOURCE_SLICES,
    "DeviceClass": gvr.DEVICE_CLASSES,
    "ResourceClaim": gvr.RESOURCE_CLAIMS,
    "Pod": gvr.PODS,
}
_LISTS = (
    "devices --mode free --health healthy",
    "who",
    "claims -A",
    "top --once --busy",
    "idle",
)


def main() -> None:
    """Measure, print, store."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--nodes", type=int, default=NODES)
    arguments.add_argument("--listed-nodes", type=int, default=LISTED_NODES)
    arguments.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"of a short command at least {STARTS}"
    )
    options = arguments.parse_args()
    start = record.Start()
    more = max(options.rounds, STARTS)
    with tempfile.TemporaryDirectory() as folder:
        figures = _starts(Path(folder), more)
    served, listed = page.cluster(options.nodes), page.cluster(options.listed_nodes)
    sources = (
        ("by the controller's API", _served(served), served, more),
        (f"by a kubeconfig, {options.listed_nodes} nodes", _listed(listed), listed, options.rounds),
    )
    for source, context, raw, rounds in sources:
        node = _first_node(raw)
        with context as (flags, environment):
            commands = [
                Command(
                    f"{command.replace(node, 'NODE')}, {source}", f"{command} {flags}", environment
                )
                for command in (*_LISTS, f"explain node {node}")
            ]
            figures += _in_turn(commands, rounds)
    record.write("commands", figures, start)


@dataclass(frozen=True, slots=True)
class Command:
    """What `ration` is called with, and the name of the figure."""

    name: str
    arguments: str
    environment: Mapping[str, str]


def _in_turn(commands: Sequence[Command], rounds: int) -> list[record.Figure]:
    """Run all of them, over and over: what slows the machine for a second slows a run of each.

    A command's figure has the calibrators just before and after its own runs.
    """
    seconds: dict[str, list[float]] = {command.name: [] for command in commands}
    around = {command.name: record.Calibrations([]) for command in commands}
    previous = calibrators.measure_briefly()
    for command in (each for _ in range(rounds) for each in commands):
        seconds[command.name].append(_run(command))
        now = calibrators.measure_briefly()
        around[command.name].taken.extend((previous, now))
        previous = now
    return [around[name].figure(name, "s", runs) for name, runs in seconds.items()]


def _starts(folder: Path, rounds: int) -> list[record.Figure]:
    """Measure what is short, on bytecode of its own that is written first, and on none."""
    written = {"PYTHONPYCACHEPREFIX": str(folder / "written"), "PYTHONDONTWRITEBYTECODE": ""}
    none = {"PYTHONPYCACHEPREFIX": str(folder / "none"), "PYTHONDONTWRITEBYTECODE": "1"}
    kinds = ((written, ""), (none, ", no bytecode"))
    offline = [
        Command(arguments + suffix, arguments, environment)
        for environment, suffix in kinds
        for arguments in ("--help", "version")
    ]
    raw = page.cluster(DEMO)
    with _served(raw) as of_served, _listed(raw) as of_listed:
        sources = ("the controller's API", *of_served), ("a kubeconfig", *of_listed)
        online = [
            Command(
                f"who at {DEMO} nodes, by {source}{suffix}",
                f"who {flags}",
                environment | variables,
            )
            for source, flags, variables in sources
            for environment, suffix in kinds
        ]
        for command in (*offline, *online):
            _run(command)
        return _in_turn(offline, _MORE * rounds) + _in_turn(online, rounds)


def _first_node(raw: list[fleets.Raw]) -> str:
    return next(str(obj["metadata"]["name"]) for obj in raw if obj["kind"] == "Node")


@contextlib.contextmanager
def _served(raw: list[fleets.Raw]) -> Iterator[tuple[str, dict[str, str]]]:
    """A controller's page."""
    app = web_page.an_application(web_page.Fixed(fleets.a_reading(raw)))
    limits = dataclasses.replace(web_page.LIMITS, deadline_s=60.0)
    with web_page.served(app, limits) as port:
        yield f"--server http://{web_page.HOST}:{port}", {}


@contextlib.contextmanager
def _listed(raw: list[fleets.Raw]) -> Iterator[tuple[str, dict[str, str]]]:
    """An API server's listings, written beforehand, and no controller."""
    node = _first_node(raw)
    answers: fleets.Raw = {"/version": {"major": "1", "minor": "37", "gitVersion": "v1.37.1"}}
    for kind, resource in _KINDS.items():
        items = [obj for obj in raw if obj["kind"] == kind]
        answers[resource.path()] = {"metadata": _VERSION, "items": items}
    of_node = [obj for obj in raw if obj.get("spec", {}).get("nodeName") == node]
    for kind, resource in _KINDS.items():
        items = [obj for obj in of_node if obj["kind"] == kind]
        answers[f"{resource.path()}#spec.nodeName={node}"] = {"metadata": _VERSION, "items": items}
    named = [obj for obj in raw if obj["kind"] == "Node" and obj["metadata"]["name"] == node]
    path = f"{gvr.NODES.path()}#metadata.name={node}"
    answers[path] = {"metadata": _VERSION, "items": named}
    bodies = {path: json.dumps(answer).encode() for path, answer in answers.items()}
    with _serving(bodies) as port, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kubeconfig"
        file.write_text(yaml.safe_dump(_kubeconfig(f"http://127.0.0.1:{port}")))
        yield "--source cluster", {"KUBECONFIG": str(file)}


@contextlib.contextmanager
def _serving(bodies: dict[str, bytes]) -> Iterator[int]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """A listing, or that there is none."""
            path, _, query = self.path.partition("?")
            selector = urllib.parse.parse_qs(query).get("fieldSelector", [""])[0]
            body = bodies.get(f"{path}#{selector}" if selector else path)
            self.send_response(_OK if body else _MISSING)
            body = body or b'{"kind": "Status", "code": 404, "message": "404 page not found"}'
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    door = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=door.serve_forever)
    thread.start()
    try:
        yield int(door.server_address[1])
    finally:
        door.shutdown()
        door.server_close()
        thread.join()


def _kubeconfig(url: str) -> fleets.Raw:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": url}}],
        "users": [{"name": "a", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    }


def _run(command: Command) -> float:
    """Seconds of processor time of a command."""
    earlier = usage.getrusage(usage.RUSAGE_CHILDREN)
    program = str(Path(sys.executable).with_name("ration"))
    done = subprocess.run(
        [program, *command.arguments.split()],
        env={**os.environ, **command.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    later = usage.getrusage(usage.RUSAGE_CHILDREN)
    # `explain` ends with 1 where something is in the way.
    assert done.returncode in {0, 1} and done.stdout, done.stderr  # noqa: S101, PT018 - else nothing was measured
    return later.ru_utime + later.ru_stime - earlier.ru_utime - earlier.ru_stime


if __name__ == "__main__":
    main()
