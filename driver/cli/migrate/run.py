"""What `ration migrate` does: read files or a cluster, plan, write."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from driver import errors
from driver.cli import errors as cli_errors
from driver.cli import output as out
from driver.cli.migrate import config_files, plan, render
from driver.cli.migrate import nodes as migrate_nodes

TO_SEE = 1
"""Exit code with --strict."""
_AGENT = "ration-cli"
_STDIN = "-"
_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where to read from in place of files; without a ConfigMap's name, nowhere."""

    configmap: str
    namespace: str
    kubeconfig: Path | None


@dataclass(frozen=True, slots=True)
class Asked:
    """What to plan from."""

    files: tuple[Path, ...]
    nodes: Path | None
    cluster: Cluster
    options: plan.Options


@dataclass(frozen=True, slots=True)
class Out:
    """Where files go, and whether over those that are there."""

    folder: Path
    force: bool


def make(asked: Asked, to: Out | None) -> plan.Plan:
    """The plan, and its files where they are wanted; exits, with words, where that fails."""
    try:
        made = _plan(asked)
        if to is not None:
            _write(render.files(made), to)
    except (errors.ApiError, errors.BadInput) as error:
        cli_errors.stop(cli_errors.line(error), cli_errors.code(error))
    except (OSError, UnicodeDecodeError) as error:
        cli_errors.stop(str(error), cli_errors.BAD)
    return made


def is_open(made: plan.Plan) -> bool:
    """Whether somebody has to look at something."""
    return bool(made.open) or any(one.fate.is_for_people for one in made.findings)


def _plan(asked: Asked) -> plan.Plan:
    if bool(asked.files) == bool(asked.cluster.configmap):
        raise errors.BadInput("input", "is missing or twice", "either FILES or --configmap")
    texts = {str(path): _read(path) for path in asked.files}
    told: object = None
    if asked.cluster.configmap:
        text, told = _from_cluster(asked.cluster, with_nodes=asked.nodes is None)
        texts[asked.cluster.configmap] = text
    if asked.nodes is not None:
        told = (config_files.load(_read(asked.nodes), str(asked.nodes)) or [[]])[0]
    known = None if told is None else migrate_nodes.read(told, str(asked.nodes or "nodes"))
    return plan.make(config_files.find(texts), known, asked.options)


def _read(path: Path) -> str:
    return sys.stdin.read() if str(path) == _STDIN else path.read_text(encoding="utf-8")


def _from_cluster(cluster: Cluster, *, with_nodes: bool) -> tuple[str, object]:
    # Loaded where a cluster is read: the client takes most of a second.
    from driver.kube import client, gvr  # noqa: PLC0415

    usual = Path(os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    kube = client.KubeClient.connect(cluster.kubeconfig or usual, _AGENT).with_timeout(_TIMEOUT_S)
    found = kube.get(gvr.CONFIG_MAPS, cluster.configmap, cluster.namespace)
    found = {"kind": "ConfigMap", **found}
    items = kube.list(gvr.NODES).items if with_nodes else None
    return json.dumps(found), items


def _write(files: Mapping[str, str], to: Out) -> None:
    there = [name for name in files if (to.folder / name).exists()]
    if there and not to.force:
        problem = f"has {', '.join(sorted(there))}"
        raise errors.BadInput(str(to.folder), problem, "an empty folder, or --force")
    to.folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (to.folder / name).write_text(text, encoding="utf-8")


def show(made: plan.Plan, output: out.Format) -> None:
    """Print it."""
    match output:
        case out.Format.TABLE | out.Format.WIDE:
            print(render.text(made), end="")
        case out.Format.JSON:
            print(json.dumps(render.document(made), indent=2))
        case out.Format.YAML:
            print(render.as_yaml(render.document(made)), end="")
