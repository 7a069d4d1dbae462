"""`ration defrag`: which pods to move so that a shape fits."""

from typing import TYPE_CHECKING, Annotated

import typer

from driver import errors, names
from driver.cli import cluster as cluster_of
from driver.cli import errors as cli_errors
from driver.cli import output as out
from driver.cli.cluster import Kubeconfig
from driver.scheduling.allocator import policies as known

if TYPE_CHECKING:
    from driver.api import reservations as api
    from driver.cli.defrag import inputs
    from driver.scheduling.explain import defrag

_WITHIN_S = 120.0
"""Within it the pods of a plan are gone, unless a budget holds them up."""
_USUAL = ",".join(known.DEFAULT)

DETAILS = (
    'Only pods with the annotation `ration.dev/defrag: "true"` and a controller that '
    "recreates them (ReplicaSet, Job) are moved. Prints the plan with the fewest pods: "
    "their devices now, and where each will be placed again. A plan that leaves a pod "
    "pending is refused, unless --allow-pending is set. With --plan nothing is written; "
    "list rights are sufficient.\n\n"
    "--apply makes a Reservation of what becomes free, for whom --for says (by default "
    "the pod of -f), and the controller evicts the pods of the plan: PodDisruptionBudgets "
    "are respected. That takes the rights to create Reservations, to patch their status, "
    "and to evict pods. What was begun is undone by deleting the Reservation.\n\n"
    "Not considered while planning: PodDisruptionBudgets, quotas, and decisions of "
    "kube-scheduler (spreading, pod affinity). Requests by flags need no CPU or memory of "
    "the node; those of -f do.\n\n"
    "  ration defrag --plan --gpus 8\n\n"
    "  ration defrag --plan --gpus 2 --product H100\n\n"
    "  ration defrag --plan --profile 3g.40gb\n\n"
    "  ration defrag --plan --memory 40Gi -o json\n\n"
    "  ration defrag --plan -f train.yaml --allow-pending\n\n"
    "  ration defrag --apply --gpus 8 --for gang/train\n\n"
    "  ration dump > cluster.yaml; ration defrag --plan --gpus 8 --cluster cluster.yaml\n\n"
    "Exit codes: 0 there is a plan, or nothing to do, or all pods of it are gone; 1 there "
    "is none, or not all are gone in time; 2 the input cannot be read, or not all could "
    "be seen and nothing was found; 3 the API server refused or was not reached."
)

_Plan = Annotated[bool, typer.Option("--plan", help="Print the plan without executing it.")]
_Apply = Annotated[bool, typer.Option("--apply", help="Print the plan and execute it.")]
_For = Annotated[
    str,
    typer.Option(
        "--for",
        help="With --apply: the holder of the freed devices: pod/NAME, gang/NAME, claim/NAME, "
        "queue/NAME, or a pod label such as app=train.",
        show_default=False,
    ),
]
_Ttl = Annotated[
    str, typer.Option(help="With --apply: duration for which the devices are held, such as 30m.")
]
_Gpus = Annotated[int, typer.Option(min=0, max=32, help="Number of whole GPUs of one node.")]
_Product = Annotated[
    str, typer.Option(help="Substring of the GPU's product name, case-insensitive, such as H100.")
]
_Profile = Annotated[str, typer.Option(help="MIG profile, such as 3g.40gb.")]
_Memory = Annotated[str, typer.Option(help="Memory of a part of a GPU, such as 40Gi.")]
_Class = Annotated[
    str,
    typer.Option(
        "--class",
        help=f"DeviceClass. Default: {names.CLASS_GPU} for --gpus, {names.CLASS_MIG} for "
        f"--profile, {names.CLASS_SLICE} for --memory.",
        show_default=False,
    ),
]
_Files = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        "-f",
        help="Manifest of a pod with its claims and templates, or of a claim or template; a file, "
        "a folder, or - for standard input. May be repeated.",
        show_default=False,
    ),
]
_Pending = Annotated[
    bool, typer.Option("--allow-pending", help="Allow plans that leave evicted pods pending.")
]
_Cluster = Annotated[
    str | None,
    typer.Option(
        help="Read a dump (file, folder, or -) instead of the live cluster.", show_default=False
    ),
]
_Policies = Annotated[
    str, typer.Option(help="Placement policies, as --policies of the controller.")
]
_Namespace = Annotated[
    str,
    typer.Option("--namespace", "-n", help="Namespace of the request, and of objects without one."),
]


