"""Catalog of reports, by the paths of the JSON API, for the server and its clients. Pure.

`ration` builds it from a kubeconfig alone; the page and the API, from the controller's caches.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from driver import ids
from driver.scheduling.reports import model, paging, read_model, selection
from driver.scheduling.reports.documents import claims, fleet, gpus, node_shapes, pods, queues
from driver.scheduling.reports.documents import reservations as document_reservations

T = TypeVar("T")
Explain = Callable[[ids.Key], model.Explanation | None]
"""Returns the explanation of a pod; None if it is not known."""


def no_explanation(_: ids.Key) -> model.Explanation | None:
    """Return None: no explanation is known."""
    return None


@dataclass(frozen=True)
class Reports:
    """Reports on what was read at a time (RFC 3339). `moments` are the newest first."""

    cluster: read_model.ClusterModel
    read_at: str
    explain: Explain = no_explanation
    events: Sequence[model.Moment] = field(default_factory=tuple)

    @property
    def managed_drivers(self) -> tuple[str, ...]:
        """Other drivers whose devices the controller allocates."""
        return self.cluster.managed_drivers

    def fleet(self) -> model.Fleet:
        """Return the figures of the fleet."""
        return self.cluster.cached(
            "fleet", lambda: fleet.fleet_document(self.cluster, self.read_at)
        )

    def nodes(
        self,
        part: selection.PageRequest = selection.ALL,
        node_filter: selection.NodeFilter = selection.ANY,
    ) -> model.Nodes:
        """Return nodes with GPUs, by name."""
        matching = [
            node for node in fleet.node_documents(self.cluster) if node_filter.matches(node)
        ]
        items, following = paging.page(matching, lambda node: node.name, part.after, part.limit)
        return model.Nodes(total=len(matching), next=following, items=items)

    def node(self, name: str) -> model.Node | None:
        """Return one node with GPUs."""
        return gpus.node_document(self.cluster, name)

    def gpu(self, node: str, name: str) -> model.Gpu | None:
        """Return one GPU, by name, UUID or PCI address."""
        return gpus.gpu_document(self.cluster, node, name)

    def claims(
        self, namespace: str = "", part: selection.PageRequest = selection.ALL
    ) -> model.Claims:
        """Return claims of our devices, by key."""
        keys = [*claims.claim_keys(self.cluster, namespace)]
        shown, following = paging.page(keys, str, part.after, part.limit)
        return model.Claims(
            total=len(keys), next=following, items=self._documents(shown, self.claim)
        )

    def claim(self, key: str) -> model.Claim | None:
        """Return one claim."""
        return claims.claim_document(self.cluster, key)

    def pods(self, namespace: str = "", part: selection.PageRequest = selection.ALL) -> model.Pods:
        """Return pods of our devices, by key."""
        keys = [pod.key for pod in pods.device_pods(self.cluster, namespace)]
        return self._pods(keys, part)

    def waiting(
        self, namespace: str = "", part: selection.PageRequest = selection.ALL
    ) -> model.Pods:
        """Return pods without their devices, the oldest first."""
        pending = sorted(
            pods.waiting_pods(self.cluster, namespace), key=lambda pod: (pod.created, pod.key)
        )
        return self._pods([pod.key for pod in pending], part)

    def _pods(self, keys: Sequence[ids.Key], part: selection.PageRequest) -> model.Pods:
        shown, following = paging.page(keys, str, part.after, part.limit)
        return model.Pods(total=len(keys), next=following, items=self._documents(shown, self._pod))

    def pod(self, key: str) -> model.Pod | None:
        """Return one pod, explained."""
        return self._pod(key, self.explain(ids.Key(key)))

    def _pod(self, key: str, explained: model.Explanation | None = None) -> model.Pod | None:
        pod = self.cluster.objects.pods.get(ids.Key(key))
        return None if pod is None else pods.pod_document(self.cluster, pod, explained)

    def queues(self) -> model.Queues:
        """Return queues, each before its children."""
        items = queues.queue_documents(self.cluster)
        return model.Queues(total=len(items), items=items)

    def queue(self, name: str) -> model.Queue | None:
        """Return one queue, with its pods that have devices or wait for some."""
        document = queues.queue_document(self.cluster, name)
        if document is None:
            return None
        queue_pods = (
            pods.pod_document(self.cluster, pod)
            for pod in pods.device_pods(self.cluster)
            if self.cluster.pod_queue(pod) == name and not pod.finished
        )
        return document.model_copy(update={"pods": tuple(queue_pods)})

    def reservations(self) -> model.Reservations:
        """Return Reservations, by key."""
        items = document_reservations.reservation_documents(self.cluster)
        return model.Reservations(total=len(items), items=items)

    def shapes(self) -> model.Shapes:
        """Return the shapes of nodes that can be requested."""
        items = self.cluster.cached("shapes", lambda: node_shapes.shape_documents(self.cluster))
        on = self.cluster.objects.shapes is not None
        return model.Shapes(total=len(items), items=items, on=on)

    def timeline(self, part: selection.PageRequest = selection.ALL) -> model.Timeline:
        """Return recent events, the newest first."""
        items = tuple(self.events[: part.limit])
        return model.Timeline(total=len(self.events), items=items)

    @staticmethod
    def _documents(keys: Iterable[str], find: Callable[[str], T | None]) -> tuple[T, ...]:
        return tuple(document for key in keys if (document := find(key)) is not None)
