"""Messages of queues: why a workload waits, and shares, one line each. Pure."""

from driver.scheduling.queues import format as queue_format
from driver.scheduling.queues import resources, status_types


def limit_message(exceeded: status_types.ExceededLimit) -> str:
    """`queue vision is at its limit: 16 of 16 GPUs`."""
    name = _queue_name(exceeded.queue)
    most = queue_format.format_bound(exceeded.bound)
    used = queue_format.number(exceeded.bound, exceeded.used)
    kind = "its limit" if exceeded.is_limit else "its deserved share, and may not borrow"
    if exceeded.used >= exceeded.bound.limit:
        return f"{name} is at {kind}: {used} of {most}"
    requested = queue_format.number(exceeded.bound, exceeded.requested)
    return (
        f"{name} would exceed {kind}: it has {used} of {most}, and {requested} more are requested"
    )


def share_message(name: str, status: status_types.QueueStatus) -> str:
    """`queue vision has 12.5 GPUs; 12 are its fair share, 8 are deserved`."""
    has = _gpus(status.usage.gpus)
    deserved = (
        f", {queue_format.gpus(_deserved_gpus(status))} deserved" if status.deserved_share else ""
    )
    past = (
        ""
        if status.average_share is None
        else f", {queue_format.gpus(round(status.average_share * status.fleet_gpus))} on average"
    )
    fair = queue_format.gpus(status.fair_gpus)
    return f"{_queue_name(name)} has {has}{past}; its fair share is {fair}{deserved}"


def _queue_name(name: str) -> str:
    return f"queue {name}" if name else "what is in no queue"


def _gpus(thousandths: int) -> str:
    return f"{queue_format.gpus(thousandths)} {'GPU' if thousandths == resources.FULL else 'GPUs'}"


def _deserved_gpus(status: status_types.QueueStatus) -> int:
    return round(status.deserved_share * status.fleet_gpus)