def show(  # noqa: PLR0913 - the options of a command
    *,
    plan: _Plan = False,
    apply: _Apply = False,
    keep_for: _For = "",
    ttl: _Ttl = "30m",
    gpus: _Gpus = 0,
    product: _Product = "",
    profile: _Profile = "",
    memory: _Memory = "",
    device_class: _Class = "",
    file: _Files = None,
    allow_pending: _Pending = False,
    cluster: _Cluster = None,
    policies: _Policies = _USUAL,
    driver_name: Annotated[
        str, typer.Option(help="name of the DRA driver, as installed")
    ] = names.DRIVER,
    namespace: _Namespace = "default",
    kubeconfig: Kubeconfig = None,
    output: out.Output = out.Format.TABLE,
) -> None:
    """Plan which pods to move so that a shape fits, or move them."""
    if plan == apply:
        typer.echo("nothing asked, or two things: --plan prints a plan, --apply moves", err=True)
        raise typer.Exit(cli_errors.BAD)
    # Loaded where something is planned: the selectors' compiler takes half a second.
    from driver.cli.defrag import inputs, render, shape  # noqa: PLC0415
    from driver.scheduling.explain import defrag  # noqa: PLC0415

    message = shape.Shape(gpus, product, profile, memory, device_class, driver_name)
    defrag_options = inputs.DefragOptions(
        message, tuple(file or ()), cluster, policies, namespace, kubeconfig
    )
    with cli_errors.exit_on_error():
        defrag_inputs = inputs.load_inputs(defrag_options)
        to = _holder(defrag_options, defrag_inputs, keep_for) if apply else None
    built = defrag.make_plan(defrag_inputs.world, defrag_inputs.workload)
    near = inputs.find_nearest(defrag_inputs, built) if isinstance(built, defrag.NoPlan) else None
    for item in (*defrag_inputs.notes, *(f"not seen: {item}" for item in defrag_inputs.unreadable)):
        typer.echo(item, err=True)
    if output.is_for_people:
        render.print_table(built, near, allow_pending=allow_pending)
    else:
        document = render.document(defrag_inputs, built, near, allow_pending=allow_pending)
        out.show_document(document, output)
    code = render.code(defrag_inputs, built, allow_pending=allow_pending)
    if code == 0 and to is not None and isinstance(built, defrag.Plan) and built.moves:
        with cli_errors.exit_on_error():
            code = _carry_out(defrag_options, defrag_inputs, built, to, ttl)
    raise typer.Exit(code)


def _holder(
    defrag_options: "inputs.DefragOptions", defrag_inputs: "inputs.DefragInputs", keep_for: str
) -> "api.Holder":
    """Whom it is kept for. Raises BadInput."""
    from driver.cli.defrag import apply as defrag_apply  # noqa: PLC0415

    if defrag_options.cluster is not None:
        raise errors.BadInput("--apply", "carries nothing out in a dump", "the live cluster")
    if keep_for:
        return defrag_apply.parse_holder(keep_for)
    if not defrag_options.files:
        raise errors.BadInput("--apply", "does not say for whom", "--for, or a pod by -f")
    return defrag_apply.parse_holder(f"pod/{defrag_inputs.workload.pod.name}")


def _carry_out(
    defrag_options: "inputs.DefragOptions",
    defrag_inputs: "inputs.DefragInputs",
    plan: "defrag.Plan",
    to: "api.Holder",
    ttl: str,
) -> int:
    """Reserve, and follow until the pods of the plan are gone; the exit code. Raises ApiError."""
    from driver.cli.defrag import apply as defrag_apply  # noqa: PLC0415

    namespace = defrag_inputs.workload.pod.namespace
    work = defrag_apply.DefragRun(
        cluster_of.connect(defrag_options.kubeconfig),
        namespace,
        lambda text: typer.echo(text, err=True),
    )
    body, status = defrag_apply.build_reservation(defrag_inputs, plan, to, ttl, namespace)
    name = work.start(body, status)
    if work.follow(plan, _WITHIN_S):
        typer.echo(f"done: reservation {namespace}/{name} keeps it for {ttl}", err=True)
        return 0
    typer.echo(f"not all are gone after {_WITHIN_S:.0f} s; the controller goes on", err=True)
    return 1
