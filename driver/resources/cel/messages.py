"""Values that Kubernetes adds to CEL, as messages of a private pool. Pure.

Expressions are then checked by type and compared by value. What a message holds is in fields with
names that the grammar of CEL has for itself, so that no expression can read or write them.
"""

from typing import Any, Final

from cel_expr_python import cel
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2

_FIELD: Final = descriptor_pb2.FieldDescriptorProto
_TEXT: Final = "in"
_SIGN: Final = "null"

QUANTITY: Final = "kubernetes.Quantity"
SEMVER: Final = "kubernetes.Semver"
URL: Final = "kubernetes.URL"
FORMAT: Final = "kubernetes.NamedFormat"
IP: Final = "net.IP"
CIDR: Final = "net.CIDR"
DEVICE: Final = "kubernetes.DRADevice"
NOTHING: Final = "kubernetes.Nothing"
"""A type that no expression has a value of."""
ADDED: Final = (QUANTITY, SEMVER, URL, FORMAT, IP, CIDR)


def _added_to(file: descriptor_pb2.FileDescriptorProto, name: str) -> None:
    message = file.message_type.add(name=name.rpartition(".")[2])
    message.field.add(name=_TEXT, number=1, type=_FIELD.TYPE_STRING, label=_FIELD.LABEL_OPTIONAL)
    message.field.add(
        name=_SIGN,
        number=2,
        type=_FIELD.TYPE_DOUBLE,
        label=_FIELD.LABEL_OPTIONAL,
        proto3_optional=True,
        oneof_index=0,
    )
    message.oneof_decl.add(name="_sign")


def _device(file: descriptor_pb2.FileDescriptorProto) -> None:
    """The fields that `device` has; `capacity` gets its type from a variable of that name."""
    message = file.message_type.add(name="DRADevice")
    optional, repeated = _FIELD.LABEL_OPTIONAL, _FIELD.LABEL_REPEATED
    message.field.add(name="driver", number=1, type=_FIELD.TYPE_STRING, label=optional)
    message.field.add(
        name="allowMultipleAllocations", number=2, type=_FIELD.TYPE_BOOL, label=optional
    )
    for number, name in enumerate(("attributes", "capacity"), 3):
        entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=_FIELD.TYPE_STRING, label=optional)
        entry.field.add(
            name="value",
            number=2,
            type=_FIELD.TYPE_MESSAGE,
            type_name=".google.protobuf.Struct",
            label=optional,
        )
        message.field.add(
            name=name,
            number=number,
            type=_FIELD.TYPE_MESSAGE,
            type_name=f".{DEVICE}.{entry.name}",
            label=repeated,
        )


def _described() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(struct_pb2.DESCRIPTOR.serialized_pb)
    for package in ("kubernetes", "net"):
        file = descriptor_pb2.FileDescriptorProto(
            name=f"{package}.proto", package=package, syntax="proto3"
        )
        for name in (*ADDED, NOTHING):
            if name.startswith(f"{package}."):
                _added_to(file, name)
        if package == "kubernetes":
            file.dependency.append("google/protobuf/struct.proto")
            _device(file)
        pool.Add(file)
    return pool


POOL: Final = _described()
_CLASSES: Final[dict[str, Any]] = {
    name: message_factory.GetMessageClass(POOL.FindMessageTypeByName(name)) for name in ADDED
}


def new_value(name: str, text: str, *, sign: bool | None = None) -> object:
    """Return a value; `sign` (of a zero) is stored too and ignored by `==`."""
    held: dict[str, object] = {_TEXT: text}
    if sign is not None:
        held[_SIGN] = -0.0 if sign else 0.0
    return _CLASSES[name](**held)


def no_value(name: str) -> object:
    """The message that counts for CEL as no value."""
    return _CLASSES[name]()


def value_text(value: object) -> str:
    """Return the text that a value was made from."""
    result: str = getattr(value, _TEXT)
    return result


def value_sign(value: object) -> float:
    """The zero that was kept."""
    result: float = getattr(value, _SIGN)
    return result


def is_a(name: str, value: object) -> bool:
    """Return whether a value is of one of these types."""
    return isinstance(value, _CLASSES[name])


def message_type(name: str) -> cel.Type:
    """The type as the engine has it."""
    return cel.Type(name)
