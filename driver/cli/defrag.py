"""`ration defrag`: which pods to move so that a shape fits."""

from typing import Annotated

import typer

from driver import names
from driver.cli import ending
from driver.cli import output as out
from driver.cli.cluster import Kubeconfig
from driver.controller.allocation import policies as known

_USUAL = ",".join(known.DEFAULT)

HELP = (
    "Plan which pods to move so that a shape fits: GPUs that are free on many nodes become free "
    "on one.\n\n"
    'Only pods are moved that opted in by the annotation `ration.dev/defrag: "true"` and that a '
    "controller (a ReplicaSet, a Job) would make again. The plan with the fewest pods is printed: "
    "which pods, what they hold now, and where each would go again. A plan in which a pod finds no "
    "place is refused, unless with --allow-pending. Nothing is written anywhere: the right to list "
    "is enough. Carrying a plan out (--apply) comes with preemption.\n\n"
    "To carry it out by hand: create the pod that is to come first, then evict the pods of the "
    "plan. Of pods of one priority the controller decides for the older one first.\n\n"
    "Not looked at: PodDisruptionBudgets, quotas, and what kube-scheduler decides (spreading, "
    "affinity between pods). Flags ask no CPU and no memory of the node; -f does.\n\n"
    "  ration defrag --plan --gpus 8\n\n"
    "  ration defrag --plan --gpus 2 --product H100\n\n"
    "  ration defrag --plan --profile 3g.40gb\n\n"
    "  ration defrag --plan --memory 40Gi -o json\n\n"
    "  ration defrag --plan -f train.yaml --allow-pending\n\n"
    "  ration dump > cluster.yaml; ration defrag --plan --gpus 8 --cluster cluster.yaml\n\n"
    "Exit codes: 0 there is a plan, or nothing to do; 1 there is none; 2 the input cannot be read, "
    "or not all could be seen and nothing was found; 3 the API server refused or was not reached."
)

_Plan = Annotated[bool, typer.Option("--plan", help="Print the plan; the only thing there is yet.")]
_Gpus = Annotated[int, typer.Option(min=0, max=32, help="So many whole GPUs of one node.")]
_Product = Annotated[
    str, typer.Option(help="Of GPUs whose product name has this in it, in any case: H100.")
]
_Profile = Annotated[str, typer.Option(help="A MIG device of this profile: 3g.40gb.")]
_Memory = Annotated[str, typer.Option(help="A part of a GPU with so much memory: 40Gi.")]
_Class = Annotated[
    str,
    typer.Option(
        "--class",
        help=f"DeviceClass, in place of {names.CLASS_GPU} for --gpus, {names.CLASS_MIG} for "
        f"--profile, {names.CLASS_SLICE} for --memory.",
        show_default=False,
    ),
]
_Files = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        "-f",
        help="A pod with its claims and templates, or a claim or template alone; a file, a "
        "folder, - for standard input; again for more.",
        show_default=False,
    ),
]
_Pending = Annotated[
    bool, typer.Option("--allow-pending", help="Take plans after which evicted pods have to wait.")
]
_Cluster = Annotated[
    str | None,
    typer.Option(
        help="In place of the live cluster: a dump (file, folder, -).", show_default=False
    ),
]
_Policies = Annotated[str, typer.Option(help="As the controller's --policies.")]
_Namespace = Annotated[
    str, typer.Option("--namespace", "-n", help="Of the shape, and of objects that name none.")
]


def show(  # noqa: PLR0913 - the options of a command
    *,
    plan: _Plan = False,
    gpus: _Gpus = 0,
    product: _Product = "",
    profile: _Profile = "",
    memory: _Memory = "",
    device_class: _Class = "",
    file: _Files = None,
    allow_pending: _Pending = False,
    cluster: _Cluster = None,
    policies: _Policies = _USUAL,
    driver_name: Annotated[str, typer.Option(help="driverName, as installed")] = names.DRIVER,
    namespace: _Namespace = "default",
    kubeconfig: Kubeconfig = None,
    output: out.Output = out.Format.TABLE,
) -> None:
    """Plan which pods to move so that a shape fits."""
    if not plan:
        typer.echo("nothing asked: --plan prints a plan; carrying it out comes later", err=True)
        raise typer.Exit(ending.BAD)
    # Loaded where something is planned: the selectors' compiler takes half a second.
    from driver.cli.defragging import asking, shape, showing  # noqa: PLC0415
    from driver.controller.allocation.whatif import defrag  # noqa: PLC0415

    told = shape.Shape(gpus, product, profile, memory, device_class, driver_name)
    asked = asking.Asked(told, tuple(file or ()), cluster, policies, namespace, kubeconfig)
    with ending.told():
        found = asking.find(asked)
    made = defrag.make(found.world, found.workload)
    near = asking.near(found, made) if isinstance(made, defrag.NoPlan) else None
    for one in (*found.notes, *(f"not seen: {one}" for one in found.unseen)):
        typer.echo(one, err=True)
    if output is out.Format.TABLE:
        showing.print_table(made, near, allow_pending=allow_pending)
    else:
        document = showing.document(found, made, near, allow_pending=allow_pending)
        out.show_document(document, output)
    raise typer.Exit(showing.code(found, made, allow_pending=allow_pending))
