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
    "Runs the controller's allocator and policies on the live cluster (default), on a "
    "dump (`ration dump`), or on the node list of a public trace. Nothing is written; "
    "list rights are sufficient.\n\n"
    "Input: Pods and objects with a pod template (Deployments, StatefulSets, Jobs, "
    "CronJobs as one run, JobSets, LeaderWorkerSets and others), with their number of "
    "parallel pods. Claims are created from ResourceClaimTemplates. Nodes, ResourceSlices "
    "and DeviceClasses in the files are added to the cluster, to test additional nodes.\n\n"
    "Not considered: quotas, LimitRanges and queues; pods without a claim, unless they "
    "set spec.nodeName; decisions of kube-scheduler (spreading, pod affinity, claims that "
    "it allocates); preemption.\n\n"
    "  ration simulate -f pods.yaml\n\n"
    "  ration dump > cluster.yaml; ration simulate -f pods.yaml --cluster cluster.yaml -o json\n\n"
    "  ration simulate -f openb_pod_list_default.csv --cluster openb_node_list_gpu_node.csv\n\n"
    "Exit codes: 0 every pod that asks for devices has a place; 1 some have none; 2 the "
    "input cannot be read; 3 the API server refused or was not reached."
)

_Files = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        "-f",
        help="Manifests, or the pod list of a trace; a file, a folder, or - for standard input. "
        "May be repeated.",
        show_default=False,
    ),
]
_Cluster = Annotated[
    str | None,
    typer.Option(
        help="Read a dump (file, folder, or -) or the node list of a trace instead of the live "
        "cluster.",
        show_default=False,
    ),
]
_Policies = Annotated[
    str,
    typer.Option(
        help="Placement policies, as --policies of the controller. Empty: the first fitting "
        "devices."
    ),
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
    str, typer.Option("--namespace", "-n", help="Namespace of objects in the files without one.")
]
_Timeline = Annotated[
    bool,
    typer.Option(
        "--timeline",
        help="Replay a trace over time: pods arrive, wait and end as recorded. By default all "
        "arrive at once and none ends.",
    ),
]
_Convert = Annotated[
    bool,
    typer.Option(
        "--convert",
        help="Convert pods that request nvidia.com/gpu and similar resources, as the admission "
        "webhook does.",
    ),
]


def show(  # noqa: PLR0913 - the options of a command
    file: _Files = None,
    *,
    cluster: _Cluster = None,
    policies: _Policies = _DEFAULT,
    workload_mix: _WorkloadMixFile = None,
    driver_name: Annotated[
        str, typer.Option(help="name of the DRA driver, as installed")
    ] = names.DRIVER,
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
