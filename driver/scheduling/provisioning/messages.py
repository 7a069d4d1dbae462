"""Messages about provisioned nodes, one line each. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence

from driver.scheduling.provisioning import node_template

_MINUTE_S = 60.0


def describe_nodes(templates: Iterable[node_template.NodeTemplate]) -> str:
    """`2 nodes of shape h100-8`."""
    kinds = Counter(template.name for template in templates)
    return ", ".join(
        f"{count} node{'s' if count > 1 else ''} of shape {name}"
        for name, count in sorted(kinds.items())
    )


def requested_message(templates: Sequence[node_template.NodeTemplate]) -> str:
    """`Waits for 2 nodes of shape h100-8, which were requested; expected startup time 6 min`."""
    longest = max((template.startup_s for template in templates), default=0.0)
    takes = _format_duration(longest)
    clause = "which were requested" if len(templates) > 1 else "which was requested"
    return f"Waits for {describe_nodes(templates)}, {clause}; expected startup time {takes}"


def deferred_message(why: str) -> str:
    """Return why nothing is requested yet."""
    return f"A new node would fit, but is not requested yet: {why}"


def impossible_message(why: str) -> str:
    """Return why nothing is requested."""
    return f"No node shape fits: {why}"


def arrived_message(node: str, kind: str, gpus: int, took_s: float) -> str:
    """`Node n-1 of shape h100-8 is ready with 8 GPUs, 5 min after it was requested`."""
    return (
        f"Node {node} of shape {kind} is ready with {gpus} GPU{'s' if gpus != 1 else ''}, "
        f"{_format_duration(took_s)} after it was requested"
    )


def _format_duration(seconds: float) -> str:
    if seconds < 2 * _MINUTE_S:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE_S:.0f} min"
