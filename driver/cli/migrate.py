"""`ration migrate`: the device plugin's configuration, as a plan for Ration."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

from driver import errors
from driver.cli import output as out
from driver.cli.migrating import documents, plan, population, render

HELP = (
    "Plan the move from the NVIDIA device plugin to Ration.\n\n"
    "Reads how the device plugin is configured and prints what each node is offered as then, the "
    "values of Ration's chart, DeviceClasses, ResourceQuota keys, and the commands that move one "
    "node after another, and back. Every setting of the old file is told: used, changed (look at "
    "it), dropped (it has no meaning any more) or unknown. Nothing is applied to a cluster.\n\n"
    "  kubectl -n NS get configmap NAME -o yaml > old.yaml\n\n"
    "  kubectl get nodes -o json > nodes.json\n\n"
    "  ration migrate old.yaml --nodes nodes.json --out plan\n\n"
    "Exit codes: 0 the plan is printed; 1 with --strict, where a setting is changed or unknown or "
    "something is left to see to; 2 the input cannot be read, or --out would overwrite; 3 the API "
    "server refused or was not reached."
)
_AGENT = "ration-cli"
_TO_SEE, _UNREAD, _UNREACHED = 1, 2, 3
_STDIN = "-"
_TIMEOUT_S = 20.0


_Files = Annotated[
    list[Path] | None,
    typer.Argument(
        help="ConfigMap, configuration, Helm values (NVIDIA's chart, GPU operator), ClusterPolicy, "
        "DaemonSet; several; - is standard input.",
        show_default=False,
    ),
]
_Nodes = Annotated[Path | None, typer.Option(help="What `kubectl get nodes -o json` printed.")]
_ConfigMap = Annotated[
    str, typer.Option(help="Read this ConfigMap, and the nodes, from the cluster.")
]
_Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Of --configmap.")]
_Kubeconfig = Annotated[
    Path | None, typer.Option(help="For --configmap; else $KUBECONFIG, else ~/.kube/config.")
]
_Default = Annotated[
    str,
    typer.Option(help="Configuration of nodes without the label nvidia.com/device-plugin.config."),
]
_Allocator = Annotated[
    Literal["controller", "scheduler"],
    typer.Option(
        help="Who allocates then: Ration's controller, and its webhook converts pods; or "
        "kube-scheduler, and DeviceClasses have an extendedResourceName."
    ),
]
_Operator = Annotated[
    bool | None,
    typer.Option(
        help="Whether the GPU operator runs the device plugin; without, files and nodes tell.",
        show_default=False,
    ),
]
_PerGpu = Annotated[
    bool, typer.Option("--per-gpu", help="Take `devices`, which the plugin ignores, at its word.")
]
_Out = Annotated[
    Path | None, typer.Option("--out", help="Write the files of the plan into this folder.")
]
_Force = Annotated[bool, typer.Option("--force", help="Overwrite files there.")]
_Strict = Annotated[
    bool, typer.Option("--strict", help="Exit 1 where something has to be looked at.")
]


@dataclass(frozen=True, slots=True)
class _Cluster:
    """Where to read from in place of files."""

    configmap: str
    namespace: str
    kubeconfig: Path | None


def show(  # noqa: PLR0913 - the options of a command
    files: _Files = None,
    *,
    nodes: _Nodes = None,
    configmap: _ConfigMap = "",
    namespace: _Namespace = "nvidia-device-plugin",
    kubeconfig: _Kubeconfig = None,
    default: _Default = "",
    allocator: _Allocator = "controller",
    operator: _Operator = None,
    output: out.Output = out.Format.TABLE,
    folder: _Out = None,
    per_gpu: _PerGpu = False,
    force: _Force = False,
    strict: _Strict = False,
) -> None:
    """Plan the move from the NVIDIA device plugin to Ration."""
    cluster = _Cluster(configmap, namespace, kubeconfig)
    options = plan.Options(
        scheduler=allocator == "scheduler", per_gpu=per_gpu, default=default, operator=operator
    )
    try:
        made = _plan(files or [], nodes, cluster, options)
        if folder is not None:
            _write(render.files(made), folder, force=force)
    except errors.ApiError as error:
        _fail(error, _UNREACHED)
    except (errors.BadInput, OSError, UnicodeDecodeError) as error:
        _fail(error, _UNREAD)
    _print(made, output)
    if strict and (made.open or any(one.fate.is_for_people for one in made.findings)):
        raise typer.Exit(_TO_SEE)


def _plan(
    files: list[Path], nodes: Path | None, cluster: _Cluster, options: plan.Options
) -> plan.Plan:
    if bool(files) == bool(cluster.configmap):
        raise errors.BadInput("input", "is missing or twice", "either FILES or --configmap")
    texts = {str(path): _read(path) for path in files}
    told: object = None
    if cluster.configmap:
        text, told = _from_cluster(cluster, with_nodes=nodes is None)
        texts[cluster.configmap] = text
    if nodes is not None:
        told = (documents.load(_read(nodes), str(nodes)) or [None])[0]
    known = None if told is None else population.read(told, str(nodes or "nodes"))
    return plan.make(documents.find(texts), known, options)


def _read(path: Path) -> str:
    return sys.stdin.read() if str(path) == _STDIN else path.read_text(encoding="utf-8")


def _from_cluster(cluster: _Cluster, *, with_nodes: bool) -> tuple[str, object]:
    # Loaded where a cluster is read: the client takes most of a second.
    from driver.kube import client, resource  # noqa: PLC0415

    usual = Path(os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    kube = client.KubeClient.connect(cluster.kubeconfig or usual, _AGENT).within(_TIMEOUT_S)
    found = kube.get(resource.CONFIG_MAPS, cluster.configmap, cluster.namespace)
    found = {"kind": "ConfigMap", **found}
    items = kube.list(resource.NODES).items if with_nodes else None
    return json.dumps(found), items


def _write(files: Mapping[str, str], folder: Path, *, force: bool) -> None:
    there = [name for name in files if (folder / name).exists()]
    if there and not force:
        problem = f"has {', '.join(sorted(there))}"
        raise errors.BadInput(str(folder), problem, "an empty folder, or --force")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _print(made: plan.Plan, output: out.Format) -> None:
    match output:
        case out.Format.TABLE:
            print(render.text(made), end="")
        case out.Format.JSON:
            print(json.dumps(render.document(made), indent=2))
        case out.Format.YAML:
            print(render.as_yaml(render.document(made)), end="")


def _fail(error: Exception, code: int) -> NoReturn:
    typer.echo(str(error), err=True)
    raise typer.Exit(code) from error
