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
    "Generate a ResourceClaim or ResourceClaimTemplate from flags.\n\n"
    "The kind of device is --whole, --mig, --mps, --time-slice, or --slice, which lets "
    "the controller select the kind by the requested amounts. The cluster is not "
    "consulted: a claim that no node satisfies is generated too, and would stay pending. "
    "The output passes `ration validate`.\n\n"
    "  ration generate claim --whole 2 --same nvlink --product H100\n\n"
    "  ration generate claim --memory 20Gi --compute 25 --template --pod\n\n"
    "  ration generate claim --mig 1g.10gb --name part | kubectl apply -f -\n\n"
    "Exit codes: 0 it is written; 2 the flags contradict each other."
)
_Whole = Annotated[int, typer.Option(min=0, max=32, help="Number of whole GPUs of one node.")]
_Mig = Annotated[str, typer.Option(help="MIG profile, such as 1g.10gb.")]
_Mps = Annotated[bool, typer.Option("--mps", help="A share of a GPU under MPS.")]
_Turns = Annotated[bool, typer.Option("--time-slice", help="A time-sliced share of a GPU.")]
_Slice = Annotated[bool, typer.Option("--slice", help="A part of a GPU of any kind.")]
_Memory = Annotated[str, typer.Option(help="Memory of the share, such as 20Gi.")]
_Compute = Annotated[
    int, typer.Option(min=0, max=100, help="Compute of the share, in percent of a GPU.")
]
_Isolation = Annotated[
    Literal["hardware", "limits", "none"] | None,
    typer.Option(help="How well a part by need is kept apart.", show_default=False),
]
_Product = Annotated[
    str, typer.Option(help="Substring of the GPU's product name, case-insensitive, such as H100.")
]
_Same = Annotated[
    Literal["nvlink", "numa", "pcie"] | None,
    typer.Option(
        help="Of several: each with NVLink; of one NUMA node; under one PCIe root.",
        show_default=False,
    ),
]
_Count = Annotated[int, typer.Option(min=0, max=32, help="Number of shares or MIG devices.")]
_Template = Annotated[
    bool,
    typer.Option(
        "--template", help="Generate a ResourceClaimTemplate: each pod gets its own claim."
    ),
]
_Pod = Annotated[bool, typer.Option("--pod", help="Generate a pod that uses it too.")]
_Image = Annotated[
    str, typer.Option(help="With --pod: image of the pod, with nvidia-smi on its PATH.")
]
_Namespace = Annotated[
    str,
    typer.Option("--namespace", "-n", help="Namespace of the generated objects. Default: none."),
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
    name: Annotated[str, typer.Option(help="Name of the generated objects.")] = "gpu",
    namespace: _Namespace = "",
    driver_name: Annotated[
        str, typer.Option(help="name of the DRA driver, as installed")
    ] = names.DRIVER,
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
