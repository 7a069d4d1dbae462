"""`ration explain`: why a pod or a claim waits, or is where it is; what becomes of a node."""

from collections.abc import Callable
from typing import Annotated

import typer

from driver.cli import errors as cli_errors
from driver.cli import output as out
from driver.cli.explain import text
from driver.cli.sources import options, source

app = typer.Typer(name="explain", no_args_is_help=True, rich_markup_mode=None)
_POD = (
    "Explain why a pod is pending or placed where it is: the reason, what each node "
    "lacks, the nearest fit, and the remedy.\n\n"
    "Shows the controller's explanation if its API is reachable; otherwise it is computed "
    "locally from the objects you may list, without queues, gangs and reservations.\n\n"
    "  ration explain pod train-0 -n vision\n\n"
    "  ration explain pod train-0 -n vision -o json\n\n"
    "Exit codes: 0 it has its devices; 1 it waits, or something is wrong with them; 2 "
    "there is no such pod; 3 refused, or not reached."
)
_CLAIM = (
    "Explain a claim: its requests, devices and users, and why it is pending.\n\n"
    "  ration explain claim train -n vision\n\n"
    "Exit codes: 0 it has its devices; 1 it waits, or something is wrong with them; 2 "
    "there is no such claim; 3 refused, or not reached."
)
_NODE = (
    "Explain a node: its devices and their users, and why it is not used.\n\n"
    "  ration explain node gpu-1\n\n"
    "Exit codes: 0 all of it can be given to claims; 1 something is in the way; 2 no such "
    "node with GPUs; 3 refused, or not reached."
)
_Name = Annotated[str, typer.Argument(help="Its name, or NAMESPACE/NAME.")]
_NodeName = Annotated[str, typer.Argument(help="The node's name.")]


def pod(read_options: options.ReadOptions, name: _Name) -> None:
    """Say why a pod waits, or is where it is."""
    key = _key(read_options, name)
    _show(read_options, ["Pod"], lambda reports: text.explain_pod(reports, key))


def claim(read_options: options.ReadOptions, name: _Name) -> None:
    """Say what a claim asks and has."""
    key = _key(read_options, name)
    _show(read_options, ["ResourceClaim"], lambda reports: text.explain_claim(reports, key))


def node(read_options: options.ReadOptions, name: _NodeName) -> None:
    """Say what a node gives and to whom."""
    _show(
        read_options, ["ResourceSlice"], lambda reports: text.explain_node(reports, name), node=name
    )


def _key(read_options: options.ReadOptions, name: str) -> str:
    return name if "/" in name else f"{read_options.in_namespace() or 'default'}/{name}"


def _show(
    read_options: options.ReadOptions,
    needed: list[str],
    tell: Callable[[source.Source], text.ExplainText],
    *,
    node: str = "",
) -> None:
    """Print the explanation; exit by whether the object is healthy."""
    wells: list[bool] = []

    def render(reports: source.Source) -> out.Answer:
        explain_text = tell(reports)
        wells.append(explain_text.is_healthy)
        return explain_text.text

    read_options.show(needed, render, node=node, free_gpus=bool(node))
    raise typer.Exit(cli_errors.DONE if wells[-1] else cli_errors.NO)


app.command("pod", help=_POD)(options.command(pod))
app.command("claim", help=_CLAIM)(options.command(claim))
app.command("node", help=_NODE)(options.command(node))
