"""Amounts in words: `12.5 GPUs`, `960Gi`. Pure."""

from driver.resources import quantities
from driver.scheduling.queues import quota, resources


def gpus(thousandths: int) -> str:
    """`12.5`."""
    whole, rest = divmod(abs(thousandths), resources.FULL)
    sign = "-" if thousandths < 0 else ""
    return f"{sign}{whole}" + (f".{rest:03}".rstrip("0") if rest else "")


def memory(count: int) -> str:
    """Bytes: `960Gi`."""
    return quantities.from_bytes(count).text


def format_bound(bound: quota.Bound, most: int | None = None) -> str:
    """Return a bound with an amount: `16 GPUs`, `4 GPUs (NVIDIA H100 80GB HBM3)`."""
    count = bound.limit if most is None else most
    return f"{number(bound, count)} {unit(bound, count)}"


def number(bound: quota.Bound, count: int) -> str:
    """`12.5`, `960Gi`, `400%`."""
    match bound.field:
        case "memory":
            return memory(count)
        case "compute":
            return f"{count}%"
        case _:
            return gpus(count)


def unit(bound: quota.Bound, count: int) -> str:
    """Return the unit of a bound."""
    match bound.field:
        case "memory":
            return "of GPU memory"
        case "compute":
            return "of GPU compute"
        case _:
            noun = "GPU" if count == resources.FULL else "GPUs"
            return f"{noun} ({bound.product})" if bound.product else noun
