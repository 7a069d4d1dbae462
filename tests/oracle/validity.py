"""Is an allocation right? A judge of its own, from the rules of the API (KEPs 4381, 4815, 4816,
5007, 5018, 5055, 5075), over raw JSON.

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
    """Return what is wrong with these `status.allocation`, one a claim, for one node.

    Nothing: empty.
    """
    if len(allocations) != len(claims):
        return [f"{len(allocations)} allocations for {len(claims)} claims"]
    found: list[str] = []
    judged = Judge(cluster, node, believed)
    chosen: list[list[asked.Chosen]] = []
    for claim, allocation in zip(claims, allocations, strict=True):
        picked, wrong = asked.read(claim, allocation)
        wrong += judged.of_claim(claim, picked)
        wrong += belongings.problems(cluster, judged.devices, node, claim, picked, allocation)
        wrong += limits.problems(allocation)
        found += [f"{claim['metadata']['name']}: {one}" for one in wrong]
        chosen.append(picked)
    found += judged.together(chosen)
    return found


class Judge:
    """One node of a cluster; `devices` are those that can be used there, in use or not."""

    def __init__(self, cluster: scenarios.Cluster, node: str, believed: truth.Truth) -> None:
        self._cluster = cluster
        self._believed = believed
        self._classes = {one["metadata"]["name"]: one for one in cluster.classes}
        self._known = inventory.Inventory(cluster)
        self._labels = cluster.nodes[node]
        self._node = node
        self.devices = {one.id: one for one in self._known.on(node, self._labels)}

    def of_claim(self, claim: Raw, picked: list[asked.Chosen]) -> Iterator[str]:
        """Yield the problems within one claim."""
        for one in picked:
            yield from self._count(one)
            for result in one.results:
                yield from self._result(one, result)
        whole = Counter(
            _id(result) for one in picked for result in one.results if not self._shared(result)
        )
        yield from (f"{_text(key)} is given twice" for key, count in whole.items() if count > 1)
        for constraint in claim["spec"]["devices"].get("constraints", ()):
            yield from self._constraint(constraint, picked)

    def _count(self, one: asked.Chosen) -> Iterator[str]:
        given = {_id(result) for result in one.results}
        if len(given) != len(one.results):
            yield f"{one.name} gets a device twice"
        if not one.everything:
            wanted = one.body.get("count", 1)
            if len(one.results) != wanted:
                yield f"{one.name} gets {len(one.results)} devices, asked for {wanted}"
            return
        for pool in self._known.pools.values():
            if pool.why_not and pool.reaches(self._node, self._labels):
                yield f"{one.name} is for all devices, but {pool.name} is {pool.why_not}"
        every = {key for key, device in self.devices.items() if self.selectable(one.body, device)}
        if given != every:
            yield f"{one.name} gets {len(given)} devices, all are {len(every)}"

    def selectable(self, body: Raw, device: inventory.Placed) -> bool:
        """Return whether class, request and capacity asked for admit the device."""
        chosen = [*self._classes[body["deviceClassName"]]["spec"].get("selectors", ())]
        chosen += body.get("selectors", ())
        return self._offers(body, device) and all(
            self._believed.of(one["cel"]["expression"], device) is True for one in chosen
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

    def _result(self, one: asked.Chosen, result: Raw) -> Iterator[str]:
        device = self.devices.get(_id(result))
        if device is None:
            yield f"{_text(_id(result))} cannot be used on {self._node}"
            return
        if not self.selectable(one.body, device):
            yield f"{_text(device.id)} is not what {one.name} selects"
        for taint in device.taints:
            if not tolerated(taint, one.body.get("tolerations", ())):
                yield f"{one.name} does not tolerate {taint['key']} of {_text(device.id)}"
        yield from _consumed(one, device, result)

    def _shared(self, result: Raw) -> bool:
        device = self.devices.get(_id(result))
        return device is not None and device.shared

    def _constraint(self, constraint: Raw, picked: list[asked.Chosen]) -> Iterator[str]:
        kind = "matchAttribute" if "matchAttribute" in constraint else "distinctAttribute"
        name = constraint[kind]
        values = [
            _attribute(self.devices[_id(result)], name)
            for one in picked
            if one.named(constraint.get("requests", ()))
            for result in one.results
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
            result for picked in chosen for one in picked for result in one.results if not one.admin
        ]
        before = [one for one in _held(self._cluster) if not one.get("adminAccess")]
        whole = Counter(_id(one) for one in (*before, *fresh) if "shareID" not in one)
        new = {_id(one) for one in fresh}
        for key, count in whole.items():
            if count > 1 and key in new:
                yield f"{_text(key)} is in use"
        every = (result for picked in chosen for one in picked for result in one.results)
        ids = Counter(one["shareID"] for one in (*_held(self._cluster), *every) if "shareID" in one)
        yield from (f"share {one} is there twice" for one, count in ids.items() if count > 1)
        yield from self._sums([*before, *fresh], new)
        yield from self._counters({_id(one) for one in before} | new, new)

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
        for where, pool in self._known.pools.items():
            if not any(
                key[:2] == where and self._known.devices[key].raw.get("consumesCounters")
                for key in new & set(self._known.devices)
            ):
                continue
            for (name, counter), left in counters_left(self._known, pool, used).items():
                if left < 0:
                    yield f"counter {name}/{counter} of {pool.name} is short by {-left}"


def counters_left(
    known: inventory.Inventory, pool: inventory.Pool, used: set[inventory.Id]
) -> Mapping[tuple[str, str], Fraction]:
    """Return what devices in use leave, by counter set and counter; each draws once."""
    left = {
        (name, counter): amounts.number(one["value"])
        for name, counters in pool.sets.items()
        for counter, one in counters.items()
    }
    for key, amount in _draws(known, pool, used):
        # A pool that is not usable may draw on what is not there.
        if key in left:
            left[key] -= amount
    return left


def _draws(
    known: inventory.Inventory, pool: inventory.Pool, used: set[inventory.Id]
) -> Iterator[tuple[tuple[str, str], Fraction]]:
    where = (pool.driver, pool.name)
    for device in (known.devices[key] for key in used if key in known.devices):
        for uses in device.raw.get("consumesCounters", ()) if device.id[:2] == where else ():
            for counter, one in uses["counters"].items():
                yield (uses["counterSet"], counter), amounts.number(one["value"])


def _held(cluster: scenarios.Cluster) -> list[Raw]:
    return [
        result
        for claim in cluster.allocated
        for result in claim["status"]["allocation"]["devices"].get("results", ())
    ]


def _consumed(one: asked.Chosen, device: inventory.Placed, result: Raw) -> Iterator[str]:
    where = _text(device.id)
    if not device.shared:
        if "shareID" in result or "consumedCapacity" in result:
            yield f"{where} is not shared, but a share of it is given"
        return
    if "shareID" not in result:
        yield f"{where} is shared, but the result has no shareID"
    requested = one.body.get("capacity", {}).get("requests", {})
    due = {
        name: amounts.rounded(requested.get(name), capacity)
        for name, capacity in device.raw.get("capacity", {}).items()
    }
    given = {
        name: amounts.number(text) for name, text in result.get("consumedCapacity", {}).items()
    }
    if due != given:
        yield f"{one.name} consumes {result.get('consumedCapacity')} of {where}, which is not due"


def tolerated(taint: Raw, tolerations: Sequence[Raw]) -> bool:
    """Return whether a taint keeps nobody with these tolerations away (KEP-5055)."""
    if taint["effect"] not in {"NoSchedule", "NoExecute"}:
        return True
    return any(
        one.get("effect") in {None, "", taint["effect"]}
        and one.get("key", "") in {"", taint["key"]}
        and (
            one.get("operator", "Equal") == "Exists"
            or (bool(one.get("key")) and one.get("value", "") == taint.get("value", ""))
        )
        for one in tolerations
    )


def _attribute(device: inventory.Placed, name: str) -> frozenset[tuple[str, Any]] | None:
    domain, _, bare = name.partition("/")
    has = device.raw.get("attributes", {})
    found = has.get(name, has.get(bare) if domain == device.id[0] else None)
    if found is None:
        return None
    ((kind, value),) = found.items()
    values = value if isinstance(value, list) else [value]
    return frozenset((kind.removesuffix("s"), one) for one in values)


def _id(result: Raw) -> inventory.Id:
    return result["driver"], result["pool"], result["device"]


def _text(key: inventory.Id) -> str:
    return "/".join(key)
