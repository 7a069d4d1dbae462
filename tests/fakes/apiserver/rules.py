"""What the API server refuses and keeps from change, for the objects we write. Pure."""

from typing import Any

Object = dict[str, Any]

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
    """What of `new` a write to the main resource or to its status really changes."""
    if plural not in HAS_STATUS:
        return new
    if subresource == "status":
        return {**old, "status": new.get("status", {})}
    kept = {"status": old["status"]} if "status" in old else {}
    return {k: v for k, v in new.items() if k != "status"} | kept


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
    before = old.get("status", {}).get("allocation")
    status = new.get("status", {})
    after = status.get("allocation")
    if before and after and before != after:
        raise _invalid("status.allocation: field is immutable")
    if status.get("reservedFor") and not after:
        raise _invalid("status.reservedFor: may not be specified when `allocated` is not set")
    if old and old.get("spec") != new.get("spec"):
        raise _invalid("spec: field is immutable")


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
