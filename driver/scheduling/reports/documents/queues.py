"""Queues as documents: limits, usage, and pending workloads. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from driver import ids
from driver.resources import fields, queues
from driver.scheduling.queues import messages as queue_messages
from driver.scheduling.reports import model, read_model


def queue_documents(cluster: read_model.ClusterModel) -> tuple[model.Queue, ...]:
    """Return all queues, each before its children; those not accepted last."""
    tree = cluster.queues
    by_name = cluster.objects.queues
    order = [name for name in _depth_first(tree.children) if ids.Key(name) in by_name]
    left_out = sorted(name for name in by_name if name not in order)
    return tuple(_build_queue(cluster, by_name[ids.Key(name)]) for name in [*order, *left_out])


def queue_document(cluster: read_model.ClusterModel, name: str) -> model.Queue | None:
    """Return one queue; None if it does not exist."""
    spec = cluster.objects.queues.get(ids.Key(name))
    return None if spec is None else _build_queue(cluster, spec)


def _depth_first(children: Mapping[str | None, Any]) -> Iterator[str]:
    """Yield every queue, each followed by its children."""
    left = [*reversed(children.get(None, ()))]
    while left:
        name = left.pop()
        yield name
        left += reversed(children.get(name, ()))


def _build_queue(cluster: read_model.ClusterModel, spec: queues.Queue) -> model.Queue:
    tree, status = cluster.queues, spec.status
    fault = tree.faults.get(spec.name)
    path = tree.path(spec.name) if spec.name in tree.accepted else (spec.name,)
    waiting = status.get("waiting")
    idle, until = _planned(cluster, spec.name)
    return model.Queue(
        name=spec.name,
        parent=spec.parent,
        children=tuple(tree.children.get(spec.name, ())),
        depth=len(path) - 1,
        weight=spec.weight,
        deserved=_amounts(spec.deserved),
        limit=_amounts(spec.limit),
        accepted=fault is None,
        problem=str(fault) if fault else "",
        allocated=_text(status, "allocated"),
        memory=_text(status, "memory"),
        compute=_text(status, "compute"),
        fair_share=_text(status, "fairShare"),
        deserved_share=_text(status, "deserved"),
        borrowed=_text(status, "borrowed"),
        kept=idle,
        kept_until=until,
        waiting=waiting if isinstance(waiting, int) else 0,
        oldest_wait=_text(status, "oldestWait"),
        members=tuple(_member(member) for member in spec.members),
        borrowing=spec.borrowing,
        preemptible=spec.preemptible,
    )


def _planned(cluster: read_model.ClusterModel, name: str) -> tuple[str, str]:
    """Return the GPUs that backfill keeps idle for a queue, and until when; "" for none."""
    plan = cluster.objects.plan
    if plan is None or cluster.planned_queue != name:
        return "", ""
    return str(sum(key not in cluster.taken_devices for key in cluster.planned)), plan.end


def _text(status: fields.Raw, key: str) -> str:
    value = status.get(key)
    return value if isinstance(value, str) else ""


def _amounts(amounts: queues.Amounts) -> model.Amounts:
    return model.Amounts(
        gpus="" if amounts.gpus is None else queue_messages.gpus(amounts.gpus),
        memory="" if amounts.memory is None else queue_messages.memory(amounts.memory),
        compute="" if amounts.compute is None else f"{amounts.compute}%",
        models={
            product: queue_messages.gpus(count) for product, count in sorted(amounts.models.items())
        },
        devices={
            driver: queue_messages.gpus(count) for driver, count in sorted(amounts.devices.items())
        },
    )


def _member(member: queues.Member) -> str:
    """`namespace vision`, `namespace vision with team=a`."""
    labels = ",".join(f"{key}={value}" for key, value in sorted(member.labels.items()))
    parts = [f"namespace {member.namespace}" if member.namespace else "any namespace"]
    return " with ".join([*parts, labels] if labels else parts)
