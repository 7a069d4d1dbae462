"""Messages of queues: why a workload waits, and shares, one line each. Pure."""

from driver.resources import quantities
from driver.scheduling.queues import quota, resources, status_types


def limit_message(exceeded: status_types.ExceededLimit) -> str:
    """`queue vision is at its limit: 16 of 16 GPUs`."""
    name = _queue_name(exceeded.queue)
    most = format_bound(exceeded.bound)
    used = number(exceeded.bound, exceeded.used)
    kind = "its limit" if exceeded.is_limit else "its deserved share, and may not borrow"
    if exceeded.used >= exceeded.bound.limit:
        return f"{name} is at {kind}: {used} of {most}"
    requested = number(exceeded.bound, exceeded.requested)
    return (
        f"{name} would exceed {kind}: it has {used} of {most}, and {requested} more are requested"
    )


def share_message(name: str, status: status_types.QueueStatus) -> str:
    """`queue vision has 12.5 GPUs; 12 are its fair share, 8 are deserved`."""
    has = _gpus(status.usage.gpus)
    deserved = f", {gpus(_deserved_gpus(status))} deserved" if status.deserved_share else ""
    past = (
        ""
        if status.average_share is None
        else f", {gpus(round(status.average_share * status.fleet_gpus))} on average"
    )
    fair = gpus(status.fair_gpus)
    return f"{_queue_name(name)} has {has}{past}; its fair share is {fair}{deserved}"


def _queue_name(name: str) -> str:
    return f"queue {name}" if name else "what is in no queue"


def _gpus(thousandths: int) -> str:
    return f"{gpus(thousandths)} {'GPU' if thousandths == resources.FULL else 'GPUs'}"


def _deserved_gpus(status: status_types.QueueStatus) -> int:
    return round(status.deserved_share * status.fleet_gpus)


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
        case "devices":
            noun = "device" if count == resources.FULL else "devices"
            return f"{noun} of {bound.kind}"
        case _:
            noun = "GPU" if count == resources.FULL else "GPUs"
            return f"{noun} ({bound.kind})" if bound.kind else noun
