"""`ration generate claim`: manifests from flags."""

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer
import yaml

from driver import names
from driver.cli import errors as cli_errors
from driver.cli import output as out

if TYPE_CHECKING:
    from driver.cli.generate import claim as making

HELP = (
    "Write a ResourceClaim, or a template of one, from what is wanted.\n\n"
    "What kind of device: --whole, --mig, --mps, --time-slice, or --slice, which leaves the kind "
    "to the controller and is meant where only amounts are named. It says nothing about the "
    "cluster: what no node has is written all the same, and waits. What is written passes `ration "
    "validate`.\n\n"
    "  ration generate claim --whole 2 --same nvlink --product H100\n\n"
    "  ration generate claim --memory 20Gi --compute 25 --template --pod\n\n"
    "  ration generate claim --mig 1g.10gb --name part | kubectl apply -f -\n\n"
    "Exit codes: 0 it is written; 2 the flags contradict each other."
)
_Whole = Annotated[int, typer.Option(min=0, max=32, help="So many whole GPUs of one node.")]
_Mig = Annotated[str, typer.Option(help="A MIG device of this profile: 1g.10gb.")]
_Mps = Annotated[bool, typer.Option("--mps", help="A share beside others, under MPS.")]
_Turns = Annotated[bool, typer.Option("--time-slice", help="A share in turns with others.")]
_Slice = Annotated[bool, typer.Option("--slice", help="A part of a GPU, whichever kind does.")]
_Memory = Annotated[str, typer.Option(help="Memory of a share or part: 20Gi.")]
_Compute = Annotated[
    int, typer.Option(min=0, max=100, help="Compute of a share or part, percent of a GPU.")
]
_Isolation = Annotated[
    Literal["hardware", "limits", "none"] | None,
    typer.Option(help="How well a part by need is kept apart.", show_default=False),
]
_Product = Annotated[
    str, typer.Option(help="Of GPUs whose product name has this in it, in any case: H100.")
]
_Same = Annotated[
    Literal["nvlink", "numa", "pcie"] | None,
    typer.Option(
        help="Of several: each with NVLink; of one NUMA node; under one PCIe root.",
        show_default=False,
    ),
]
_Count = Annotated[int, typer.Option(min=0, max=32, help="So many shares or MIG devices.")]
_Template = Annotated[
    bool, typer.Option("--template", help="A template: each pod gets a claim of its own.")
]
_Pod = Annotated[bool, typer.Option("--pod", help="And a pod that uses it.")]
_Image = Annotated[str, typer.Option(help="With --pod: its image, with nvidia-smi on its PATH.")]
_Namespace = Annotated[
    str, typer.Option("--namespace", "-n", help="Written into it; by default none is.")
]
_Output = Annotated[Literal["yaml", "json"], typer.Option("--output", "-o", help="yaml or json")]


def claim(  # noqa: PLR0913 - the options of a command
    *,
    whole: _Whole = 0,
    mig: _Mig = "",
    mps: _Mps = False,
    time_slice: _Turns = False,
    by_need: _Slice = False,
    memory: _Memory = "",
    compute: _Compute = 0,
    isolation: _Isolation = None,
    product: _Product = "",
    same: _Same = None,
    count: _Count = 0,
    template: _Template = False,
    pod: _Pod = False,
    image: _Image = "ubuntu:24.04",
    name: Annotated[str, typer.Option(help="Of everything that is written.")] = "gpu",
    namespace: _Namespace = "",
    driver_name: Annotated[str, typer.Option(help="driverName, as installed")] = names.DRIVER,
    output: _Output = "yaml",
) -> None:
    """Write a ResourceClaim, or a template of one, from what is wanted."""
    # Loaded where something is made: the selectors' compiler takes half a second.
    from driver.cli.generate import claim as making  # noqa: PLC0415

    wish = making.ClaimRequest(
        making.Kind(whole, mig, mps, time_slice, by_need),
        making.Amount(memory, compute, count, making.Isolation(isolation) if isolation else None),
        product,
        making.SharedAttribute(same) if same else None,
    )
    form = making.OutputForm(name, namespace, template, image if pod else "", driver_name)
    with cli_errors.exit_on_error():
        built = making.documents(wish, form)
    _print(built, output)


def _print(print_: "list[making.Raw]", output: Literal["yaml", "json"]) -> None:
    if output == "yaml":
        print("---\n".join(yaml.safe_dump(item, sort_keys=False) for item in print_), end="")
    elif len(print_) == 1:
        out.show_document(print_[0], out.Format.JSON)
    else:
        print(json.dumps({"apiVersion": "v1", "kind": "List", "items": print_}, indent=2))


app = typer.Typer(name="generate", no_args_is_help=True, rich_markup_mode=None)
app.command("claim", help=HELP)(claim)
