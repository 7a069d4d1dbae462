"""Figures of the fleet. Pure."""

from collections import Counter
from collections.abc import Sequence

from driver.scheduling.reports import model, read_model
from driver.scheduling.reports.documents import claims, gpus, pods


def fleet_document(cluster: read_model.ClusterModel, timestamp: str) -> model.Fleet:
    """Return the whole fleet, as of a time (RFC 3339)."""
    documents = node_documents(cluster)
    all_gpus = [gpu for document in documents for gpu in document.gpus]
    parts = [part for gpu in all_gpus for part in gpu.parts]
    waiting = sum(1 for _ in pods.waiting_pods(cluster))
    return model.Fleet(
        at=timestamp,
        driver=cluster.objects.driver,
        nodes=len(documents),
        nodes_ready=sum(not document.problem for document in documents),
        gpus=len(all_gpus),
        modes=dict(sorted(Counter(gpu.mode for gpu in all_gpus).items())),
        unhealthy=sum(gpu.health == "unhealthy" for gpu in all_gpus),
        cordoned=sum(gpu.health == "cordoned" for gpu in all_gpus),
        memory=sum(gpu.memory for gpu in all_gpus),
        memory_allocated=sum(gpu.memory_allocated for gpu in all_gpus),
        compute_allocated=sum(gpu.compute_allocated for gpu in all_gpus),
        claims=sum(1 for _ in claims.claim_keys(cluster)),
        pods=len({pod for part in parts for pod in part.pods}),
        waiting=waiting,
        idle=len({part.claim for part in parts if part.use and part.use.idle_since}),
        queues=len(cluster.objects.queues),
        reservations=len(cluster.objects.reservations),
        products=_products(all_gpus),
        missing=cluster.objects.missing,
    )


def node_documents(cluster: read_model.ClusterModel) -> tuple[model.Node, ...]:
    """Return every node with GPUs of ours or of managed drivers, by name."""
    documents = (gpus.node_document(cluster, name) for name in cluster.pools)
    return tuple(document for document in documents if document is not None)


def _products(all_gpus: Sequence[model.Gpu]) -> tuple[model.Product, ...]:
    products = []
    for product in sorted({gpu.product for gpu in all_gpus}):
        product_gpus = [gpu for gpu in all_gpus if gpu.product == product]
        products.append(
            model.Product(
                product=product,
                gpus=len(product_gpus),
                free=sum(gpu.mode == "free" and gpu.health == "healthy" for gpu in product_gpus),
                unhealthy=sum(gpu.health == "unhealthy" for gpu in product_gpus),
                memory=sum(gpu.memory for gpu in product_gpus),
                memory_allocated=sum(gpu.memory_allocated for gpu in product_gpus),
            )
        )
    return tuple(products)
