"""Claims that hold NICs, and the CDI spec of a claim."""

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Raw = dict[str, Any]


class Refused(Exception):
    """A claim that is not prepared; the text is for the pod's event."""


@dataclass(frozen=True, slots=True)
class Call:
    """A claim of a kubelet's call, and the answer: `error` is empty unless it was refused.

    `operation` is `prepare` or `unprepare`, `claim` its namespace and name; `devices` are the
    NICs as `pool/name`, of an unprepare those that the claim held.
    """

    operation: str
    node: str
    claim: str
    devices: tuple[str, ...]
    error: str = ""


class PreparedClaims:
    """NICs that claims hold, of all pools and nodes. Thread safe."""

    def __init__(self) -> None:
        self._held: dict[str, list[Raw]] = {}
        self._lock = threading.Lock()

    def prepare(self, uid: str, results: Sequence[Raw]) -> None:
        """Give a claim the NICs of its results. Raises Refused where another claim holds any.

        Shares of a NIC, which have a shareID, do not exclude each other; admin access holds none.
        """
        with self._lock:
            for other, held in self._held.items():
                both = {device_name(a) for a in results for b in held if _excludes(a, b)}
                if other != uid and both:
                    message = f"{', '.join(sorted(both))} still prepared for claim {other}"
                    raise Refused(message)
            self._held[uid] = list(results)

    def unprepare(self, uid: str) -> tuple[str, ...]:
        """Take a claim's NICs back; return those that it held."""
        with self._lock:
            return tuple(map(device_name, self._held.pop(uid, ())))


def device_name(result: Raw) -> str:
    """Return `pool/name` of a result's NIC."""
    return f"{result['pool']}/{result['device']}"


def cdi_name(uid: str, result: Raw) -> str:
    """Return the name of a result's CDI device; each share of a NIC has its own."""
    return "-".join(filter(None, (uid, result["device"], result.get("shareID"))))


def cdi_spec(kind: str, uid: str, results: Sequence[Raw]) -> Raw:
    """Return the CDI spec of a claim: NIC_<n> is the NIC whose name ends in the number n."""
    numbers = [re.sub(r"^.*?(\d*)$", r"\1", result["device"]) for result in results]
    devices = [
        {
            "name": cdi_name(uid, result),
            "containerEdits": {"env": [f"NIC_{number}={result['device']}"]},
        }
        for number, result in zip(numbers, results, strict=True)
    ]
    return {"cdiVersion": "0.5.0", "kind": kind, "devices": devices}


def _excludes(result: Raw, held: Raw) -> bool:
    shared = result.get("shareID") and held.get("shareID")
    watched = result.get("adminAccess") or held.get("adminAccess")
    return device_name(result) == device_name(held) and not shared and not watched
