"""A finalizer added to an object whose every other byte stays as it is. Pure: bytes in, bytes out.

The server keeps opaque parameters byte for byte, and writes them anew as JSON in every patch. A
claim that was made with spaces in them (Python's clients write so) thereby looks changed, and its
immutable spec refuses the patch. In the server's own form, protobuf, they come and go untouched.
"""

from google.protobuf import message

from driver.pb import finalizers_pb2 as wire

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"


def add_finalizer(raw: bytes, finalizer: str, version: str) -> bytes:
    """The object `raw` with one finalizer more, to be put in its place.

    `raw` is an answer of `MEDIA_TYPE`: four bytes of magic, then a runtime.Unknown
    (k8s.io/apimachinery/pkg/runtime/serializer/protobuf). `version` makes the put conditional: the
    server refuses it where the object, or another of its name, has another one.
    Raises ValueError where the bytes are no object in that form.
    """
    if not raw.startswith(_MAGIC):
        raise ValueError(f"an answer of {MEDIA_TYPE} begins with {_MAGIC!r}, this with {raw[:4]!r}")
    try:
        envelope = wire.Envelope.FromString(raw[len(_MAGIC) :])
        kept = wire.Kept.FromString(envelope.raw)
    except message.DecodeError as e:
        raise ValueError(f"an answer of {MEDIA_TYPE} that cannot be read: {e}") from e
    if finalizer not in kept.metadata.finalizers:
        kept.metadata.finalizers.append(finalizer)
    kept.metadata.resource_version = version
    envelope.raw = kept.SerializeToString()
    return _MAGIC + envelope.SerializeToString()
