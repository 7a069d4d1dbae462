"""`ration migrate`: a plan for Ration of the device plugin's configuration, or of a DRA driver."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from driver.cli import errors as cli_errors
from driver.cli import output as out

DETAILS = (
    "Reads the configuration of the device plugin and prints the devices that each node "
    "will publish, values for Ration's chart, DeviceClasses, ResourceQuota keys, and the "
    "commands that migrate nodes one by one, and back. Every setting of the old file is "
    "classified: used, changed (review it), dropped (no longer applicable) or unknown. "
    "Nothing is applied to the cluster.\n\n"
    "  kubectl -n NS get configmap NAME -o yaml > old.yaml\n\n"
    "  kubectl get nodes -o json > nodes.json\n\n"
    "  ration migrate old.yaml --nodes nodes.json --out plan\n\n"
    "Nodes of another DRA driver, whose devices the controller allocates, need no such input: "
    "the plan has the values of both charts, and the commands for each node.\n\n"
    "  ration migrate --from-dra gpu.nvidia.com --node gpu-1 --node gpu-2\n\n"
    "Exit codes: 0 the plan is printed; 1 with --strict, where a setting is changed or "
    "unknown or something is left to see to; 2 the input cannot be read, or --out would "
    "overwrite; 3 the API server refused or was not reached."
)

_Files = Annotated[
    list[Path] | None,
    typer.Argument(
        help="ConfigMap, configuration, Helm values (NVIDIA's chart, GPU operator), ClusterPolicy, "
        "DaemonSet; several; - is standard input.",
        show_default=False,
    ),
]
_Nodes = Annotated[
    Path | None, typer.Option(help="File with the output of `kubectl get nodes -o json`.")
]
_ConfigMap = Annotated[
    str,
    typer.Option(help="Read the configuration from this ConfigMap, and the nodes, of the cluster."),
]
_Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Namespace of --configmap.")]
_Kubeconfig = Annotated[
    Path | None,
    typer.Option(help="Kubeconfig for --configmap. Default: $KUBECONFIG, then ~/.kube/config."),
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
_FromDra = Annotated[
    str,
    typer.Option(
        "--from-dra",
        metavar="DRIVER",
        help="Plan the move of nodes of this DRA driver, such as gpu.nvidia.com; without FILES.",
    ),
]
_Node = Annotated[
    list[str] | None,
    typer.Option("--node", help="Node of --from-dra; several.", show_default=False),
]
_Out = Annotated[
    Path | None, typer.Option("--out", help="Write the files of the plan to this folder.")
]
_Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
_Strict = Annotated[bool, typer.Option("--strict", help="Exit 1 if a setting needs review.")]


def show(  # noqa: PLR0913 - the options of a command
    files: _Files = None,
    *,
    nodes: _Nodes = None,
    configmap: _ConfigMap = "",
    namespace: _Namespace = "nvidia-device-plugin",
    kubeconfig: _Kubeconfig = None,
    default: _Default = "",
    from_dra: _FromDra = "",
    node: _Node = None,
    allocator: _Allocator = "controller",
    operator: _Operator = None,
    output: out.Output = out.Format.TABLE,
    folder: _Out = None,
    per_gpu: _PerGpu = False,
    force: _Force = False,
    strict: _Strict = False,
) -> None:
    """Plan the move from the NVIDIA device plugin, or a DRA driver, to Ration."""
    # Loaded where a plan is made: the models take half a second, and other commands need none.
    from driver.cli.migrate import plan, run, steps  # noqa: PLC0415

    if from_dra or node:
        if not from_dra or files or configmap or nodes or folder:
            expected = "--from-dra, with --node and --output alone"
            cli_errors.stop(f"--from-dra and --node: expected {expected}", cli_errors.BAD)
        run.show_dra(steps.DraPlan(from_dra, tuple(node or ())), output)
        return

    options = plan.PlanOptions(
        scheduler=allocator == "scheduler", per_gpu=per_gpu, default=default, operator=operator
    )
    cluster = run.Cluster(configmap, namespace, kubeconfig)
    requested = run.MigrateOptions(tuple(files or ()), nodes, cluster, options)
    migration = run.run_migration(
        requested, None if folder is None else run.OutputFolder(folder, force=force)
    )
    run.show(migration, output)
    if strict and run.needs_attention(migration):
        raise typer.Exit(run.TO_SEE)
