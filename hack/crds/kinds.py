"""Our kinds: what they are called, where they live, what `kubectl get` shows of them. Pure."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import pydantic

from driver import names
from driver.api import queues, reservations
from driver.kube import gvr
from hack.crds import schema


class Column(NamedTuple):
    """A column of `kubectl get`: its head, where its text is, and the type of that."""

    head: str
    path: str
    type: str = "string"


@dataclass(frozen=True, slots=True)
class Kind:
    """One of our kinds; `short` is what people type."""

    model: type[pydantic.BaseModel]
    resource: gvr.Resource
    short: str
    columns: tuple[Column, ...]

    @property
    def name(self) -> str:
        """`Queue`."""
        return self.model.__name__

    @property
    def crd(self) -> str:
        """`queues.ration.dev`."""
        return f"{self.resource.plural}.{self.resource.group}"


_AGE = Column("Age", ".metadata.creationTimestamp", "date")
QUEUE = Kind(
    queues.Queue,
    gvr.QUEUES,
    "rq",
    (
        Column("Parent", ".spec.parent"),
        Column("Weight", ".spec.weight", "integer"),
        Column("Deserved", ".status.deserved"),
        Column("Used", ".status.allocated"),
        Column("Fair", ".status.fairShare"),
        Column("Borrowed", ".status.borrowed"),
        Column("Waiting", ".status.waiting", "integer"),
        Column("Oldest", ".status.oldestWait"),
        Column("Accepted", '.status.conditions[?(@.type=="Accepted")].status'),
        _AGE,
    ),
)
RESERVATION = Kind(
    reservations.Reservation,
    gvr.RESERVATIONS,
    "rsv",
    (
        Column("For", ".status.for"),
        Column("Start", ".spec.start"),
        Column("Phase", ".status.phase"),
        Column("Devices", ".status.count", "integer"),
        Column("Nodes", ".status.nodes"),
        _AGE,
    ),
)
KINDS = (QUEUE, RESERVATION)


def spec(kind: Kind) -> dict[str, Any]:
    """The `spec` of its CustomResourceDefinition."""
    singular = kind.name.lower()
    columns = [{"name": one.head, "type": one.type, "jsonPath": one.path} for one in kind.columns]
    version = {
        "name": kind.resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": whole(kind)},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }
    return {
        "group": names.GROUP,
        "scope": "Namespaced" if kind.resource.namespaced else "Cluster",
        "names": {
            "kind": kind.name,
            "listKind": f"{kind.name}List",
            "plural": kind.resource.plural,
            "singular": singular,
            "shortNames": [kind.short],
            "categories": ["ration"],
        },
        "versions": [version],
    }


def whole(kind: Kind) -> schema.Schema:
    """The schema of its objects, with what all objects have."""
    found = schema.structural(kind.model)
    common = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    common |= {"metadata": {"type": "object"}}
    return {**found, "properties": {**common, **found["properties"]}}
