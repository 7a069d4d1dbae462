"""Tree of failures. A *no* is a value (`Unschedulable`, a refused claim); only failures are raised.

    RationError
    ├── BadInput            what a person wrote cannot be read: where, what, what was expected
    ├── DeviceFault         a GPU or its driver library refused or failed a call
    │   ├── Unchanged       a change that failed, and left everything as it was before it
    │   └── Hung            a call that has not returned, and may yet do what it was asked;
    │                       HungUnchanged where it only reads
    ├── NodeFault           the node's own files, sockets or programs refused or failed
    └── ApiError            the API server refused or could not be reached
        ├── Unauthorized 401 · Forbidden 403 · NotFound 404 · Gone 410 · Invalid 422
        ├── Conflict 409 (resourceVersion) · AlreadyExists 409
        ├── TooManyRequests 429 · ServerError 5xx     both may say when to come back
        └── Unreachable     no answer: connection refused, reset, timed out

Callers test a class; people read the text. Adapters raise these `from` what they caught.
"""


class RationError(Exception):
    """Base of every failure of ours."""


class BadInput(RationError):
    """A person's input cannot be read.

    `location` names the field (`spec.devices.config[0].opaque.parameters.sharing`), `problem` what
    is wrong there and `expected` what would be right; `expected` may be empty. Half a surrogate
    pair, which JSON can write and nothing can encode, is shown as JSON writes it.
    """

    def __init__(self, location: str, problem: str, expected: str = "") -> None:
        self.location = encodable(location)
        self.problem = encodable(problem)
        self.expected = encodable(expected)
        tail = f"; expected {self.expected}" if expected else ""
        super().__init__(f"{self.location}: {self.problem}{tail}")


def encodable(text: str) -> str:
    """Return a text that can be sent: half a surrogate pair as its escape."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


class DeviceFault(RationError):
    """A GPU, or its library, failed `call` with NVML error `code`.

    `device` is a GPU's UUID or PCI address, or "" if the library as a whole failed. `code` is the
    NVML return value (nvml.h, NVML_ERROR_*), -1 if there is none.
    """

    def __init__(self, device: str, call: str, code: int, text: str) -> None:
        self.device = device
        self.call = call
        self.code = code
        self.text = text
        subject = f"{device}: " if device else ""
        super().__init__(f"{subject}{call} failed: {text} (NVML error {code})")


class Unchanged(DeviceFault):
    """A change that failed and left everything as before: there is nothing to undo."""


class Hung(DeviceFault):
    """A call that has not returned for `waited_s`; it may still take effect."""

    def __init__(self, device: str, call: str, waited_s: float) -> None:
        super().__init__(device, call, -1, f"it has not returned for {waited_s:.0f} s")
        subject = f"{device}: " if device else ""
        self.args = (f"{subject}{call} hangs: {self.text}",)
        self.waited_s = waited_s


class HungUnchanged(Hung, Unchanged):
    """A read that has not returned: there is nothing to undo."""


class NodeFault(RationError):
    """A file, socket or program of the node failed `act` on `path`."""

    def __init__(self, act: str, path: str, text: str) -> None:
        self.act = act
        self.path = path
        super().__init__(f"{act} {path}: {text}")


class ApiError(RationError):
    """The API server answered `status` (0: no answer) with `reason` and `message`.

    `retry_after_s` is the server's own Retry-After in seconds, when it sent one.
    """

    def __init__(
        self, status: int, reason: str, message: str, retry_after_s: float | None = None
    ) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        super().__init__(f"API server: {status} {reason}: {message}" if status else message)


class Unauthorized(ApiError):
    """401: the token is gone or stale."""


class Forbidden(ApiError):
    """403: rights, admission policies and the fence."""


class NotFound(ApiError):
    """404."""


class Conflict(ApiError):
    """409 with reason Conflict: the object changed since it was read."""


class AlreadyExists(ApiError):
    """409 with reason AlreadyExists."""


class Gone(ApiError):
    """410: the resource version is too old to continue from."""


class Invalid(ApiError):
    """422: the object breaks the API's rules."""


class TooManyRequests(ApiError):
    """429: slow down."""


class ServerError(ApiError):
    """5xx."""


class Unreachable(ApiError):
    """No answer at all."""
