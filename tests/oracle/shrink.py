"""A disagreement made small: parts are dropped while it lasts, and what is left stays legal."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from tests.oracle import admission, scenarios

Raw = dict[str, Any]
Path = tuple[str | int, ...]
_KEPT = frozenset(
    {
        *("apiVersion", "kind", "metadata", "spec", "status", "features", "driver", "pool", "name"),
        *("generation", "resourceSliceCount", "devices", "requests", "exactly", "firstAvailable"),
        *("deviceClassName", "allocationMode", "count", "cel", "expression", "counters", "value"),
        *("counterSet", "default", "min", "nodeSelector", "nodeSelectorTerms", "key", "operator"),
        *("effect", "taint", "opaque", "parameters"),
    }
)


def smallest(
    world: scenarios.World, disagrees: Callable[[scenarios.World], bool]
) -> scenarios.World:
    """No single part of the answer can be dropped without ending the disagreement."""
    document = _document(world)
    shrunk = True
    while shrunk:
        shrunk = False
        for path in _droppable(document):
            smaller = _without(document, path)
            if smaller is None:
                continue
            candidate = _world(smaller)
            if not admission.problems(candidate) and disagrees(candidate):
                document, shrunk = smaller, True
    return _world(document)


def text(world: scenarios.World) -> str:
    """The world for people, as YAML."""
    document = copy.deepcopy(_document(world))
    for key in ("slices", "classes", "rules", "allocated", "claims"):
        for entry in document[key]:
            entry["metadata"] = {"name": entry["metadata"]["name"]}
            entry.pop("apiVersion", None)
            entry.pop("kind", None)
    filled = {key: value for key, value in document.items() if value}
    return yaml.dump(filled, Dumper=_Plain, sort_keys=False, default_flow_style=None, width=100)


class _Plain(yaml.SafeDumper):
    """Writes what is there twice twice."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - of any data
        return True


def _document(world: scenarios.World) -> Raw:
    cluster = world.cluster
    return {
        "nodes": {name: dict(labels) for name, labels in cluster.nodes.items()},
        "slices": list(cluster.slices),
        "classes": list(cluster.classes),
        "rules": list(cluster.rules),
        "allocated": list(cluster.allocated),
        "claims": list(world.claims),
        "features": dict(cluster.features),
    }


def _world(document: Raw) -> scenarios.World:
    fields = {key: document[key] for key in ("slices", "classes", "rules", "allocated", "features")}
    cluster = scenarios.Cluster(nodes=document["nodes"], **fields)
    return scenarios.World(cluster, tuple(document["claims"]))


def _droppable(document: Raw) -> list[Path]:
    """Every part that may go, the large ones first; of a list the last first."""
    return sorted(_paths(document, ()), key=lambda path: (len(path), _last_first(path)))


def _last_first(path: Path) -> tuple[int, ...]:
    return tuple(-entry for entry in path if isinstance(entry, int))


def _paths(part: Any, here: Path) -> Iterator[Path]:
    if here[-1:] == ("metadata",) or (here[:1] == ("allocated",) and len(here) > 1):
        return
    if isinstance(part, dict):
        for key, value in part.items():
            if here and key not in _KEPT:
                yield (*here, key)
            yield from _paths(value, (*here, key))
    elif isinstance(part, list):
        for index in reversed(range(len(part))):
            yield (*here, index)
            yield from _paths(part[index], (*here, index))


def _without(document: Raw, path: Path) -> Raw | None:
    """The document less one part; a pool counts its slices anew. None where the part is gone."""
    smaller = copy.deepcopy(document)
    part: Any = smaller
    try:
        for step in path[:-1]:
            part = part[step]
        gone = part.pop(path[-1])
    except (KeyError, IndexError, TypeError):
        return None
    if len(path) == 2 and path[0] == "slices":
        for slice_ in smaller["slices"]:
            if _same_pool(slice_, gone):
                slice_["spec"]["pool"]["resourceSliceCount"] -= 1
    return smaller


def _same_pool(entry: Raw, other: Raw) -> bool:
    return all(entry["spec"][key] == other["spec"][key] for key in ("driver",)) and all(
        entry["spec"]["pool"][key] == other["spec"]["pool"][key] for key in ("name", "generation")
    )
