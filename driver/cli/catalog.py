"""Every command of `ration`: the line that introduces it, and the module that runs it.

Nothing of a command is imported here: `front` prints these lines, `lazy` imports the one module
that is called.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Command(NamedTuple):
    """A command: its summary, its module below `driver.cli`, and the names to take from it.

    `function` runs it; "" where the module's `app` is a group of commands. `details` names the text
    that `--help` prints below the summary. With `reads` it takes the options of `sources.options`.
    """

    summary: str
    module: str
    function: str = "show"
    details: str = "DETAILS"
    reads: bool = False


COMMANDS: Mapping[str, Command] = {
    "claims": Command(
        "Show claims: what each asks and has, who uses it, and why it waits.",
        "commands.claims",
        reads=True,
    ),
    "cordon": Command(
        "Let nothing new go on a node's GPUs, or on one GPU; what runs there stays.",
        "cordon.command",
        "cordon",
    ),
    "defrag": Command(
        "Plan which pods to move so that a shape fits, or move them: GPUs that are free on many "
        "nodes become free on one.",
        "defrag.command",
    ),
    "devices": Command(
        "Show every GPU: its mode, what is given out of it, to whom, and how it is.",
        "commands.devices",
        reads=True,
    ),
    "doctor": Command(
        "Look for what keeps GPUs from being given out, and say what to do about it.",
        "doctor.command",
        "examine",
    ),
    "drain": Command(
        "Cordon a node's GPUs, or one GPU, say who still holds it, and with --evict make them "
        "leave.",
        "cordon.drain_command",
    ),
    "dump": Command(
        "Print what of a cluster decides where GPUs go, for `ration simulate --cluster`.",
        "commands.dump",
    ),
    "explain": Command(
        "Say why a pod or a claim waits, or is where it is; who has what of a node.",
        "explain.command",
        "",
    ),
    "generate": Command("Write manifests from flags.", "generate.command", ""),
    "idle": Command(
        "Show what was given out and does nothing, or needs far less than it was given.",
        "commands.idle",
        reads=True,
    ),
    "migrate": Command("Plan the move from the NVIDIA device plugin to Ration.", "migrate.command"),
    "must-gather": Command(
        "Put all that a maintainer needs to see into one archive.", "must_gather.command"
    ),
    "nodes": Command(
        "Show nodes on demand: each kind of node that an autoscaler can bring, what of it is "
        "there, what is on its way, and for whom.",
        "commands.nodes",
        reads=True,
    ),
    "queues": Command(
        "Show queues: what each deserves, has, borrows, and what waits in it. GPUs are counted.",
        "commands.queues",
        reads=True,
    ),
    "reasons": Command("Say what each reason in events and refusals means.", "commands.reasons"),
    "simulate": Command(
        "Tell where pods would go, and which devices they would get, if they were created now.",
        "simulate.command",
    ),
    "top": Command(
        "Watch the fleet: cluster, nodes, GPUs, claims and pods, each under what it is part of.",
        "commands.top",
        reads=True,
    ),
    "uncordon": Command(
        "Let new work on a node's GPUs, or on one GPU, again: what `ration cordon` did is undone.",
        "cordon.command",
        "uncordon",
        "UNCORDON_DETAILS",
    ),
    "validate": Command(
        "Say what is wrong with claims, classes and our own documents, before they are applied.",
        "validate.command",
    ),
    "version": Command(
        "Print the version of Ration, of Python, and the driver name it speaks for.",
        "commands.version",
    ),
    "who": Command(
        "Show who has which GPU: pod, claim, device, how much of it, and what it does with that.",
        "commands.who",
        reads=True,
    ),
}
