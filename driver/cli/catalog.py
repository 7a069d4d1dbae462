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
        "Show claims: their requests, devices and users, and why they are pending.",
        "commands.claims",
        reads=True,
    ),
    "cordon": Command(
        "Cordon a node's GPUs, or one GPU: no new claims; running pods stay.",
        "cordon.command",
        "cordon",
    ),
    "defrag": Command(
        "Plan or execute the eviction of pods so that a request fits: free GPUs of several "
        "nodes are consolidated on one.",
        "defrag.command",
    ),
    "devices": Command(
        "Show GPUs: their mode, allocations, users and health.",
        "commands.devices",
        reads=True,
    ),
    "doctor": Command(
        "Diagnose why GPUs are not available, and suggest remedies.",
        "doctor.command",
        "examine",
    ),
    "drain": Command(
        "Cordon a node's GPUs, or one GPU, list what uses them, and with --evict evict it.",
        "cordon.drain_command",
    ),
    "dump": Command(
        "Print the objects that determine scheduling, for `ration simulate --cluster`.",
        "commands.dump",
    ),
    "explain": Command(
        "Explain why a pod or claim is pending or placed where it is, or a node's use.",
        "explain.command",
        "",
    ),
    "generate": Command("Generate manifests from flags.", "generate.command", ""),
    "idle": Command(
        "Show devices that are idle, or much larger than their use requires.",
        "commands.idle",
        reads=True,
    ),
    "migrate": Command(
        "Plan the migration from the NVIDIA device plugin to Ration.", "migrate.command"
    ),
    "must-gather": Command(
        "Collect diagnostic data for a bug report in one archive.", "must_gather.command"
    ),
    "nodes": Command(
        "Show node provisioning: each node shape, its nodes, and its requests in flight.",
        "commands.nodes",
        reads=True,
    ),
    "queues": Command(
        "Show queues: deserved, used and borrowed GPUs, and pending workloads.",
        "commands.queues",
        reads=True,
    ),
    "reasons": Command("Explain the reasons in events and conditions.", "commands.reasons"),
    "simulate": Command(
        "Simulate scheduling: show nodes and devices that new pods would get.",
        "simulate.command",
    ),
    "top": Command(
        "Watch the fleet as a tree: cluster, nodes, GPUs, claims and pods.",
        "commands.top",
        reads=True,
    ),
    "uncordon": Command(
        "Uncordon a node's GPUs, or one GPU.",
        "cordon.command",
        "uncordon",
        "UNCORDON_DETAILS",
    ),
    "validate": Command(
        "Validate claims, DeviceClasses and Ration's own documents before they are applied.",
        "validate.command",
    ),
    "version": Command(
        "Print the versions of Ration and Python, and the driver name.",
        "commands.version",
    ),
    "who": Command(
        "Show GPU users: pod, claim, device, share, and utilization.",
        "commands.who",
        reads=True,
    ),
}
