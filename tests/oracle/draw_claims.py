"""Drawing device classes and claims: mostly askable of the fleet, near the edge of what fits."""

import random  # noqa: TID251 - the same scenario for the same seed
from collections.abc import Sequence
from typing import Any

from tests.oracle import draw_capacity, draw_slices
from tests.support.builders import objects

Raw = dict[str, Any]
ANY = "any.example.com"
TOLERATIONS: tuple[Raw, ...] = (
    {"operator": "Exists"},
    {"key": "sick", "operator": "Exists"},
    {"key": "sick", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
    {"key": "example.com/drain", "operator": "Equal", "value": "soon", "tolerationSeconds": 30},
    {"key": "owner", "operator": "Equal", "value": "red"},
    {"key": "owner", "operator": "Exists", "effect": "NoSchedule"},
    {"operator": "Exists", "effect": "NoExecute"},
)


class Asking:
    """Drivers and classes that one scenario's users know."""

    def __init__(
        self, chance: random.Random, drivers: Sequence[str], *, lists: bool, crowd: bool
    ) -> None:
        self._chance = chance
        self._drivers = drivers[:1] if crowd else drivers
        self._lists = lists
        self._crowd = crowd

    def classes(self) -> tuple[Raw, ...]:
        """One class a driver, one of its better devices, and one of any device."""
        results = [a_class(ANY)]
        for driver in self._drivers:
            mine = f'device.driver == "{driver}"'
            results.append(a_class(driver, mine, config=self._configs(driver)))
            better = self._expression(driver)
            results.append(a_class(f"better.{driver}", mine, better, config=self._configs(driver)))
        return tuple(results)

    def claim(self, name: str, *, plain: bool = False) -> Raw:
        """One to three requests and what binds them; `plain` ones fit more often."""
        chance = self._chance
        count = chance.choice((1, 1, 1, 2) if plain else (1, 1, 1, 2, 2, 3))
        requests = [self._request(f"r{number}", plain=plain) for number in range(count)]
        devices: Raw = {"requests": requests}
        if not plain and chance.random() < 0.25:
            devices["constraints"] = [
                self._constraint(requests) for _ in range(chance.choice((1, 1, 1, 2)))
            ]
        if not plain and chance.random() < 0.25:
            devices["config"] = [self._config(requests) for _ in range(chance.choice((1, 1, 2)))]
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": objects.meta(name),
            "spec": {"devices": devices},
        }

    def _request(self, name: str, *, plain: bool) -> Raw:
        chance = self._chance
        if not plain and chance.random() < 0.2:
            subs = [
                {"name": f"s{number}", **self._body(chance.random() < 0.3)}
                for number in range(chance.choice((1, 2, 2, 3)))
            ]
            return {"name": name, "firstAvailable": subs}
        body = self._body(plain)
        if chance.random() < 0.05:
            body["adminAccess"] = True
        return {"name": name, "exactly": body}

    def _body(self, plain: bool) -> Raw:  # noqa: FBT001 - of a request
        chance = self._chance
        driver = chance.choice(self._drivers)
        body: Raw = {"deviceClassName": self._class_name(driver)}
        if chance.random() < (0.1 if plain else 0.25):
            body["selectors"] = [
                {"cel": {"expression": self._expression(driver)}}
                for _ in range(chance.choice((1, 1, 1, 2)))
            ]
        self._amount(body, plain)
        if chance.random() < (0.6 if plain else 0.3):
            body["tolerations"] = (
                [TOLERATIONS[0]] if plain else chance.sample(TOLERATIONS, chance.choice((1, 1, 2)))
            )
        if chance.random() < 0.2:
            body["capacity"] = draw_capacity.draw_amounts(chance, driver)
        return body

    def _amount(self, body: Raw, plain: bool) -> None:  # noqa: FBT001 - of a request
        draw = self._chance.random()
        if not plain and draw < 0.07:
            body["allocationMode"] = "All"
            return
        body["allocationMode"] = "ExactCount"
        body["count"] = self._chance.choice((1, 1, 1, 1, 1, 1, 2, 2, 3))
        if not plain and self._crowd:
            body["count"] = self._chance.choice((1, 1, 1, 2, 15, 29, 30, 31, 32, 33))

    def _class_name(self, driver: str) -> str:
        draw = self._chance.random()
        if draw < 0.08:
            return ANY
        return driver if draw < 0.9 else f"better.{driver}"

    def _expression(self, driver: str) -> str:
        chance = self._chance
        mine = f'device.attributes["{driver}"]'
        sizes = f'device.capacity["{driver}"]'
        if chance.random() < 0.02:
            return chance.choice(
                (f"{mine}.absent == 1", f'{sizes}.wings.compareTo(quantity("1")) > 0')
            )
        choice = chance.choice(
            (
                f'"model" in {mine} && {mine}.model == "h100"',
                f'has({mine}.model) && {mine}.model != "h100"',
                f"{mine}.index < 3",
                f"{mine}.index in [0, 1, 3, 4]",
                f'{mine}.?model.orValue("a100").startsWith("a")',
                f'"memory" in {sizes} && {sizes}.memory.compareTo(quantity("40Gi")) > 0',
                f'has({sizes}.memory) && {sizes}.memory.isLessThan(quantity("60Gi"))',
                "device.allowMultipleAllocations == true",
                "!device.allowMultipleAllocations",
                f'"zone" in device.attributes["example.org"] || {mine}.index >= 1',
                "true",
            )
        )
        if self._lists:
            return choice
        return chance.choice(
            (
                choice,
                choice,
                f"{mine}.?healthy.orValue(false)",
                f'has({mine}.firmware) && {mine}.firmware.isGreaterThan(semver("1.5.0"))',
            )
        )

    def _constraint(self, requests: list[Raw]) -> Raw:
        chance = self._chance
        driver = chance.choice(self._drivers)
        kind = "matchAttribute" if chance.random() < 0.6 else "distinctAttribute"
        choice = chance.choice(
            (
                "model",
                "numa",
                "numa",
                "index" if kind == "distinctAttribute" else "healthy",
                "firmware",
            )
        )
        name = chance.choice((f"{driver}/{choice}", f"{driver}/{choice}", draw_slices.ROOT))
        if self._lists and chance.random() < 0.3:
            name = f"{driver}/links"
        result: Raw = {kind: name}
        if chance.random() < 0.6:
            result["requests"] = self._names(requests)
        return result

    def _names(self, requests: list[Raw]) -> list[str]:
        """Some of the requests, now and then by the name of one alternative."""
        chance = self._chance
        names: list[str] = []
        for request in chance.sample(requests, chance.randint(1, len(requests))):
            subs = request.get("firstAvailable")
            if subs and chance.random() < 0.5:
                names += [f"{request['name']}/{entry['name']}" for entry in chance.sample(subs, 1)]
            else:
                names.append(request["name"])
        return names

    def _config(self, requests: list[Raw]) -> Raw:
        opaque = _opaque(self._chance.choice(self._drivers), self._chance.choice(("x", "y")))
        if self._chance.random() < 0.6:
            opaque["requests"] = self._names(requests)
        return opaque

    def _configs(self, driver: str) -> list[Raw]:
        return [_opaque(driver, "class")] if self._chance.random() < 0.3 else []


def _opaque(driver: str, mode: str) -> Raw:
    return {"opaque": {"driver": driver, "parameters": {"mode": mode}}}


def a_class(name: str, *expressions: str, config: Sequence[Raw] = ()) -> Raw:
    """With these selectors."""
    spec: Raw = {"selectors": [{"cel": {"expression": expression}} for expression in expressions]}
    if not expressions:
        spec = {}
    if config:
        spec["config"] = list(config)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": objects.meta(name, None),
        "spec": spec,
    }
