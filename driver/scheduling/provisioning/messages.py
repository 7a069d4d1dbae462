"""What is told of nodes on demand, in a line each. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence

from driver.scheduling.provisioning import node_template

_MINUTE_S = 60.0


def counted(found: Iterable[node_template.Shape]) -> str:
    """`2 nodes of shape h100-8`."""
    kinds = Counter(one.name for one in found)
    return ", ".join(
        f"{count} node{'s' if count > 1 else ''} of shape {name}"
        for name, count in sorted(kinds.items())
    )


def requested(found: Sequence[node_template.Shape]) -> str:
    """`Waits for 2 nodes of shape h100-8, which were asked for; as a rule that takes 6 min`."""
    longest = max((one.starts_s for one in found), default=0.0)
    asked = "which were asked for" if len(found) > 1 else "which was asked for"
    return f"Waits for {counted(found)}, {asked}; as a rule that takes {_lasts(longest)}"


def in_turn(why: str) -> str:
    """Why nothing is asked for yet."""
    return f"A node would do, and is not asked for yet: {why}"


def hopeless(why: str) -> str:
    """Why nothing is asked for."""
    return f"No node that can be asked for would do: {why}"


def arrived(node: str, kind: str, gpus: int, took_s: float) -> str:
    """`Node n-1 of shape h100-8 is there with 8 GPUs, 5 min after it was asked for`."""
    return (
        f"Node {node} of shape {kind} is there with {gpus} GPU{'s' if gpus != 1 else ''}, "
        f"{_lasts(took_s)} after it was asked for"
    )


def _lasts(seconds: float) -> str:
    if seconds < 2 * _MINUTE_S:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE_S:.0f} min"
