"""`ration simulate`: what would happen if these pods were created now."""

from typing import Annotated

import typer

from driver import clock, names
from driver.cli import errors as cli_errors
from driver.cli import output as out
from driver.cli.cluster import Kubeconfig
from driver.scheduling.allocator import policies as known

_DEFAULT = ",".join(known.DEFAULT)

DETAILS = (
    "The controller's own allocator decides, with its policies, on the live cluster (the default), "
    "a dump of one (`ration dump`), or the list of nodes of a public trace. Nothing is written "
    "anywhere: the right to list is enough.\n\n"
    "Pods, and what has a pod template: Deployments, StatefulSets, Jobs, CronJobs (one run), "
    "JobSets, LeaderWorkerSets and others; with as many pods as they have at once. Claims are made "
    "of ResourceClaimTemplates. Nodes, ResourceSlices and DeviceClasses in the files are added to "
    "the cluster too: what would fit on one node more?\n\n"
    "Not looked at: quotas, LimitRanges and queues; pods without a claim, unless they name their "
    "node; what kube-scheduler decides (spreading, affinity between pods, claims that are its to "
    "allocate); nothing is preempted.\n\n"
    "  ration simulate -f pods.yaml\n\n"
    "  ration dump > cluster.yaml; ration simulate -f pods.yaml --cluster cluster.yaml -o json\n\n"
    "  ration simulate -f openb_pod_list_default.csv --cluster openb_node_list_gpu_node.csv\n\n"
    "Exit codes: 0 every pod that asks for devices has a place; 1 some have none; 2 the input "
    "cannot be read; 3 the API server refused or was not reached."
)

_Files = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        "-f",
        help="Manifests, or a trace's list of pods; a file, a folder, - for standard input; again "
        "for more.",
        show_default=False,
    ),
]
_Cluster = Annotated[
    str | None,
    typer.Option(
        help="In place of the live cluster: a dump (file, folder, -), or a trace's list of nodes.",
        show_default=False,
    ),
]
_Policies = Annotated[
    str, typer.Option(help="As the controller's --policies; with none, the first devices that do.")
]
_WorkloadMixFile = Annotated[
    str | None,
    typer.Option(
        "--workload-mix",
        help="Path of a WorkloadMix document, as for the controller.",
        show_default=False,
    ),
]
_Namespace = Annotated[
    str, typer.Option("--namespace", "-n", help="Of objects in the files that name none.")
]
_Timeline = Annotated[
    bool,
    typer.Option(
        "--timeline",
        help="Of a trace: pods come and go in their time, and wait where nothing is free. Without, "
        "all come at once and none leaves.",
    ),
]
_Convert = Annotated[
    bool,
    typer.Option(
        "--convert",
        help="Take pods that ask nvidia.com/gpu and the like as the admission webhook makes them.",
    ),
]


def show(  # noqa: PLR0913 - the options of a command
    file: _Files = None,
    *,
    cluster: _Cluster = None,
    policies: _Policies = _DEFAULT,
    workload_mix: _WorkloadMixFile = None,
    driver_name: Annotated[str, typer.Option(help="driverName, as installed")] = names.DRIVER,
    namespace: _Namespace = "default",
    kubeconfig: Kubeconfig = None,
    timeline: _Timeline = False,
    convert: _Convert = False,
    output: out.Output = out.Format.TABLE,
) -> None:
    """Tell where pods would go, and which devices they would get."""
    # Loaded where something is simulated: the selectors' compiler takes half a second.
    from driver.cli.simulate import inputs, progress, render  # noqa: PLC0415

    requested = inputs.SimulateOptions(
        tuple(file or ()),
        cluster,
        policies,
        driver_name,
        namespace,
        timeline=timeline,
        convert=convert,
        kubeconfig=kubeconfig,
        workload_mix=workload_mix,
    )
    with cli_errors.exit_on_error():
        result = inputs.load_inputs(requested)
    with progress.show_progress("deciding", clock.SystemClock()) as report_progress:
        report = inputs.run_replay(result, requested, report_progress)
    if output.is_for_people:
        render.print_table(report, result.missing, result.notes, timeline=timeline)
    else:
        document = render.document(report, result.missing, result.notes, timeline=timeline)
        out.show_document(document, output)
    raise typer.Exit(0 if render.is_all_placed(report) else 1)
