"""kube-scheduler's allocator, asked about a whole cluster at once, and about what is left of it."""

import json
import random  # noqa: TID251 - share ids that are the same every time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.oracle import conversation, oracle, scenarios

Raw = dict[str, Any]
Told = oracle.Allocated | oracle.Unallocated | oracle.OracleError


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of each node, and the microseconds that each took."""

    nodes: Mapping[str, Told]
    micros: tuple[int, ...]

    @property
    def fitting(self) -> dict[str, tuple[Raw, ...]]:
        """The allocations on the nodes where the claims fit. "The reference can": not empty."""
        return {
            name: node.allocations
            for name, node in self.nodes.items()
            if isinstance(node, oracle.Allocated)
        }

    @property
    def errors(self) -> dict[str, oracle.OracleError]:
        """The nodes on which the reference gave up."""
        return {
            name: node for name, node in self.nodes.items() if isinstance(node, oracle.OracleError)
        }


class Reference(conversation.Conversation):
    """The running program; a context manager. `patience_ms` bounds the search on one node."""

    def __init__(self, path: Path | None = None, patience_ms: int = 500) -> None:
        super().__init__(path, "clusters")
        self._patience_ms = patience_ms

    def play(self, draft: scenarios.Draft) -> tuple[scenarios.World, Answers]:
        """Allocate who comes first, then ask every node about the draft's claims."""
        document = self._told(draft.cluster, draft.claims, draft.earlier)
        cluster = draft.cluster
        ids = random.Random(draft.seed)  # noqa: S311 - no secret
        for (claim, _), allocation in zip(draft.earlier, document["earlier"], strict=True):
            if allocation is not None:
                cluster = scenarios.settled(cluster, [claim], [_renamed(allocation, ids)])
        return scenarios.World(cluster, draft.claims), _answers(cluster, document)

    def answers(self, world: scenarios.World) -> Answers:
        """Return what every node answers about a world as it is."""
        return _answers(world.cluster, self._told(world.cluster, world.claims, ()))

    def _told(
        self,
        cluster: scenarios.Cluster,
        claims: Sequence[Raw],
        earlier: Sequence[tuple[Raw, str]],
    ) -> Raw:
        document = {
            "slices": cluster.slices,
            "classes": cluster.classes,
            "taintRules": cluster.rules,
            "allocated": cluster.allocated,
            "earlier": [claim for claim, _ in earlier],
            "on": [node for _, node in earlier],
            "claims": claims,
            "nodes": [{"name": name, "labels": node} for name, node in cluster.nodes.items()],
            "features": cluster.features,
            "patienceMs": self._patience_ms,
        }
        document_value: Raw = json.loads(
            self.ask(json.dumps(document, separators=(",", ":")) + "\n")
        )
        if "error" in document_value:
            raise oracle.OracleError(
                document_value["error"]["where"], document_value["error"]["what"]
            )
        return document_value


@dataclass(frozen=True, slots=True)
class Remains:
    """Remaining counters by the reference. Names are driver/pool and driver/pool/device.

    `consumed` maps a shared device in use to its capacities' consumption, `counters` a pool to
    what its counter sets have available: quantities as Kubernetes writes them.
    """

    taken: frozenset[str]
    consumed: Mapping[str, Mapping[str, str]]
    counters: Mapping[str, Mapping[str, Mapping[str, str]]]


class Ledger(conversation.Conversation):
    """The running program that counts; a context manager."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(path, "remains")

    def remains(self, cluster: scenarios.Cluster) -> Remains:
        """Return what allocated claims leave. Raises OracleError where the allocator disagrees."""
        document = {
            "slices": cluster.slices,
            "allocated": cluster.allocated,
            "features": cluster.features,
        }
        document_value = json.loads(self.ask(json.dumps(document) + "\n"))
        if "error" in document_value:
            raise oracle.OracleError(
                document_value["error"]["where"], document_value["error"]["what"]
            )
        consumed = {name: dict(entry or {}) for name, entry in document_value["consumed"].items()}
        return Remains(frozenset(document_value["taken"]), consumed, document_value["counters"])


def _answers(cluster: scenarios.Cluster, document: Raw) -> Answers:
    nodes: dict[str, Told] = {}
    for name, node in zip(cluster.nodes, document["nodes"], strict=True):
        try:
            nodes[name] = oracle.parse_answer(node)
        except oracle.OracleError as e:
            nodes[name] = e
    return Answers(nodes, tuple(document["micros"]))


def _renamed(allocation: Raw, ids: random.Random) -> Raw:
    """With share ids that depend on the seed alone: the reference draws new ones each time."""
    devices = allocation["devices"]
    results = [
        {**result, "shareID": str(uuid.UUID(int=ids.getrandbits(128), version=4))}
        if "shareID" in result
        else result
        for result in devices["results"]
    ]
    return {**allocation, "devices": {**devices, "results": results}}
