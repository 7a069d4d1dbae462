"""What the API server's answers mean as errors of ours. Pure: values in, values out."""

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
    """The error for an answer outside 2xx; the body is a metav1.Status, or anything at all."""
    try:
        written = json.loads(body)
    except (ValueError, RecursionError):
        written = None
    if not isinstance(written, dict):
        written = {"message": body[:200].decode(errors="replace")}
    return from_status({**written, "code": status}, _seconds(headers.get("Retry-After")))


def from_status(
    written: Mapping[str, object], retry_after_s: float | None = None
) -> errors.ApiError:
    """The error for a metav1.Status, as an answer's body or a watch's ERROR event."""
    code = written.get("code")
    status = code if isinstance(code, int) else 500
    reason = str(written.get("reason") or "Unknown")
    message = str(written.get("message") or "no message")
    details = written.get("details")
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
    """The error for a call that got no answer, or only part of one."""
    text = f"{method} {path}: {type(cause).__name__}: {cause}"
    return errors.Unreachable(0, "Unreachable", text)


def _seconds(value: object) -> float | None:
    """Seconds of a Retry-After; the API server writes whole seconds, never a date."""
    try:
        seconds = float(str(value))
    except ValueError:
        return None
    return seconds if 0 < seconds < float("inf") else None
