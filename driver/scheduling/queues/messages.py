"""Why a workload waits for its queue, and how queues stand, in a line each. Pure."""

from driver.scheduling.queues import format as queue_format
from driver.scheduling.queues import resources, status_types
from driver.scheduling.queues import tree as trees


def limit_message(one: status_types.ExceededLimit) -> str:
    """`queue vision is at its limit: 16 of 16 GPUs`."""
    name = _queue_name(one.queue)
    most = queue_format.format_bound(one.bound)
    used = queue_format.number(one.bound, one.used)
    what = "its limit" if one.is_limit else "what it deserves, and may not borrow"
    if one.used >= one.bound.limit:
        return f"{name} is at {what}: {used} of {most}"
    asked = queue_format.number(one.bound, one.requested)
    return f"{name} would exceed {what}: it has {used} of {most}, and {asked} more are asked"


def share_message(name: str, found: status_types.QueueStatus) -> str:
    """`queue vision has 12.5 GPUs; 12 are its fair share, 8 are deserved`."""
    has = _gpus(found.usage.gpus)
    deserved = (
        f", {queue_format.gpus(_deserved_gpus(found))} deserved" if found.deserved_share else ""
    )
    past = (
        ""
        if found.average_share is None
        else f", {queue_format.gpus(round(found.average_share * found.fleet_gpus))} on average"
    )
    fair = queue_format.gpus(found.fair_gpus)
    return f"{_queue_name(name)} has {has}{past}; fair are {fair}{deserved}"


def fault_message(name: str, found: trees.QueueFault) -> str:
    """Why a queue does not count."""
    return f"{_queue_name(name)} is not accepted: {found}"


def _queue_name(name: str) -> str:
    return f"queue {name}" if name else "what is in no queue"


def _gpus(thousandths: int) -> str:
    return f"{queue_format.gpus(thousandths)} {'GPU' if thousandths == resources.FULL else 'GPUs'}"


def _deserved_gpus(found: status_types.QueueStatus) -> int:
    return round(found.deserved_share * found.fleet_gpus)
