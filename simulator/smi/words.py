"""Values as `nvidia-smi` writes them."""

from simulator import codes

NOT_THERE = "N/A"
MIB = 1 << 20


def enabled(*, on: bool) -> str:
    """A mode."""
    return "Enabled" if on else "Disabled"


def yes(value: bool | None) -> str:  # noqa: FBT001 - an answer of NVML's, None where it has none
    """A flag."""
    if value is None:
        return NOT_THERE
    return "Yes" if value else "No"


def number(value: int | None) -> str:
    """A count."""
    return NOT_THERE if value is None else str(value)


def percent(value: int | None) -> str:
    """A utilisation."""
    return NOT_THERE if value is None else f"{value} %"


def mib(size: int) -> str:
    """Bytes, in MiB."""
    return NOT_THERE if size == codes.NOT_AVAILABLE else f"{size // MIB} MiB"


def watts(milliwatts: int) -> str:
    """Power."""
    return f"{milliwatts / 1000:.2f} W"


def uuid(digits: str) -> str:
    """32 hex digits, with dashes."""
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return "-".join(parts)
