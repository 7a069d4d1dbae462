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
from driver.scheduling.queues import format as queue_format
from driver.scheduling.queues import resources, status_types
from driver.scheduling.queues import tree as trees

ACCEPTED = "Accepted"
BORROWING = "Borrowing"
Raw = dict[str, Any]


def render(
    found: status_types.QueueStatus | None,
    fault: trees.QueueFault | None,
    generation: int,
    now: dt.datetime,
    before: fields.Raw,
) -> Raw:
    """What is written of a queue that stands so, or (None) is not accepted for a fault.

    `before` is the status that is there: a condition that did not change keeps its time.
    """
    conditions = [_accepted(fault)]
    shown: Raw = {"observedGeneration": generation}
    if found is not None:
        conditions.append(_borrowing(found))
        shown |= _amount_fields(found, now)
    else:
        usage = before.get("usage")
        shown |= {"usage": usage} if usage else {}
    known = {str(one.get("type")): one for _, one in fields.objects(before, "conditions", "status")}
    stamp = clock.rfc3339(now)
    shown["conditions"] = [
        {
            **one,
            "observedGeneration": generation,
            "lastTransitionTime": _transition_time(one, known, stamp),
        }
        for one in conditions
    ]
    return shown


def _amount_fields(found: status_types.QueueStatus, now: dt.datetime) -> Raw:
    shown: Raw = {
        "allocated": queue_format.gpus(found.usage.gpus),
        "memory": queue_format.memory(found.usage.memory),
        "compute": f"{found.usage.compute}%",
        "fairShare": queue_format.gpus(found.fair_gpus),
        "deserved": queue_format.gpus(round(found.deserved_share * found.fleet_gpus)),
        "borrowed": queue_format.gpus(found.borrowed),
        "waiting": found.pending,
    }
    if found.oldest_wait_s is not None:
        shown["oldestWait"] = durations.format_duration(found.oldest_wait_s)
    if found.usage_seconds is not None:
        seconds = round(found.usage_seconds * found.fleet_gpus / resources.FULL, 3)
        shown["usage"] = {"at": clock.rfc3339(now), "gpuSeconds": f"{seconds:.3f}"}
    return shown


def _accepted(fault: trees.QueueFault | None) -> Raw:
    if fault is None:
        return _condition(ACCEPTED, reasons.Reason.QUEUE_ACCEPTED, "the queue counts", holds=True)
    return _condition(ACCEPTED, reasons.Reason.QUEUE_REFUSED, str(fault), holds=False)


def _borrowing(found: status_types.QueueStatus) -> Raw:
    deserved = queue_format.gpus(round(found.deserved_share * found.fleet_gpus))
    if found.borrowed:
        told = f"{queue_format.gpus(found.borrowed)} GPUs beyond the {deserved} deserved"
        return _condition(BORROWING, reasons.Reason.QUEUE_BORROWS, told, holds=True)
    told = f"no more than the {deserved} GPUs deserved"
    return _condition(BORROWING, reasons.Reason.QUEUE_WITHIN_DESERVED, told, holds=False)


def _condition(kind: str, reason: reasons.Reason, message: str, *, holds: bool) -> Raw:
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "reason": reason.value,
        "message": message,
    }


def _transition_time(one: Raw, known: Mapping[str, Mapping[str, Any]], stamp: str) -> str:
    before = known.get(one["type"], {})
    if before.get("status") == one["status"] and before.get("lastTransitionTime"):
        return str(before["lastTransitionTime"])
    return stamp


def is_same_status(one: fields.Raw, other: fields.Raw) -> bool:
    """Whether two differ by nothing but what passes with time alone: ages and past use."""
    return _stable_fields(one) == _stable_fields(other)


def _stable_fields(one: fields.Raw) -> Raw:
    passing: Sequence[str] = ("usage", "oldestWait")
    return {key: value for key, value in one.items() if key not in passing}
