"""Alternatives that an allocation chose for its requests, read from the names of its results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A request and the body that was answered: alternative `index`, called `name` in results."""

    request: Raw
    name: str
    body: Raw
    index: int
    results: tuple[Raw, ...]

    @property
    def admin(self) -> bool:
        """Return whether it may use what others use (KEP-5018)."""
        return bool(self.body.get("adminAccess"))

    @property
    def everything(self) -> bool:
        """Return whether all matching devices are wanted."""
        return self.body.get("allocationMode") == "All"

    def named(self, names: Sequence[str]) -> bool:
        """Return whether a constraint or a configuration with these names is about it."""
        return not names or self.request["name"] in names or self.name in names


def alternatives(request: Raw) -> list[tuple[str, Raw]]:
    """Name (`main` or `main/sub`) and body of each way to answer a request."""
    if "exactly" in request:
        return [(request["name"], request["exactly"])]
    return [(f"{request['name']}/{entry['name']}", entry) for entry in request["firstAvailable"]]


def read(claim: Raw, allocation: Raw) -> tuple[list[Chosen], list[str]]:
    """Return the chosen alternative of each request, and the problems found."""
    results: Sequence[Raw] = allocation["devices"].get("results", ())
    left: dict[str, list[Raw]] = {}
    for result in results:
        left.setdefault(result["request"], []).append(result)
    chosen: list[Chosen] = []
    wrong: list[str] = []
    for request in claim["spec"]["devices"]["requests"]:
        chosens = _answered(request, left)
        chosen += chosens
        if len(chosens) != 1:
            wrong.append(f"request {request['name']} is answered by {len(chosens)} alternatives")
        for item in chosens:
            del left[item.name]
    wrong += [f"result for {name}, which nobody requested" for name in left]
    return chosen, wrong


def _answered(request: Raw, left: Mapping[str, list[Raw]]) -> list[Chosen]:
    return [
        Chosen(request, name, body, index, tuple(left[name]))
        for index, (name, body) in enumerate(alternatives(request))
        if name in left
    ]
