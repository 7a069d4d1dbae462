"""The resource requests of pods as kube-scheduler counts them, for a pod to place and a placed one.

Sidecars (init containers with restartPolicy Always, KEP-753) run beside later init steps; requests
of the pod as a whole (KEP-2837) go before those of its containers; overhead (KEP-688) comes on top.
What a placed pod takes is the most of what its spec, its allocation and its cgroups say (KEP-1287),
and what its claims take of the node on top (KEP-5517).
Amounts are summed in nano-units and rounded up at the end.
"""

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping

from driver.resources import fields, quantities

Amounts = dict[str, int]
"""Nano-units by resource."""
_NANO, _MICRO = 10**9, 10**6
_POD_LEVEL = frozenset({"cpu", "memory"})
_MOST_SHARED = 4096
_HUGE_PAGES = "hugepages-"
_PENDING = "PodResizePending"
_Of = Callable[[fields.Raw, str], Amounts]
"""What a container asks, given where it stands."""


def effective_requests(spec: fields.Raw) -> Mapping[str, int]:
    """The requests of a pod to place: `cpu` in milli-cores, all else in its unit.

    Equal ones, such as those of a Deployment's pods, are one object.
    """
    return _shared_amounts(tuple(_rounded(_effective(spec)).items()))


@functools.lru_cache(maxsize=_MOST_SHARED)
def _shared_amounts(amounts: tuple[tuple[str, int], ...]) -> Mapping[str, int]:
    return {sys.intern(name): amount for name, amount in amounts}


def _effective(spec: fields.Raw) -> Amounts:
    amounts = {**_containers(spec, _asked), **_of_pod(spec)}
    return _sum([amounts, _listed(spec, "overhead", "spec")])


def placed_requests(
    spec: fields.Raw, status: fields.Raw, requests: Mapping[str, int]
) -> dict[str, int] | None:
    """The requests that a placed pod takes of its node; None where they are those asked."""
    statuses = _statuses(status)
    whole = status.get("resources") is not None
    stuck = _is_infeasible(status)
    claimed = _sum(_claimed(status))
    if not whole and not stuck and not any(map(_tells, statuses.values())):
        return _rounded(_sum([_effective(spec), claimed])) if claimed else None
    aggregate = _told(spec, status, statuses, stuck=stuck)
    of_pod = _of_pod(spec)
    if of_pod and whole:
        of_pod = _supported(_of_whole(status, {} if stuck else of_pod))
    amounts = _sum([{**aggregate, **of_pod}, _listed(spec, "overhead", "spec"), claimed])
    taken = _rounded(amounts)
    return None if taken == requests else taken


def _claimed(status: fields.Raw) -> Iterator[Amounts]:
    """Yield the node's resources that kube-scheduler counts for the pod's claims (KEP-5517)."""
    listed = fields.objects(status, "nodeAllocatableResourceClaimStatuses", "status")
    for field_path, claim in listed:
        yield _listed(claim, "resources", field_path)  # 1.36
        for path, mapped in fields.objects(claim, "mapping", field_path):
            yield _amount(mapped, "quantity", path)
        containers = len(fields.texts(claim, "containers", field_path))
        for path, overhead in fields.objects(claim, "overhead", field_path):
            yield _amount(overhead, "perPod", path)
            yield _amount(overhead, "perContainer", path, containers)


def _amount(obj: fields.Raw, key: str, path: str, count: int = 1) -> Amounts:
    """Return an amount of the resource that the object names, times a count."""
    value = obj.get(key)
    if value is None:
        return {}
    nanos = quantities.parse(value, f"{path}.{key}").nanos
    return {fields.text(obj, "name", path): count * nanos}


def _told(
    spec: fields.Raw, status: fields.Raw, statuses: Mapping[str, fields.Raw], *, stuck: bool
) -> Amounts:
    """Return the maximum of requested, allocated and actual amounts over all containers."""
    resources = fields.mapping(status, "resources", "status")
    if status.get("allocatedResources") is not None and resources.get("requests") is not None:
        allocated = _listed(status, "allocatedResources", "status")
        actual = _listed(resources, "requests", "status.resources")
    else:
        allocated = _containers(spec, _Allocated(statuses, stuck=stuck))
        actual = _containers(spec, _Actual(statuses, stuck=stuck))
    most = _most(allocated, actual)
    return most if stuck else _most(_containers(spec, _asked), most)


