"""All of it in figures. Pure."""

from collections import Counter
from collections.abc import Sequence

from driver.scheduling.reports import model, read_model
from driver.scheduling.reports.documents import claims, gpus, pods


def fleet(found: read_model.Seen, at: str) -> model.Fleet:
    """The whole fleet, as of a time (RFC 3339)."""
    every = nodes(found)
    cards = [gpu for one in every for gpu in one.gpus]
    parts = [part for gpu in cards for part in gpu.parts]
    waiting = sum(1 for _ in pods.waiting(found))
    return model.Fleet(
        at=at,
        driver=found.objects.driver,
        nodes=len(every),
        nodes_ready=sum(not one.problem for one in every),
        gpus=len(cards),
        modes=dict(sorted(Counter(gpu.mode for gpu in cards).items())),
        unhealthy=sum(gpu.health == "unhealthy" for gpu in cards),
        cordoned=sum(gpu.health == "cordoned" for gpu in cards),
        memory=sum(gpu.memory for gpu in cards),
        memory_allocated=sum(gpu.memory_allocated for gpu in cards),
        compute_allocated=sum(gpu.compute_allocated for gpu in cards),
        claims=sum(1 for _ in claims.every(found)),
        pods=len({pod for part in parts for pod in part.pods}),
        waiting=waiting,
        idle=len({part.claim for part in parts if part.use and part.use.idle_since}),
        queues=len(found.objects.queues),
        reservations=len(found.objects.reservations),
        products=_products(cards),
        missing=found.objects.missing,
    )


def nodes(found: read_model.Seen) -> tuple[model.Node, ...]:
    """Every node with GPUs of ours, by name."""
    there = (gpus.node(found, name) for name in found.pools)
    return tuple(one for one in there if one is not None)


def _products(cards: Sequence[model.Gpu]) -> tuple[model.Product, ...]:
    made = []
    for product in sorted({gpu.product for gpu in cards}):
        mine = [gpu for gpu in cards if gpu.product == product]
        made.append(
            model.Product(
                product=product,
                gpus=len(mine),
                free=sum(gpu.mode == "free" and gpu.health == "healthy" for gpu in mine),
                unhealthy=sum(gpu.health == "unhealthy" for gpu in mine),
                memory=sum(gpu.memory for gpu in mine),
                memory_allocated=sum(gpu.memory_allocated for gpu in mine),
            )
        )
    return tuple(made)
