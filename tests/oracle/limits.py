"""The sizes that the API server allows an allocation (K-1)."""

import re
from collections.abc import Iterator
from typing import Any

RESULTS, CONFIGS = 32, 64
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def problems(allocation: dict[str, Any]) -> Iterator[str]:
    """Yield what is too long or written in a way the server refuses."""
    devices = allocation["devices"]
    results = devices.get("results", ())
    if len(results) > RESULTS:
        yield f"{len(results)} results; at most {RESULTS}"
    if len(devices.get("config", ())) > CONFIGS:
        yield f"more than {CONFIGS} configurations"
    for result in results:
        if "shareID" in result and _UUID.fullmatch(result["shareID"]) is None:
            yield f"shareID {result['shareID']} is no UUID"
