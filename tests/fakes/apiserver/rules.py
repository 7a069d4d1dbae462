"""Validation and immutability of the API server, for the objects we write. Pure."""

import re
from collections.abc import Sequence
from typing import Any

Object = dict[str, Any]
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")

HAS_STATUS = {"pods", "nodes", "resourceclaims", "persistentvolumeclaims", "persistentvolumes"}


class Refusal(Exception):
    """An answer outside 2xx."""

    def __init__(self, code: int, reason: str, message: str, retry_after_s: int = 0) -> None:
        self.code, self.reason, self.message = code, reason, message
        self.retry_after_s = retry_after_s
        super().__init__(message)

    def status(self) -> Object:
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": self.code,
            "reason": self.reason,
            "message": self.message,
        }


def written(plural: str, subresource: str, old: Object, new: Object) -> Object:
    """Return what of `new` a write to the main resource or to its status really changes."""
    if plural not in HAS_STATUS:
        return new
    if subresource == "status":
        status = new.get("status", {})
        return {**old, "status": _without_freed(old, status) if "devices" in status else status}
    retained = {"status": old["status"]} if "status" in old else {}
    return {k: v for k, v in new.items() if k != "status"} | retained


def _without_freed(old: Object, status: Object) -> Object:
    """Return what was said of devices that the claim has lost goes with them."""
    previous = old.get("status", {}).get("devices") or []
    has = _allocated(status)
    retained = [
        device
        for device in status["devices"] or []
        if _device(device) in has or device not in previous
    ]
    rest = {key: value for key, value in status.items() if key != "devices"}
    return {**rest, "devices": retained} if retained else rest


def _allocated(status: Object) -> list[tuple[str, ...]]:
    allocation = status.get("allocation") or {}
    return [_device(entry) for entry in allocation.get("devices", {}).get("results", ())]


def _device(obj: Object) -> tuple[str, ...]:
    return tuple(obj.get(key, "") for key in ("driver", "pool", "device", "shareID"))


def check(plural: str, old: Object | None, new: Object) -> None:
    """Raise the 422 the server would answer."""
    match plural:
        case "leases":
            _check_lease(new)
        case "resourceclaims":
            _check_claim(old or {}, new)
        case "events":
            _check_event(new)
        case _:
            return


def _check_lease(new: Object) -> None:
    seconds = new.get("spec", {}).get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        raise _invalid("spec.leaseDurationSeconds: must be greater than 0")


def _check_claim(old: Object, new: Object) -> None:
    previous = old.get("status", {}).get("allocation")
    status = new.get("status", {})
    after = status.get("allocation")
    if previous and after and previous != after:
        raise _invalid("status.allocation: field is immutable")
    if status.get("reservedFor") and not after:
        raise _invalid("status.reservedFor: may not be specified when `allocated` is not set")
    if old and old.get("spec") != new.get("spec"):
        raise _invalid("spec: field is immutable")
    for index, entry in enumerate(status.get("devices") or ()):
        time = f"status.devices[{index}]"
        if _device(entry) not in _allocated(status):
            raise _invalid(f"{time}: must be an allocated device in the claim")
        _check_conditions(f"{time}.conditions", entry.get("conditions") or ())


def _check_conditions(time: str, results: Sequence[Object]) -> None:
    if len(results) > 8:
        raise _invalid(f"{time}: must have at most 8 items")
    for result in results:
        if result.get("status") not in {"True", "False", "Unknown"}:
            raise _invalid(f"{time}.status: Unsupported value")
        if not result.get("lastTransitionTime"):
            raise _invalid(f"{time}.lastTransitionTime: Required value")
        if not _REASON.fullmatch(result.get("reason", "")):
            raise _invalid(
                f"{time}.reason: a condition reason must start with alphabetic character"
            )
        if len(result.get("message", "")) > 32768:
            raise _invalid(f"{time}.message: Too long")


def _check_event(new: Object) -> None:
    for key in ("eventTime", "reportingController", "reportingInstance", "action", "reason"):
        if not new.get(key):
            raise _invalid(f"{key}: Required value")
    if len(new.get("note", "").encode()) > 1024:
        raise _invalid("note: can have at most 1024 characters")
    if "series" in new and new["series"]["count"] < 2:
        raise _invalid("series.count: should be at least 2")


def _invalid(message: str) -> Refusal:
    return Refusal(422, "Invalid", message)
