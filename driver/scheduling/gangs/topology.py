"""How near nodes are to each other: levels of domains, told by the labels of nodes. Pure.

A level is a label key, as with Kueue's and KAI's topologies; a domain is the nodes that have the
same values for it and for every coarser level, so that two zones may number their racks alike.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from driver import errors, ids
from driver.resources.core import nodes
from driver.scheduling.snapshot import snapshot

Path = tuple[str, ...]
"""A domain's values, from the coarsest level on; () is the whole cluster."""
_SINGLETON = "\0"
"""Before a node's name: no label's value starts so."""


@dataclass(frozen=True, slots=True)
class Topology:
    """What a gang asks of its places.

    `levels` are label keys from coarse to fine, such as `topology.kubernetes.io/zone`, a rack's and
    `nvidia.com/gpu.clique`, the domain of multi-node NVLink. All of a gang is inside one domain of
    the level `required`; down to the level `preferred` it is in as few domains as can be. Raises
    BadInput.
    """

    levels: tuple[str, ...] = ()
    required: str | None = None
    preferred: str | None = None

    def __post_init__(self) -> None:
        if len(set(self.levels)) < len(self.levels):
            raise errors.BadInput("topology", "a level is named twice", "each level once")
        for one in (self.required, self.preferred):
            if one is not None and one not in self.levels:
                known = ", ".join(self.levels) or "none"
                raise errors.BadInput("topology", f"{one!r} is no level", f"one of {known}")
        if self.preferred is not None and self.depth < self.required_depth:
            raise errors.BadInput(
                "topology",
                f"{self.preferred!r} is coarser than {self.required!r}, which is required",
                "a preferred level that is finer than the required one",
            )

    @property
    def required_depth(self) -> int:
        """How many levels all of the gang has to share a domain of; 0: none."""
        return 0 if self.required is None else self.levels.index(self.required) + 1

    @property
    def depth(self) -> int:
        """How many levels matter."""
        return (
            self.required_depth if self.preferred is None else self.levels.index(self.preferred) + 1
        )


@dataclass(frozen=True, slots=True)
class Domain:
    """Nodes that are near each other, by name, and the domains of the next level among them."""

    path: Path
    nodes: tuple[ids.NodeName, ...]
    subdomains: tuple["Domain", ...] = ()

    def domains_at(self, depth: int) -> Iterator["Domain"]:
        """The domains so many levels from the top."""
        if depth == len(self.path):
            yield self
        for one in self.subdomains:
            yield from one.domains_at(depth)


@dataclass(frozen=True, slots=True)
class DomainTree:
    """The cluster as one domain, and the nodes left out for a label that they lack."""

    cluster: Domain
    unlabelled: tuple[ids.NodeName, ...]


def build_domains(view: snapshot.Snapshot, topology: Topology) -> DomainTree:
    """Which nodes are near each other.

    A node without the label of a required level, or of a coarser one, is left out. One without the
    label of a level that is only preferred is near nobody there.
    """
    paths: dict[ids.NodeName, Path] = {}
    unlabelled: list[ids.NodeName] = []
    for name, node in sorted(view.nodes.items()):
        path = _path(node, topology)
        if path is None:
            unlabelled.append(name)
        else:
            paths[name] = path
    return DomainTree(_domain((), [*paths], paths, topology.depth), tuple(unlabelled))


def _path(node: nodes.Node, topology: Topology) -> Path | None:
    values = [node.labels.get(key) for key in topology.levels[: topology.depth]]
    if None in values[: topology.required_depth]:
        return None
    return tuple(f"{_SINGLETON}{node.name}" if one is None else one for one in values)


def _domain(
    path: Path, names: Sequence[ids.NodeName], paths: Mapping[ids.NodeName, Path], depth: int
) -> Domain:
    at = len(path)
    if at == depth:
        return Domain(path, tuple(names))
    inside = itertools.groupby(
        sorted(names, key=lambda name: paths[name][at]), key=lambda name: paths[name][at]
    )
    return Domain(
        path,
        tuple(names),
        tuple(_domain((*path, value), [*found], paths, depth) for value, found in inside),
    )


def describe(topology: Topology, path: Path) -> str:
    """`rack r1 of zone z1`, by the last part of each key; the whole cluster is `the cluster`."""
    found = [
        f"{key.rpartition('/')[2]} {value}"
        for key, value in zip(topology.levels, path, strict=False)
        if not value.startswith(_SINGLETON)
    ]
    return " of ".join(reversed(found)) or "the cluster"
