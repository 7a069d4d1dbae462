"""Every report, by the paths of the JSON API: what serves it, and what draws it, ask this. Pure.

`ration` reads it of a kubeconfig alone; the page and the API, of the controller's caches.
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
"""Why a pod is where it is, or is nowhere; None where that is not known."""


def unexplained(_: ids.Key) -> model.Explanation | None:
    """Nothing is known."""
    return None


@dataclass(frozen=True)
class Reading:
    """Of what was seen at a time (RFC 3339). `moments` are the newest first."""

    found: read_model.Seen
    at: str
    explain: Explain = unexplained
    moments: Sequence[model.Moment] = field(default_factory=tuple)

    def fleet(self) -> model.Fleet:
        """All of it in figures."""
        return self.found.once("fleet", lambda: fleet.fleet(self.found, self.at))

    def nodes(
        self, part: selection.Part = selection.ALL, wanted: selection.Wanted = selection.ANY
    ) -> model.Nodes:
        """Nodes with GPUs, by name."""
        there = [one for one in fleet.nodes(self.found) if wanted.has(one)]
        items, following = paging.part(there, lambda one: one.name, part.after, part.limit)
        return model.Nodes(total=len(there), next=following, items=items)

    def node(self, name: str) -> model.Node | None:
        """One node with GPUs."""
        return gpus.node(self.found, name)

    def gpu(self, node: str, name: str) -> model.Gpu | None:
        """One GPU, by name, UUID or PCI address."""
        return gpus.gpu(self.found, node, name)

    def claims(self, namespace: str = "", part: selection.Part = selection.ALL) -> model.Claims:
        """Claims that concern us, by key."""
        keys = [*claims.every(self.found, namespace)]
        shown, following = paging.part(keys, str, part.after, part.limit)
        return model.Claims(total=len(keys), next=following, items=self._known(shown, self.claim))

    def claim(self, key: str) -> model.Claim | None:
        """One claim."""
        return claims.claim(self.found, key)

    def pods(self, namespace: str = "", part: selection.Part = selection.ALL) -> model.Pods:
        """Pods that concern us, by key."""
        keys = [one.key for one in pods.every(self.found, namespace)]
        return self._pods(keys, part)

    def waiting(self, namespace: str = "", part: selection.Part = selection.ALL) -> model.Pods:
        """Pods that have not got their devices, the oldest first."""
        there = sorted(pods.waiting(self.found, namespace), key=lambda one: (one.created, one.key))
        return self._pods([one.key for one in there], part)

    def _pods(self, keys: Sequence[ids.Key], part: selection.Part) -> model.Pods:
        shown, following = paging.part(keys, str, part.after, part.limit)
        return model.Pods(total=len(keys), next=following, items=self._known(shown, self._pod))

    def pod(self, key: str) -> model.Pod | None:
        """One pod, explained."""
        return self._pod(key, self.explain(ids.Key(key)))

    def _pod(self, key: str, explained: model.Explanation | None = None) -> model.Pod | None:
        there = self.found.objects.pods.get(ids.Key(key))
        return None if there is None else pods.pod(self.found, there, explained)

    def queues(self) -> model.Queues:
        """Queues, each before its children."""
        items = queues.every(self.found)
        return model.Queues(total=len(items), items=items)

    def queue(self, name: str) -> model.Queue | None:
        """One queue, with its pods that have devices or wait for some."""
        one = queues.queue(self.found, name)
        if one is None:
            return None
        mine = (
            pods.pod(self.found, pod)
            for pod in pods.every(self.found)
            if self.found.queue_of(pod) == name and not pod.finished
        )
        return one.model_copy(update={"pods": tuple(mine)})

    def reservations(self) -> model.Reservations:
        """Reservations, by key."""
        items = document_reservations.reservations_of(self.found)
        return model.Reservations(total=len(items), items=items)

    def shapes(self) -> model.Shapes:
        """Kinds of node that can be asked for."""
        items = self.found.once("shapes", lambda: node_shapes.every(self.found))
        on = self.found.objects.offer is not None
        return model.Shapes(total=len(items), items=items, on=on)

    def timeline(self, part: selection.Part = selection.ALL) -> model.Timeline:
        """What happened, the newest first."""
        items = tuple(self.moments[: part.limit])
        return model.Timeline(total=len(self.moments), items=items)

    @staticmethod
    def _known(keys: Iterable[str], find: Callable[[str], T | None]) -> tuple[T, ...]:
        return tuple(one for key in keys if (one := find(key)) is not None)
