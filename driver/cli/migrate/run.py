"""Runs `ration migrate`: reads files or a cluster, plans, writes."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from driver import errors
from driver.cli import errors as cli_errors
from driver.cli import output as out
from driver.cli.migrate import config_files, plan, render, steps
from driver.cli.migrate import nodes as migrate_nodes

TO_SEE = 1
"""Exit code with --strict."""
_AGENT = "ration-cli"
_STDIN = "-"
_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Cluster to read from instead of files; unused without a ConfigMap's name."""

    configmap: str
    namespace: str
    kubeconfig: Path | None


@dataclass(frozen=True, slots=True)
class MigrateOptions:
    """Inputs of the plan."""

    files: tuple[Path, ...]
    nodes: Path | None
    cluster: Cluster
    options: plan.PlanOptions


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """Folder for files, and whether to overwrite existing ones."""

    folder: Path
    force: bool


def run_migration(migrate_options: MigrateOptions, to: OutputFolder | None) -> plan.Plan:
    """The plan, and its files where they are wanted; exits, with words, where that fails."""
    try:
        migration = _plan(migrate_options)
        if to is not None:
            _write(render.plan_files(migration), to)
    except (errors.ApiError, errors.BadInput) as error:
        cli_errors.stop(cli_errors.error_line(error), cli_errors.exit_code(error))
    except (OSError, UnicodeDecodeError) as error:
        cli_errors.stop(str(error), cli_errors.BAD)
    return migration


def needs_attention(migration: plan.Plan) -> bool:
    """Return whether a person has to look at something."""
    return bool(migration.open) or any(
        finding.fate.needs_attention for finding in migration.findings
    )


def _plan(migrate_options: MigrateOptions) -> plan.Plan:
    if bool(migrate_options.files) == bool(migrate_options.cluster.configmap):
        raise errors.BadInput("input", "is missing or twice", "either FILES or --configmap")
    texts = {str(path): _read(path) for path in migrate_options.files}
    message: object = None
    if migrate_options.cluster.configmap:
        text, message = _from_cluster(
            migrate_options.cluster, with_nodes=migrate_options.nodes is None
        )
        texts[migrate_options.cluster.configmap] = text
    if migrate_options.nodes is not None:
        message = (
            config_files.load(_read(migrate_options.nodes), str(migrate_options.nodes)) or [[]]
        )[0]
    nodes = (
        None
        if message is None
        else migrate_nodes.read(message, str(migrate_options.nodes or "nodes"))
    )
    return plan.build_plan(config_files.read_configs(texts), nodes, migrate_options.options)


def _read(path: Path) -> str:
    return sys.stdin.read() if str(path) == _STDIN else path.read_text(encoding="utf-8")


def _from_cluster(cluster: Cluster, *, with_nodes: bool) -> tuple[str, object]:
    # Loaded where a cluster is read: the client takes most of a second.
    from driver.kube import client, gvr  # noqa: PLC0415

    usual = Path(os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    kube = client.KubeClient.connect(cluster.kubeconfig or usual, _AGENT).with_timeout(_TIMEOUT_S)
    result = kube.get(gvr.CONFIG_MAPS, cluster.configmap, cluster.namespace)
    result = {"kind": "ConfigMap", **result}
    items = kube.list(gvr.NODES).items if with_nodes else None
    return json.dumps(result), items


def _write(files: Mapping[str, str], to: OutputFolder) -> None:
    existing = [name for name in files if (to.folder / name).exists()]
    if existing and not to.force:
        problem = f"has {', '.join(sorted(existing))}"
        raise errors.BadInput(str(to.folder), problem, "an empty folder, or --force")
    to.folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (to.folder / name).write_text(text, encoding="utf-8")


def show(migration: plan.Plan, output: out.Format) -> None:
    """Print the plan."""
    _print(render.plan_text(migration), render.plan_document(migration), output)


def show_dra(migration: steps.DraPlan, output: out.Format) -> None:
    """Print the plan of the move from a DRA driver."""
    _print(render.dra_text(migration), render.dra_document(migration), output)


def _print(text: str, document: Mapping[str, object], output: out.Format) -> None:
    match output:
        case out.Format.TABLE | out.Format.WIDE:
            print(text, end="")
        case out.Format.JSON:
            print(json.dumps(document, indent=2))
        case out.Format.YAML:
            print(render.as_yaml(document), end="")
