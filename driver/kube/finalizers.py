"""Adds a finalizer to an object, every other byte unchanged. Pure: bytes in, bytes out.

The server keeps opaque parameters byte for byte, and rewrites them as JSON in every patch. A claim
created with spaces in them (as Python's clients write) thereby seems changed, and its immutable
spec refuses the patch. In the server's own form, protobuf, they are unchanged.
"""

from google.protobuf import message

from driver.pb import finalizers_pb2 as wire

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"


def add_finalizer(raw: bytes, finalizer: str, version: str) -> bytes:
    """Return the object `raw` with the finalizer, for a PUT.

    `raw` is a response of `MEDIA_TYPE`: four bytes of magic, then a runtime.Unknown
    (k8s.io/apimachinery/pkg/runtime/serializer/protobuf). `version` makes the put conditional: the
    server refuses it if the object, or another of its name, has another version.

    Raises ValueError if the bytes are no object in that form.
    """
    if not raw.startswith(_MAGIC):
        raise ValueError(f"an answer of {MEDIA_TYPE} begins with {_MAGIC!r}, this with {raw[:4]!r}")
    try:
        envelope = wire.Envelope.FromString(raw[len(_MAGIC) :])
        obj = wire.Kept.FromString(envelope.raw)
    except message.DecodeError as e:
        raise ValueError(f"an answer of {MEDIA_TYPE} that cannot be read: {e}") from e
    if finalizer not in obj.metadata.finalizers:
        obj.metadata.finalizers.append(finalizer)
    obj.metadata.resource_version = version
    envelope.raw = obj.SerializeToString()
    return _MAGIC + envelope.SerializeToString()
