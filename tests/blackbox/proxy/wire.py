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
    index = 0
    while index < len(message):
        key, index = _varint(message, index)
        kind = key & 7
        value: int | bytes
        if kind == _VARINT:
            value, index = _varint(message, index)
        else:
            if kind == _BYTES:
                size, index = _varint(message, index)
            elif kind in _FIXED:
                size = _FIXED[kind]
            else:
                raise ValueError(f"wire type {kind} at byte {index}")
            value, index = message[index : index + size], index + size
            if index > len(message):
                raise ValueError(f"{index - len(message)} bytes are missing")
        yield key >> 3, kind, value


def _varint(message: bytes, index: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if index >= len(message) or shift > 63:
            raise ValueError(f"no number at byte {index}")
        byte = message[index]
        number |= (byte & 127) << shift
        index, shift = index + 1, shift + 7
        if byte < 128:
            return number, index


def _written(number: int) -> bytes:
    result = bytearray()
    while number > 127:
        result.append(number & 127 | 128)
        number >>= 7
    return bytes((*result, number))


def text(number: int, value: str | bytes) -> bytes:
    """A field of text or of a message."""
    raw = value.encode() if isinstance(value, str) else value
    return _written(number << 3 | _BYTES) + _written(len(raw)) + raw


def _texts(message: bytes) -> dict[int, list[str]]:
    result: dict[int, list[str]] = {}
    for number, kind, value in fields(message):
        if kind == _BYTES and isinstance(value, bytes):
            result.setdefault(number, []).append(value.decode(errors="replace"))
    return result


def info(message: bytes) -> Info:
    """A PluginInfo."""
    texts = _texts(message)

    def first(number: int) -> str:
        return texts.get(number, [""])[-1]

    return Info(first(1), first(_NAME), first(_ENDPOINT), tuple(texts.get(_VERSIONS, ())))


def with_endpoint(message: bytes, endpoint: str, without: Collection[str] = ()) -> bytes:
    """The same PluginInfo with another endpoint, and without some versions of services.

    What else it holds stays byte for byte.
    """
    gone = {(_VERSIONS, name.encode()) for name in without}
    bodies = (
        _raw(field)
        for field in fields(message)
        if field[0] != _ENDPOINT and (field[0], field[2]) not in gone
    )
    return b"".join(bodies) + text(_ENDPOINT, endpoint)


def _raw(field: Field) -> bytes:
    number, kind, value = field
    if isinstance(value, int):
        return _written(number << 3 | kind) + _written(value)
    head = _written(number << 3 | kind)
    return head + (_written(len(value)) if kind == _BYTES else b"") + value


def claims(request: bytes) -> tuple[Claim, ...]:
    """Return the claims of a NodePrepareResources or NodeUnprepareResources request."""
    results = []
    for number, kind, value in fields(request):
        if number == 1 and kind == _BYTES and isinstance(value, bytes):
            texts = _texts(value)
            words = (texts.get(entry, [""])[-1] for entry in (1, 3, 2))
            results.append(Claim(*words))
    return tuple(results)


def request(*requested: Claim) -> bytes:
    """A request for these claims, of either method."""
    return b"".join(
        text(1, text(1, claim.namespace) + text(2, claim.uid) + text(3, claim.name))
        for claim in requested
    )


def refused(answer: bytes, method: str) -> Mapping[str, str]:
    """Map the UID of each claim to its error, "" for none."""
    number = 2 if method == "NodePrepareResources" else 1
    result: dict[str, str] = {}
    for index, kind, entry in fields(answer):
        if index == 1 and kind == _BYTES and isinstance(entry, bytes):
            parts = {key: value for key, _, value in fields(entry)}
            uid, reported = parts.get(1, b""), parts.get(2, b"")
            if isinstance(uid, bytes) and isinstance(reported, bytes):
                result[uid.decode()] = _texts(reported).get(number, [""])[-1]
    return result


def cdi_ids(answer: bytes) -> Mapping[str, tuple[str, ...]]:
    """Map UIDs to the CDI devices that a NodePrepareResources answer names."""
    result: dict[str, tuple[str, ...]] = {}
    for index, kind, entry in fields(answer):
        if index != 1 or kind != _BYTES or not isinstance(entry, bytes):
            continue
        uid = _texts(entry).get(1, [""])[-1]
        reported = next((value for key, _, value in fields(entry) if key == 2), b"")
        devices = [value for key, _, value in fields(_bytes(reported)) if key == 1]
        ids = [name for device in devices for name in _texts(_bytes(device)).get(4, ())]
        result[uid] = tuple(ids)
    return result


def _bytes(value: int | bytes) -> bytes:
    return value if isinstance(value, bytes) else b""
