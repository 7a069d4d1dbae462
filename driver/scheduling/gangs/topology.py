"""Topology of nodes: levels of domains, by the labels of nodes. Pure.

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
"""Values of a domain, from the coarsest level on; () is the whole cluster."""
_SINGLETON = "\0"
"""Prefix of a node's name: no label value starts with it."""


@dataclass(frozen=True, slots=True)
class Topology:
    """Topology requirements of a gang.

    `levels` are label keys from coarse to fine, such as `topology.kubernetes.io/zone`, a rack's and
    `nvidia.com/gpu.clique`, the domain of multi-node NVLink. All of a gang is inside one domain of
    the level `required`; down to the level `preferred` it is in as few domains as possible. Raises
    BadInput.
    """

    levels: tuple[str, ...] = ()
    required: str | None = None
    preferred: str | None = None

    def __post_init__(self) -> None:
        if len(set(self.levels)) < len(self.levels):
            raise errors.BadInput("topology", "a level is named twice", "each level once")
        for level in (self.required, self.preferred):
            if level is not None and level not in self.levels:
                levels = ", ".join(self.levels) or "none"
                raise errors.BadInput("topology", f"{level!r} is no level", f"one of {levels}")
        if self.preferred is not None and self.depth < self.required_depth:
            raise errors.BadInput(
                "topology",
                f"{self.preferred!r} is coarser than {self.required!r}, which is required",
                "a preferred level that is finer than the required one",
            )

    @property
    def required_depth(self) -> int:
        """Number of levels of which all of the gang shares a domain; 0: none."""
        return 0 if self.required is None else self.levels.index(self.required) + 1

    @property
    def depth(self) -> int:
        """Number of levels that matter."""
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
        """Yield the domains at a depth from the top."""
        if depth == len(self.path):
            yield self
        for subdomain in self.subdomains:
            yield from subdomain.domains_at(depth)


@dataclass(frozen=True, slots=True)
class DomainTree:
    """The cluster as one domain, and the nodes left out for a missing label."""

    cluster: Domain
    unlabelled: tuple[ids.NodeName, ...]


def build_domains(view: snapshot.Snapshot, topology: Topology) -> DomainTree:
    """Return the domain tree.

    A node without the label of a required level, or of a coarser one, is left out. A node without
    the label of a preferred level is a domain of its own there.
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
    return tuple(f"{_SINGLETON}{node.name}" if value is None else value for value in values)


def _domain(
    path: Path, names: Sequence[ids.NodeName], paths: Mapping[ids.NodeName, Path], depth: int
) -> Domain:
    level = len(path)
    if level == depth:
        return Domain(path, tuple(names))
    inside = itertools.groupby(
        sorted(names, key=lambda name: paths[name][level]), key=lambda name: paths[name][level]
    )
    return Domain(
        path,
        tuple(names),
        tuple(_domain((*path, value), [*members], paths, depth) for value, members in inside),
    )


def describe(topology: Topology, path: Path) -> str:
    """Return `rack r1 of zone z1`, by the last part of each key; `the cluster` for all of it."""
    parts = [
        f"{key.rpartition('/')[2]} {value}"
        for key, value in zip(topology.levels, path, strict=False)
        if not value.startswith(_SINGLETON)
    ]
    return " of ".join(reversed(parts)) or "the cluster"