def _of_whole(status: fields.Raw, requests: Amounts) -> Amounts:
    resources = fields.mapping(status, "resources", "status")
    actual = _listed(resources, "requests", "status.resources")
    return _most(_most(requests, actual), _listed(status, "allocatedResources", "status"))


class _Allocated:
    """The resources that a container was admitted with, else those it asks for."""

    def __init__(self, statuses: Mapping[str, fields.Raw], *, stuck: bool) -> None:
        self._statuses = statuses
        self._stuck = stuck

    def __call__(self, container: fields.Raw, prefix: str) -> Amounts:
        """Nano-units by resource."""
        status = self._status(container, prefix)
        if status.get("allocatedResources") is not None:
            return _listed(status, "allocatedResources", prefix)
        return {} if self._stuck else _asked(container, prefix)

    def _status(self, container: fields.Raw, prefix: str) -> fields.Raw:
        return self._statuses.get(fields.text(container, "name", prefix), {})


class _Actual(_Allocated):
    """The resources that a container runs with, else those it was admitted with."""

    def __call__(self, container: fields.Raw, prefix: str) -> Amounts:
        """Nano-units by resource."""
        resources = fields.mapping(self._status(container, prefix), "resources", prefix)
        if resources.get("requests") is not None:
            return _listed(resources, "requests", prefix)
        return super().__call__(container, prefix)


def _statuses(status: fields.Raw) -> dict[str, fields.Raw]:
    """The statuses of containers by name; of two, that of a container that is no init step."""
    by_name: dict[str, fields.Raw] = {}
    for kind in ("initContainerStatuses", "containerStatuses"):
        for path, container in reversed([*fields.objects(status, kind, "status")]):
            by_name[fields.text(container, "name", path)] = container
    return by_name


def _tells(status: fields.Raw) -> bool:
    return status.get("allocatedResources") is not None or status.get("resources") is not None


def _is_infeasible(status: fields.Raw) -> bool:
    for _, condition in fields.objects(status, "conditions", "status"):
        if condition.get("type") == _PENDING:
            return condition.get("reason") == "Infeasible"
    return False


def _containers(spec: fields.Raw, read: _Of) -> Amounts:
    """Containers and sidecars summed, at least the largest init step."""
    listed = fields.objects(spec, "containers", "spec")
    running = _sum(read(container, path) for path, container in listed)
    sidecars: Amounts = {}
    peak: Amounts = {}
    for path, container in fields.objects(spec, "initContainers", "spec"):
        amounts = read(container, path)
        if fields.text(container, "restartPolicy", path) == "Always":
            running = _sum([running, amounts])
            sidecars = _sum([sidecars, amounts])
            peak = _most(peak, sidecars)
        else:
            peak = _most(peak, _sum([sidecars, amounts]))
    return _most(running, peak)


def _asked(container: fields.Raw, prefix: str) -> Amounts:
    resources = fields.mapping(container, "resources", prefix)
    return _listed(resources, "requests", f"{prefix}.resources")


def _of_pod(spec: fields.Raw) -> Amounts:
    return _supported(_asked(spec, "spec"))


def _supported(amounts: Amounts) -> Amounts:
    """Keep those that a pod as a whole may ask for."""
    return {
        name: amount
        for name, amount in amounts.items()
        if name in _POD_LEVEL or name.startswith(_HUGE_PAGES)
    }


def _listed(obj: fields.Raw, key: str, prefix: str) -> Amounts:
    path = f"{prefix}.{key}"
    return dict(_parsed(fields.mapping(obj, key, prefix), path))


def _parsed(listed: fields.Raw, prefix: str) -> Iterator[tuple[str, int]]:
    for name, value in listed.items():
        yield name, quantities.parse(value, f"{prefix}.{name}").nanos


def _rounded(amounts: Amounts) -> dict[str, int]:
    return {
        name: -(-amount // (_MICRO if name == "cpu" else _NANO)) for name, amount in amounts.items()
    }


def _sum(parts: Iterable[Mapping[str, int]]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _most(left: Mapping[str, int], right: Mapping[str, int]) -> Amounts:
    return {
        name: max(left.get(name, right.get(name, 0)), right.get(name, left.get(name, 0)))
        for name in {**left, **right}
    }
