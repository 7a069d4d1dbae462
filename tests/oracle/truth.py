"""Matches of selectors by Kubernetes' own CEL, cached."""

import json
from typing import Any

from tests.oracle import inventory, selectors

Raw = dict[str, Any]
_SEEN = ("attributes", "capacity", "allowMultipleAllocations")


class Truth:
    """The answers of the selector program; a selector sees no other part of a device."""

    def __init__(self, request: selectors.Selectors) -> None:
        self._asked = request
        self._known: dict[tuple[str, str, str], selectors.Verdict] = {}

    def of(self, expression: str, device: inventory.Placed) -> selectors.Verdict:
        """True or False, or why there is no answer."""
        seen = {key: device.raw[key] for key in _SEEN if key in device.raw}
        key = (expression, device.id[0], json.dumps(seen))
        if key not in self._known:
            raw = {"name": "asked", **seen}
            self._known[key] = self._asked.matches(expression, raw, device.id[0])
        return self._known[key]
