"""Maps the API server's responses to our errors. Pure: values in, values out."""

import json
from collections.abc import Mapping

from driver import errors

_BY_STATUS: dict[int, type[errors.ApiError]] = {
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    410: errors.Gone,
    422: errors.Invalid,
    429: errors.TooManyRequests,
}
_SERVER_ERRORS = 500


def from_response(status: int, headers: Mapping[str, str], body: bytes) -> errors.ApiError:
    """Return the error of a response outside 2xx; the body is a metav1.Status, or anything else."""
    try:
        status_object = json.loads(body)
    except (ValueError, RecursionError):
        status_object = None
    if not isinstance(status_object, dict):
        status_object = {"message": body[:200].decode(errors="replace")}
    return from_status({**status_object, "code": status}, _seconds(headers.get("Retry-After")))


def from_status(
    status_object: Mapping[str, object], retry_after_s: float | None = None
) -> errors.ApiError:
    """Return the error of a metav1.Status, as a response's body or a watch's ERROR event."""
    code = status_object.get("code")
    status = code if isinstance(code, int) else 500
    reason = str(status_object.get("reason") or "Unknown")
    message = str(status_object.get("message") or "no message")
    details = status_object.get("details")
    if retry_after_s is None and isinstance(details, Mapping):
        retry_after_s = _seconds(details.get("retryAfterSeconds"))
    kind = _BY_STATUS.get(status, errors.ApiError)
    if status >= _SERVER_ERRORS:
        kind = errors.ServerError
    elif reason == "AlreadyExists":
        kind = errors.AlreadyExists
    elif reason == "Expired":
        kind = errors.Gone
    return kind(status, reason, message, retry_after_s)


def unreachable(method: str, path: str, cause: BaseException) -> errors.Unreachable:
    """Return the error of a call that got no response, or only part of one."""
    text = f"{method} {path}: {type(cause).__name__}: {cause}"
    return errors.Unreachable(0, "Unreachable", text)


def _seconds(value: object) -> float | None:
    """Return the seconds of a Retry-After; the API server writes whole seconds, never a date."""
    try:
        seconds = float(str(value))
    except ValueError:
        return None
    return seconds if 0 < seconds < float("inf") else None
