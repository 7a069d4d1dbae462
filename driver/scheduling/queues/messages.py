"""Why a workload waits for its queue, and how queues stand, in a line each. Pure."""

from driver.scheduling.queues import format as queue_format
from driver.scheduling.queues import resources, status_types
from driver.scheduling.queues import tree as trees


def over(one: status_types.Over) -> str:
    """`queue vision is at its limit: 16 of 16 GPUs`."""
    name = _queue(one.queue)
    most = queue_format.of_bound(one.bound)
    used = queue_format.number(one.bound, one.used)
    what = "its limit" if one.borrowing else "what it deserves, and may not borrow"
    if one.used >= one.bound.most:
        return f"{name} is at {what}: {used} of {most}"
    asked = queue_format.number(one.bound, one.asked)
    return f"{name} would exceed {what}: it has {used} of {most}, and {asked} more are asked"


def share(name: str, found: status_types.Standing) -> str:
    """`queue vision has 12.5 GPUs; 12 are its fair share, 8 are deserved`."""
    has = _gpus(found.used.gpus)
    deserved = f", {queue_format.gpus(_deserved(found))} deserved" if found.deserved_share else ""
    past = (
        ""
        if found.past is None
        else f", {queue_format.gpus(round(found.past * found.whole))} on average"
    )
    return (
        f"{_queue(name)} has {has}{past}; fair are {queue_format.gpus(found.fair_gpus)}{deserved}"
    )


def fault(name: str, found: trees.Fault) -> str:
    """Why a queue does not count."""
    return f"{_queue(name)} is not accepted: {found}"


def _queue(name: str) -> str:
    return f"queue {name}" if name else "what is in no queue"


def _gpus(thousandths: int) -> str:
    return f"{queue_format.gpus(thousandths)} {'GPU' if thousandths == resources.FULL else 'GPUs'}"


def _deserved(found: status_types.Standing) -> int:
    return round(found.deserved_share * found.whole)
