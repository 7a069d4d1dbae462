"""Decoder of the kubelet's messages: protobuf's wire format, and five of its messages.

Field numbers are those of pluginregistration v1 and of the DRA service, the same in v1 and v1beta1.
Pure: bytes in, values out.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}
_NAME, _ENDPOINT, _VERSIONS = 2, 3, 4
Field = tuple[int, int, int | bytes]
"""Number, wire type, value."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of a call, as the kubelet names it."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Info:
    """Description of a plugin in GetInfo."""

    type: str
    name: str
    endpoint: str
    versions: tuple[str, ...]


def fields(message: bytes) -> Iterator[Field]:
    """The fields of a message in their order. Raises ValueError if it is cut off."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        value: int | bytes
        if kind == _VARINT:
            value, at = _varint(message, at)
        else:
            if kind == _BYTES:
                size, at = _varint(message, at)
            elif kind in _FIXED:
                size = _FIXED[kind]
            else:
                raise ValueError(f"wire type {kind} at byte {at}")
            value, at = message[at : at + size], at + size
            if at > len(message):
                raise ValueError(f"{at - len(message)} bytes are missing")
        yield key >> 3, kind, value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise ValueError(f"no number at byte {at}")
        byte = message[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at


def _written(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes((*found, number))


def text(number: int, value: str | bytes) -> bytes:
    """A field of text or of a message."""
    raw = value.encode() if isinstance(value, str) else value
    return _written(number << 3 | _BYTES) + _written(len(raw)) + raw


def _texts(message: bytes) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for number, kind, value in fields(message):
        if kind == _BYTES and isinstance(value, bytes):
            found.setdefault(number, []).append(value.decode(errors="replace"))
    return found


def info(message: bytes) -> Info:
    """A PluginInfo."""
    found = _texts(message)

    def first(number: int) -> str:
        return found.get(number, [""])[-1]

    return Info(first(1), first(_NAME), first(_ENDPOINT), tuple(found.get(_VERSIONS, ())))


def with_endpoint(message: bytes, endpoint: str, without: Collection[str] = ()) -> bytes:
    """The same PluginInfo with another endpoint, and without some versions of services.

    What else it holds stays byte for byte.
    """
    gone = {(_VERSIONS, one.encode()) for one in without}
    kept = (
        _raw(one) for one in fields(message) if one[0] != _ENDPOINT and (one[0], one[2]) not in gone
    )
    return b"".join(kept) + text(_ENDPOINT, endpoint)


def _raw(field: Field) -> bytes:
    number, kind, value = field
    if isinstance(value, int):
        return _written(number << 3 | kind) + _written(value)
    head = _written(number << 3 | kind)
    return head + (_written(len(value)) if kind == _BYTES else b"") + value


def claims(request: bytes) -> tuple[Claim, ...]:
    """Return the claims of a NodePrepareResources or NodeUnprepareResources request."""
    found = []
    for number, kind, value in fields(request):
        if number == 1 and kind == _BYTES and isinstance(value, bytes):
            one = _texts(value)
            words = (one.get(at, [""])[-1] for at in (1, 3, 2))
            found.append(Claim(*words))
    return tuple(found)


def request(*asked: Claim) -> bytes:
    """A request for these claims, of either method."""
    return b"".join(
        text(1, text(1, one.namespace) + text(2, one.uid) + text(3, one.name)) for one in asked
    )


def refused(answer: bytes, method: str) -> Mapping[str, str]:
    """Map the UID of each claim to its error, "" for none."""
    number = 2 if method == "NodePrepareResources" else 1
    found: dict[str, str] = {}
    for at, kind, entry in fields(answer):
        if at == 1 and kind == _BYTES and isinstance(entry, bytes):
            parts = {key: value for key, _, value in fields(entry)}
            uid, told = parts.get(1, b""), parts.get(2, b"")
            if isinstance(uid, bytes) and isinstance(told, bytes):
                found[uid.decode()] = _texts(told).get(number, [""])[-1]
    return found


def cdi_ids(answer: bytes) -> Mapping[str, tuple[str, ...]]:
    """Map UIDs to the CDI devices that a NodePrepareResources answer names."""
    found: dict[str, tuple[str, ...]] = {}
    for at, kind, entry in fields(answer):
        if at != 1 or kind != _BYTES or not isinstance(entry, bytes):
            continue
        uid = _texts(entry).get(1, [""])[-1]
        told = next((value for key, _, value in fields(entry) if key == 2), b"")
        devices = [value for key, _, value in fields(_bytes(told)) if key == 1]
        ids = [one for device in devices for one in _texts(_bytes(device)).get(4, ())]
        found[uid] = tuple(ids)
    return found


def _bytes(value: int | bytes) -> bytes:
    return value if isinstance(value, bytes) else b""
