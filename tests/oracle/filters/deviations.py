"""Where ours and kube-scheduler's filters may say different things, by name, each with a reason."""

from tests.oracle.filters import drawing

REASONS: dict[str, str] = {}


def excuse(
    _drawn: drawing.Cluster, _pod: drawing.Raw, _plugin: str, _theirs: str, _ours: str
) -> str:
    """The name of the deviation that a difference is; "" for none."""
    return ""
