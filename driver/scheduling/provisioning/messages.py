"""What is told of nodes on demand, in a line each. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence

from driver.scheduling.provisioning import node_template

_MINUTE_S = 60.0


def describe_nodes(found: Iterable[node_template.NodeTemplate]) -> str:
    """`2 nodes of shape h100-8`."""
    kinds = Counter(one.name for one in found)
    return ", ".join(
        f"{count} node{'s' if count > 1 else ''} of shape {name}"
        for name, count in sorted(kinds.items())
    )


def requested_message(found: Sequence[node_template.NodeTemplate]) -> str:
    """`Waits for 2 nodes of shape h100-8, which were asked for; as a rule that takes 6 min`."""
    longest = max((one.startup_s for one in found), default=0.0)
    takes = _format_duration(longest)
    asked = "which were asked for" if len(found) > 1 else "which was asked for"
    return f"Waits for {describe_nodes(found)}, {asked}; as a rule that takes {takes}"


def deferred_message(why: str) -> str:
    """Why nothing is asked for yet."""
    return f"A node would do, and is not asked for yet: {why}"


def impossible_message(why: str) -> str:
    """Why nothing is asked for."""
    return f"No node that can be asked for would do: {why}"


def arrived_message(node: str, kind: str, gpus: int, took_s: float) -> str:
    """`Node n-1 of shape h100-8 is there with 8 GPUs, 5 min after it was asked for`."""
    return (
        f"Node {node} of shape {kind} is there with {gpus} GPU{'s' if gpus != 1 else ''}, "
        f"{_format_duration(took_s)} after it was asked for"
    )


def _format_duration(seconds: float) -> str:
    if seconds < 2 * _MINUTE_S:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE_S:.0f} min"
