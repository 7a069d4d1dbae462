"""The status of a Queue, as it is written (D7). Pure.

    conditions: Accepted (False with the field that is wrong), Borrowing
    allocated, fairShare, deserved, borrowed: GPUs as text, "12.5"
    memory, compute: what is allocated beside, "960Gi", "400%"
    waiting: how many workloads wait; oldestWait: "1h5m", absent where none does
    usage: {at, gpuSeconds}: past use, with a half-life alone

GPUs of `allocated` count what is taken; shares and what is borrowed count by the dominant share.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from driver import clock, reasons
from driver.resources import durations, fields
from driver.scheduling.queues import messages as queue_messages
from driver.scheduling.queues import resources, status_types
from driver.scheduling.queues import tree as trees

ACCEPTED = "Accepted"
BORROWING = "Borrowing"
Raw = dict[str, Any]


def render(
    status: status_types.QueueStatus | None,
    fault: trees.QueueFault | None,
    generation: int,
    now: dt.datetime,
    previous: fields.Raw,
) -> Raw:
    """Return the status of a queue, or (None) of one that is not accepted for a fault.

    `previous` is the current status: a condition that did not change keeps its time.
    """
    conditions = [_accepted(fault)]
    shown: Raw = {"observedGeneration": generation}
    if status is not None:
        conditions.append(_borrowing(status))
        shown |= _amount_fields(status, now)
    else:
        usage = previous.get("usage")
        shown |= {"usage": usage} if usage else {}
    by_type = {
        str(condition.get("type")): condition
        for _, condition in fields.objects(previous, "conditions", "status")
    }
    stamp = clock.rfc3339(now)
    shown["conditions"] = [
        {
            **condition,
            "observedGeneration": generation,
            "lastTransitionTime": _transition_time(condition, by_type, stamp),
        }
        for condition in conditions
    ]
    return shown


def _amount_fields(status: status_types.QueueStatus, now: dt.datetime) -> Raw:
    shown: Raw = {
        "allocated": queue_messages.gpus(status.usage.gpus),
        "memory": queue_messages.memory(status.usage.memory),
        "compute": f"{status.usage.compute}%",
        "fairShare": queue_messages.gpus(status.fair_gpus),
        "deserved": queue_messages.gpus(round(status.deserved_share * status.fleet_gpus)),
        "borrowed": queue_messages.gpus(status.borrowed),
        "waiting": status.pending,
    }
    if status.oldest_wait_s is not None:
        shown["oldestWait"] = durations.format_duration(status.oldest_wait_s)
    if status.usage_seconds is not None:
        seconds = round(status.usage_seconds * status.fleet_gpus / resources.FULL, 3)
        shown["usage"] = {"at": clock.rfc3339(now), "gpuSeconds": f"{seconds:.3f}"}
    return shown


def _accepted(fault: trees.QueueFault | None) -> Raw:
    if fault is None:
        return _condition(ACCEPTED, reasons.Reason.QUEUE_ACCEPTED, "the queue counts", holds=True)
    return _condition(ACCEPTED, reasons.Reason.QUEUE_INVALID, str(fault), holds=False)


def _borrowing(status: status_types.QueueStatus) -> Raw:
    deserved = queue_messages.gpus(round(status.deserved_share * status.fleet_gpus))
    if status.borrowed:
        message = f"{queue_messages.gpus(status.borrowed)} GPUs beyond the {deserved} deserved"
        return _condition(BORROWING, reasons.Reason.QUEUE_BORROWING, message, holds=True)
    message = f"no more than the {deserved} GPUs deserved"
    return _condition(BORROWING, reasons.Reason.QUEUE_WITHIN_DESERVED, message, holds=False)


def _condition(kind: str, reason: reasons.Reason, message: str, *, holds: bool) -> Raw:
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "reason": reason.value,
        "message": message,
    }


def _transition_time(condition: Raw, by_type: Mapping[str, Mapping[str, Any]], stamp: str) -> str:
    previous = by_type.get(condition["type"], {})
    if previous.get("status") == condition["status"] and previous.get("lastTransitionTime"):
        return str(previous["lastTransitionTime"])
    return stamp


def is_same_status(first: fields.Raw, second: fields.Raw) -> bool:
    """Return whether two differ only by what passes with time: ages and past usage."""
    return _stable_fields(first) == _stable_fields(second)


def _stable_fields(status: fields.Raw) -> Raw:
    passing: Sequence[str] = ("usage", "oldestWait")
    return {key: value for key, value in status.items() if key not in passing}
