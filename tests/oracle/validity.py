"""Is an allocation right? A judge of its own, from the rules of the API (KEPs 4381, 4815, 4816,
5007, 5018, 5055, 5075, 5963), over raw JSON.

It says what is wrong, never which of several right answers is better: an alternative of
`firstAvailable` need not be the first one that fits.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.oracle import amounts, asked, belongings, inventory, limits, scenarios, truth

Raw = dict[str, Any]


def problems(
    cluster: scenarios.Cluster,
    claims: Sequence[Raw],
    node: str,
    allocations: Sequence[Raw],
    believed: truth.Truth,
) -> list[str]:
    """Return the problems of these `status.allocation`, one a claim, for one node."""
    if len(allocations) != len(claims):
        return [f"{len(allocations)} allocations for {len(claims)} claims"]
    names: list[str] = []
    judged = Judge(cluster, node, believed)
    chosen: list[list[asked.Chosen]] = []
    for claim, allocation in zip(claims, allocations, strict=True):
        picked, wrong = asked.read(claim, allocation)
        wrong += judged.of_claim(claim, picked)
        wrong += belongings.problems(cluster, judged.devices, node, claim, picked, allocation)
        wrong += limits.problems(allocation)
        names += [f"{claim['metadata']['name']}: {name}" for name in wrong]
        chosen.append(picked)
    names += judged.together(chosen)
    return names


class Judge:
    """One node of a cluster; `devices` are those that can be used there, in use or not."""

    def __init__(self, cluster: scenarios.Cluster, node: str, believed: truth.Truth) -> None:
        self._cluster = cluster
        self._believed = believed
        self._classes = {
            device_class["metadata"]["name"]: device_class for device_class in cluster.classes
        }
        self._known = inventory.Inventory(cluster)
        self._labels = cluster.nodes[node]
        self._node = node
        self.devices = {placed.id: placed for placed in self._known.on(node, self._labels)}

    def of_claim(self, claim: Raw, picked: list[asked.Chosen]) -> Iterator[str]:
        """Yield the problems within one claim."""
        for chosen in picked:
            yield from self._count(chosen)
            for result in chosen.results:
                yield from self._result(chosen, result)
        whole = Counter(
            _id(result) for item in picked for result in item.results if not self._shared(result)
        )
        yield from (f"{_text(key)} is given twice" for key, count in whole.items() if count > 1)
        for constraint in claim["spec"]["devices"].get("constraints", ()):
            yield from self._constraint(constraint, picked)

    def _count(self, chosen: asked.Chosen) -> Iterator[str]:
        ids = {_id(result) for result in chosen.results}
        if len(ids) != len(chosen.results):
            yield f"{chosen.name} gets a device twice"
        if not chosen.everything:
            expected = chosen.body.get("count", 1)
            if len(chosen.results) != expected:
                yield f"{chosen.name} gets {len(chosen.results)} devices, asked for {expected}"
            return
        for pool in self._known.pools.values():
            if pool.why_not and pool.reaches(self._node, self._labels):
                yield f"{chosen.name} is for all devices, but {pool.name} is {pool.why_not}"
        every = {
            key for key, device in self.devices.items() if self.selectable(chosen.body, device)
        }
        if ids != every:
            yield f"{chosen.name} gets {len(ids)} devices, all are {len(every)}"

    def selectable(self, body: Raw, device: inventory.Placed) -> bool:
        """Return whether class, request and capacity asked for admit the device."""
        chosen = [*self._classes[body["deviceClassName"]]["spec"].get("selectors", ())]
        chosen += body.get("selectors", ())
        return self._offers(body, device) and all(
            self._believed.of(entry["cel"]["expression"], device) is True for entry in chosen
        )

    @staticmethod
    def _offers(body: Raw, device: inventory.Placed) -> bool:
        """Return whether the device, were nobody on it, has the capacity that is asked."""
        requested = body.get("capacity", {}).get("requests", {})
        has = device.raw.get("capacity", {})
        if not set(requested) <= set(has):
            return False
        for name, text in requested.items():
            taken = amounts.rounded(text, has[name])
            if taken is None or taken > amounts.number(has[name]["value"]):
                return False
        return True

    def _result(self, chosen: asked.Chosen, result: Raw) -> Iterator[str]:
        device = self.devices.get(_id(result))
        if device is None:
            yield f"{_text(_id(result))} cannot be used on {self._node}"
            return
        if not self.selectable(chosen.body, device):
            yield f"{_text(device.id)} is not what {chosen.name} selects"
        for taint in device.taints:
            if not tolerated(taint, chosen.body.get("tolerations", ())):
                yield f"{chosen.name} does not tolerate {taint['key']} of {_text(device.id)}"
        yield from _consumed(chosen, device, result)

    def _shared(self, result: Raw) -> bool:
        device = self.devices.get(_id(result))
        return device is not None and device.shared

    def _constraint(self, constraint: Raw, picked: list[asked.Chosen]) -> Iterator[str]:
        kind = "matchAttribute" if "matchAttribute" in constraint else "distinctAttribute"
        name = constraint[kind]
        values = [
            _attribute(self.devices[_id(result)], name)
            for chosen in picked
            if chosen.named(constraint.get("requests", ()))
            for result in chosen.results
            if _id(result) in self.devices
        ]
        if None in values:
            yield f"{kind} {name}: a device does not have it"
            return
        sets = [value for value in values if value is not None]
        if kind == "matchAttribute" and sets and not frozenset.intersection(*sets):
            yield f"matchAttribute {name}: values differ"
        if kind == "distinctAttribute" and sum(map(len, sets)) != len(frozenset().union(*sets)):
            yield f"distinctAttribute {name}: a value is there twice"

    def together(self, chosen: list[list[asked.Chosen]]) -> Iterator[str]:
        """Yield the problems between the claims, and with those allocated before."""
        fresh = [
            result
            for picked in chosen
            for chosen in picked
            for result in chosen.results
            if not chosen.admin
        ]
        previous = [entry for entry in _held(self._cluster) if not entry.get("adminAccess")]
        whole = Counter(_id(entry) for entry in (*previous, *fresh) if "shareID" not in entry)
        new = {_id(entry) for entry in fresh}
        for key, count in whole.items():
            if count > 1 and key in new:
                yield f"{_text(key)} is in use"
        every = (result for picked in chosen for chosen in picked for result in chosen.results)
        ids = Counter(
            entry["shareID"] for entry in (*_held(self._cluster), *every) if "shareID" in entry
        )
        yield from (f"share {key} is there twice" for key, count in ids.items() if count > 1)
        yield from self._sums([*previous, *fresh], new)
        used = {_id(entry) for entry in previous} | new
        yield from self._counters(used, new)
        yield from self._groups(used, new)

    def _sums(self, results: list[Raw], new: set[inventory.Id]) -> Iterator[str]:
        sums: Counter[tuple[inventory.Id, str]] = Counter()
        for result in results:
            for name, text in result.get("consumedCapacity", {}).items():
                sums[_id(result), name] += amounts.number(text)  # type: ignore[assignment]
        for (key, name), total in sums.items():
            device = self._known.devices.get(key)
            if device is None or key not in new:
                continue
            capacity = device.raw.get("capacity", {}).get(name)
            if capacity is not None and total > amounts.number(capacity["value"]):
                yield f"{_text(key)} is over its {name}"

    def _counters(self, used: set[inventory.Id], new: set[inventory.Id]) -> Iterator[str]:
        """No counter of a pool that is drawn on anew may be below zero."""
        for row, pool in self._known.pools.items():
            if not any(
                key[:2] == row and self._known.devices[key].raw.get("consumesCounters")
                for key in new & set(self._known.devices)
            ):
                continue
            for (name, counter), left in counters_left(self._known, pool, used).items():
                if left < 0:
                    yield f"counter {name}/{counter} of {pool.name} is short by {-left}"

    def _groups(self, used: set[inventory.Id], new: set[inventory.Id]) -> Iterator[str]:
        """All that draw on a counter set have a group in common, or none has any."""
        by_set: dict[tuple[str, str, str], dict[inventory.Id, frozenset[str]]] = {}
        for key in used & set(self._known.devices):
            for use in self._known.devices[key].raw.get("consumesCounters", ()):
                groups = frozenset(use.get("compatibilityGroups", ()))
                by_set.setdefault((*key[:2], use["counterSet"]), {})[key] = groups
        for name, members in by_set.items():
            if not any(members.values()) or not new & set(members):
                continue
            if not frozenset.intersection(*members.values()):
                yield f"counter set {name[2]} of {name[1]}: incompatible groups"


def counters_left(
    existing: inventory.Inventory, pool: inventory.Pool, used: set[inventory.Id]
) -> Mapping[tuple[str, str], Fraction]:
    """Return what devices in use leave, by counter set and counter; each draws once."""
    left = {
        (name, counter): amounts.number(entry["value"])
        for name, counters in pool.sets.items()
        for counter, entry in counters.items()
    }
    for key, amount in _draws(existing, pool, used):
        # A pool that is not usable may draw on what is not there.
        if key in left:
            left[key] -= amount
    return left


def _draws(
    existing: inventory.Inventory, pool: inventory.Pool, used: set[inventory.Id]
) -> Iterator[tuple[tuple[str, str], Fraction]]:
    values = (pool.driver, pool.name)
    for device in (existing.devices[key] for key in used if key in existing.devices):
        for uses in device.raw.get("consumesCounters", ()) if device.id[:2] == values else ():
            for counter, entry in uses["counters"].items():
                yield (uses["counterSet"], counter), amounts.number(entry["value"])


def _held(cluster: scenarios.Cluster) -> list[Raw]:
    return [
        result
        for claim in cluster.allocated
        for result in claim["status"]["allocation"]["devices"].get("results", ())
    ]


def _consumed(chosen: asked.Chosen, device: inventory.Placed, result: Raw) -> Iterator[str]:
    text = _text(device.id)
    if not device.shared:
        if "shareID" in result or "consumedCapacity" in result:
            yield f"{text} is not shared, but a share of it is given"
        return
    if "shareID" not in result:
        yield f"{text} is shared, but the result has no shareID"
    requested = chosen.body.get("capacity", {}).get("requests", {})
    due = {
        name: amounts.rounded(requested.get(name), capacity)
        for name, capacity in device.raw.get("capacity", {}).items()
    }
    fractions = {
        name: amounts.number(text) for name, text in result.get("consumedCapacity", {}).items()
    }
    if due != fractions:
        yield f"{chosen.name} consumes {result.get('consumedCapacity')} of {text}, which is not due"


def tolerated(taint: Raw, tolerations: Sequence[Raw]) -> bool:
    """Return whether a taint keeps nobody with these tolerations away (KEP-5055)."""
    if taint["effect"] not in {"NoSchedule", "NoExecute"}:
        return True
    return any(
        toleration.get("effect") in {None, "", taint["effect"]}
        and toleration.get("key", "") in {"", taint["key"]}
        and (
            toleration.get("operator", "Equal") == "Exists"
            or (
                bool(toleration.get("key"))
                and toleration.get("value", "") == taint.get("value", "")
            )
        )
        for toleration in tolerations
    )


def _attribute(device: inventory.Placed, name: str) -> frozenset[tuple[str, Any]] | None:
    domain, _, bare = name.partition("/")
    has = device.raw.get("attributes", {})
    result = has.get(name, has.get(bare) if domain == device.id[0] else None)
    if result is None:
        return None
    ((kind, value),) = result.items()
    values = value if isinstance(value, list) else [value]
    return frozenset((kind.removesuffix("s"), value) for value in values)


def _id(result: Raw) -> inventory.Id:
    return result["driver"], result["pool"], result["device"]


def _text(key: inventory.Id) -> str:
    return "/".join(key)
