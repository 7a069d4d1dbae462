"""Queues as documents: what each may have, has, and what waits in it. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from driver import ids
from driver.resources import fields, queues
from driver.scheduling.queues import format as queue_format
from driver.scheduling.reports import model, read_model


def every(found: read_model.Seen) -> tuple[model.Queue, ...]:
    """All of them, each before its children; those that are left out, last."""
    tree = found.queues
    known = found.objects.queues
    order = [name for name in _deep(tree.children) if ids.Key(name) in known]
    left_out = sorted(name for name in known if name not in order)
    return tuple(_of(found, known[ids.Key(name)]) for name in [*order, *left_out])


def queue(found: read_model.Seen, name: str) -> model.Queue | None:
    """One queue; None where there is none."""
    one = found.objects.queues.get(ids.Key(name))
    return None if one is None else _of(found, one)


def _deep(children: Mapping[str | None, Any]) -> Iterator[str]:
    """Every queue, each followed by its children."""
    left = [*reversed(children.get(None, ()))]
    while left:
        name = left.pop()
        yield name
        left += reversed(children.get(name, ()))


def _of(found: read_model.Seen, one: queues.Queue) -> model.Queue:
    tree, told = found.queues, one.status
    fault = tree.faults.get(one.name)
    path = tree.path(one.name) if one.name in tree.accepted else (one.name,)
    waiting = told.get("waiting")
    idle, until = _planned(found, one.name)
    return model.Queue(
        name=one.name,
        parent=one.parent,
        children=tuple(tree.children.get(one.name, ())),
        depth=len(path) - 1,
        weight=one.weight,
        deserved=_amounts(one.deserved),
        limit=_amounts(one.limit),
        accepted=fault is None,
        problem=str(fault) if fault else "",
        allocated=_text(told, "allocated"),
        memory=_text(told, "memory"),
        compute=_text(told, "compute"),
        fair_share=_text(told, "fairShare"),
        deserved_share=_text(told, "deserved"),
        borrowed=_text(told, "borrowed"),
        kept=idle,
        kept_until=until,
        waiting=waiting if isinstance(waiting, int) else 0,
        oldest_wait=_text(told, "oldestWait"),
        members=tuple(_member(member) for member in one.members),
        borrowing=one.borrowing,
        preemptible=one.preemptible,
    )


def _planned(cluster: read_model.Seen, name: str) -> tuple[str, str]:
    """GPUs that backfill keeps idle for a queue, and until when; "" for none."""
    plan = cluster.objects.plan
    if plan is None or cluster.planned_queue != name:
        return "", ""
    return str(sum(key not in cluster.taken for key in cluster.planned)), plan.end


def _text(told: fields.Raw, key: str) -> str:
    value = told.get(key)
    return value if isinstance(value, str) else ""


def _amounts(one: queues.Amounts) -> model.Amounts:
    return model.Amounts(
        gpus="" if one.gpus is None else queue_format.gpus(one.gpus),
        memory="" if one.memory is None else queue_format.memory(one.memory),
        compute="" if one.compute is None else f"{one.compute}%",
        models={product: queue_format.gpus(count) for product, count in sorted(one.models.items())},
    )


def _member(one: queues.Member) -> str:
    """`namespace vision`, `namespace vision with team=a`."""
    labels = ",".join(f"{key}={value}" for key, value in sorted(one.labels.items()))
    parts = [f"namespace {one.namespace}" if one.namespace else "any namespace"]
    return " with ".join([*parts, labels] if labels else parts)
