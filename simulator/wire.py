r"""The line protocol between NVML clients and the node process.

A request and its reply are one line each, UTF-8, ended by a newline; fields are parted by tabs.
In a field, backslash, tab, newline and carriage return are written `\\`, `\t`, `\n`, `\r`.

    request   1 <TAB> VIEW <TAB> CALL <TAB> argument...
    reply     CODE <TAB> value...

1 is the version of the protocol. VIEW is what the client can open: the minors of its
/dev/nvidiaN, parted by commas, and after a slash those of its /dev/nvidia-caps/nvidia-capN
("0,3/1,2"; each may be empty, and the slash may be left out with the second). CALL is a method of
`library.Library`, or `init` with its flags. (`sessions.Calls` has a few more, for which the codes
mean something else.) CODE is an `nvmlReturn_t`; values follow only when it is 0. Integers are
decimal, booleans 0 and 1, lists of integers parted by commas. A structure is its members in order;
a list of structures is its length, then each one's members.

A connection carries any number of requests, one at a time. Who may change things follows from
the peer's user id (SO_PEERCRED). A request the node cannot read is answered 2 (INVALID_ARGUMENT),
a call that does not exist 13 (FUNCTION_NOT_FOUND).
"""

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from simulator import codes

VERSION = "1"

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_UNESCAPES = {written: meant for meant, written in _ESCAPES.items()}


class WireError(ValueError):
    """A line that is not of this protocol."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call: the GPUs and capabilities the client sees, its name, its arguments as text."""

    visible: frozenset[int]
    call: str
    arguments: tuple[str, ...]
    caps: frozenset[int] = frozenset()


def escape(text: str) -> str:
    """`text` as a field."""
    return re.sub(r"[\\\t\n\r]", lambda found: _ESCAPES[found[0]], text)


def unescape(written: str) -> str:
    """The text of a field; raises WireError where a backslash escapes nothing known."""

    def meant(found: re.Match[str]) -> str:
        if found[0] not in _UNESCAPES:
            raise WireError(f"unknown escape {found[0]!r}")
        return _UNESCAPES[found[0]]

    return re.sub(r"\\.?", meant, written)


def join(fields: Sequence[str]) -> str:
    """Fields as a line, without its newline."""
    return "\t".join(escape(field) for field in fields)


def split(line: str) -> list[str]:
    """The fields of a line without its newline."""
    return [unescape(field) for field in line.split("\t")]


def parse_request(line: str) -> Request:
    """A request from its line, or WireError."""
    version, *rest = split(line)
    if version != VERSION:
        raise WireError(f"protocol version {version!r}: expected {VERSION}")
    if len(rest) < 2:  # noqa: PLR2004 - a view and a call
        raise WireError("a request has a version, a view and a call")
    view, call, *arguments = rest
    gpus, _, caps = view.partition("/")
    return Request(frozenset(_integers(gpus)), call, tuple(arguments), frozenset(_integers(caps)))


def render_request(request: Request) -> str:
    """The line of a request."""
    view = "/".join(
        ",".join(str(minor) for minor in sorted(minors))
        for minors in (request.visible, request.caps)
    )
    return join((VERSION, view, request.call, *request.arguments))


def invoke(method: Callable[..., object], arguments: Sequence[str]) -> object:
    """Call `method` with text read as its parameters' types say; WireError when they do not fit."""
    parameters = list(inspect.signature(method).parameters.values())
    if len(parameters) != len(arguments):
        raise WireError(f"expected {len(parameters)} arguments, found {len(arguments)}")
    values = [_read(p, text) for p, text in zip(parameters, arguments, strict=True)]
    return method(*values)


def flatten(value: object) -> Iterator[str]:
    """A returned value as reply fields."""
    match value:
        case None:
            return
        case bool() | int():
            yield str(int(value))
        case str():
            yield value
        case tuple():
            for item in value:
                yield from flatten(item)
        case list():
            yield str(len(value))
            for item in value:
                yield from flatten(item)
        case _ if dataclasses.is_dataclass(value):
            for member in dataclasses.fields(value):
                yield from flatten(getattr(value, member.name))
        case _:
            raise TypeError(f"cannot send a {type(value).__name__}")


def render_reply(value: object) -> str:
    """The line of a call that succeeded."""
    return join((str(codes.Return.SUCCESS.value), *flatten(value)))


def render_failure(code: int, *words: str) -> str:
    """The line of a call that failed; NVML clients ignore `words`, the command line shows them."""
    return join((str(code), *words))


def _read(parameter: inspect.Parameter, text: str) -> object:
    try:
        if parameter.annotation is int:
            return int(text)
        if parameter.annotation == Sequence[int]:
            return list(_integers(text))
    except ValueError as e:
        raise WireError(f"{parameter.name}: expected a number, found {text!r}") from e
    return text


def _integers(text: str) -> Iterator[int]:
    try:
        yield from (int(item) for item in text.split(",") if item)
    except ValueError as e:
        raise WireError(f"expected numbers parted by commas, found {text!r}") from e
