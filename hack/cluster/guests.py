"""Programs of other projects beside the driver, for tests of both: real ones, as processes.

All objects come from the project's own module. Only its pod is left out: a process of this machine
stands for it, with the token of the pod's service account, so the project's own rights are what it
has.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import rich.console
import urllib3
import yaml

from hack.cluster import access as component_access
from hack.cluster import (
    argv,
    chart,
    control,
    errors,
    kubectl,
    layout,
    progress,
    toolchain,
    versions,
)

START_S = 60.0
Object = Mapping[str, Any]


class Parts(NamedTuple):
    """What a project is made of: its program, and the folder of its module."""

    program: Path
    source: Path


def fetch(name: str, program: str = "") -> Parts:
    """A program of a tool set (of the set's name), built the first time, and the set's sources.

    Raises CommandFailedError where it cannot be built.
    """
    console = rich.console.Console(stderr=True)
    steps = progress.Steps(console, toolchain.cache_root() / "timings.json")
    source = toolchain.source(versions.load().sets()[name])
    return Parts(toolchain.program(program or name, steps), source)


def read(text: str) -> list[Object]:
    """The objects of a YAML text."""
    # Kueue's are 25,000 lines: the parser in C needs half a second, the other one ten.
    return [one for one in yaml.load_all(text, yaml.CSafeLoader) if one]


def rendered(where: layout.Layout, release: str, folder: Path, *flags: str) -> list[Object]:
    """What a chart makes of its own values."""
    return read(chart.run(where, "template", release, str(folder), *flags))


def without(objects: Sequence[Object], *kinds: str) -> list[Object]:
    """All but the objects of these kinds."""
    return [one for one in objects if one["kind"] not in kinds]


def a_namespace(name: str) -> Object:
    """A namespace as an object."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def apply(where: layout.Layout, objects: Sequence[Object]) -> None:
    """Apply objects, and wait until what they define is served."""
    flags = ("--server-side", "--field-manager=ration-cluster", "--filename=-")
    every = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    kubectl.run(where, "apply", *flags, standard_input=json.dumps(every))
    served = [
        f"crd/{one['metadata']['name']}"
        for one in objects
        if one["kind"] == "CustomResourceDefinition"
    ]
    if served:
        words = ("--for=condition=Established", f"--timeout={START_S:.0f}s")
        kubectl.run(where, "wait", *words, *served)


def delete(where: layout.Layout, objects: Sequence[Object]) -> None:
    """Delete objects; those that are gone already are no error."""
    every = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    flags = ("--ignore-not-found", "--filename=-")
    kubectl.run(where, "delete", *flags, standard_input=json.dumps(every))


def folder(where: layout.Layout, component: str) -> Path:
    """Where a component's files are: configuration, certificates, token (mode 0700)."""
    made = where.key(component)
    made.mkdir(mode=0o700, exist_ok=True)
    return made


def access(
    where: layout.Layout, component: str, account: tuple[str, str], ports: argv.Ports
) -> Path:
    """A kubeconfig with a token of a service account, (namespace, name)."""
    namespace, name = account
    words = ("create", "token", name, f"--namespace={namespace}", "--duration=24h")
    token = folder(where, component) / "token"
    return component_access.write(where, token, token.with_name("kubeconfig"), words, ports)


def wait_ready(where: layout.Layout, component: str, address: str) -> None:
    """Wait until the component's own page says that it is well; ClusterError if it ended."""

    def answers() -> bool:
        check_alive(where, component)
        try:
            answer = urllib3.request("GET", address, retries=False, timeout=2)
        except urllib3.exceptions.HTTPError:
            return False
        return answer.status == 200  # noqa: PLR2004

    log = control.log_path(where, component, None)
    kubectl.wait(f"{component} is ready", answers, START_S, log)


def check_alive(where: layout.Layout, component: str) -> None:
    """ClusterError with the end of its log where the component ended by itself."""
    if control.condition(where, component, None) == "dead":
        log = control.log_path(where, component, None)
        raise errors.ClusterError(f"{component} ended; the end of {log}:\n{control.tail(log)}")
