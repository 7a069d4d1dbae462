"""Lengths of time as text: `2h5m`. Pure."""

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def format_duration(seconds: float) -> str:
    """`45s`, `5m`, `2h5m`, `3d4h`: the two largest units that are not none."""
    left = max(int(seconds), 0)
    if left < _MINUTE:
        return f"{left}s"
    for large, small, names in (
        (_DAY, _HOUR, "dh"),
        (_HOUR, _MINUTE, "hm"),
        (_MINUTE, 1, "ms"),
    ):
        if left >= large:
            rest = left % large // small
            return f"{left // large}{names[0]}" + (f"{rest}{names[1]}" if rest else "")
    raise AssertionError
