from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Checked(_message.Message):
    __slots__ = ("references", "types", "expression")
    class ReferencesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: Reference
        def __init__(self, key: _Optional[int] = ..., value: _Optional[_Union[Reference, _Mapping]] = ...) -> None: ...
    class TypesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: Type
        def __init__(self, key: _Optional[int] = ..., value: _Optional[_Union[Type, _Mapping]] = ...) -> None: ...
    REFERENCES_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    EXPRESSION_FIELD_NUMBER: _ClassVar[int]
    references: _containers.MessageMap[int, Reference]
    types: _containers.MessageMap[int, Type]
    expression: bytes
    def __init__(self, references: _Optional[_Mapping[int, Reference]] = ..., types: _Optional[_Mapping[int, Type]] = ..., expression: _Optional[bytes] = ...) -> None: ...

class Reference(_message.Message):
    __slots__ = ("name", "overloads")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OVERLOADS_FIELD_NUMBER: _ClassVar[int]
    name: str
    overloads: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., overloads: _Optional[_Iterable[str]] = ...) -> None: ...

class Type(_message.Message):
    __slots__ = ("dyn", "null", "primitive", "wrapper", "well_known", "list", "map", "message", "parameter", "type", "abstract")
    class Empty(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class List(_message.Message):
        __slots__ = ("element",)
        ELEMENT_FIELD_NUMBER: _ClassVar[int]
        element: Type
        def __init__(self, element: _Optional[_Union[Type, _Mapping]] = ...) -> None: ...
    class Map(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: Type
        value: Type
        def __init__(self, key: _Optional[_Union[Type, _Mapping]] = ..., value: _Optional[_Union[Type, _Mapping]] = ...) -> None: ...
    class Abstract(_message.Message):
        __slots__ = ("name", "parameters")
        NAME_FIELD_NUMBER: _ClassVar[int]
        PARAMETERS_FIELD_NUMBER: _ClassVar[int]
        name: str
        parameters: _containers.RepeatedCompositeFieldContainer[Type]
        def __init__(self, name: _Optional[str] = ..., parameters: _Optional[_Iterable[_Union[Type, _Mapping]]] = ...) -> None: ...
    DYN_FIELD_NUMBER: _ClassVar[int]
    NULL_FIELD_NUMBER: _ClassVar[int]
    PRIMITIVE_FIELD_NUMBER: _ClassVar[int]
    WRAPPER_FIELD_NUMBER: _ClassVar[int]
    WELL_KNOWN_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    MAP_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ABSTRACT_FIELD_NUMBER: _ClassVar[int]
    dyn: Type.Empty
    null: int
    primitive: int
    wrapper: int
    well_known: int
    list: Type.List
    map: Type.Map
    message: str
    parameter: str
    type: Type
    abstract: Type.Abstract
    def __init__(self, dyn: _Optional[_Union[Type.Empty, _Mapping]] = ..., null: _Optional[int] = ..., primitive: _Optional[int] = ..., wrapper: _Optional[int] = ..., well_known: _Optional[int] = ..., list: _Optional[_Union[Type.List, _Mapping]] = ..., map: _Optional[_Union[Type.Map, _Mapping]] = ..., message: _Optional[str] = ..., parameter: _Optional[str] = ..., type: _Optional[_Union[Type, _Mapping]] = ..., abstract: _Optional[_Union[Type.Abstract, _Mapping]] = ...) -> None: ...

class Expression(_message.Message):
    __slots__ = ("id", "constant", "identifier", "select", "call", "list", "struct", "comprehension")
    ID_FIELD_NUMBER: _ClassVar[int]
    CONSTANT_FIELD_NUMBER: _ClassVar[int]
    IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    SELECT_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    STRUCT_FIELD_NUMBER: _ClassVar[int]
    COMPREHENSION_FIELD_NUMBER: _ClassVar[int]
    id: int
    constant: bytes
    identifier: Identifier
    select: Select
    call: Call
    list: List
    struct: Struct
    comprehension: Comprehension
    def __init__(self, id: _Optional[int] = ..., constant: _Optional[bytes] = ..., identifier: _Optional[_Union[Identifier, _Mapping]] = ..., select: _Optional[_Union[Select, _Mapping]] = ..., call: _Optional[_Union[Call, _Mapping]] = ..., list: _Optional[_Union[List, _Mapping]] = ..., struct: _Optional[_Union[Struct, _Mapping]] = ..., comprehension: _Optional[_Union[Comprehension, _Mapping]] = ...) -> None: ...

class Identifier(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class Select(_message.Message):
    __slots__ = ("operand", "field", "test_only")
    OPERAND_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    TEST_ONLY_FIELD_NUMBER: _ClassVar[int]
    operand: bytes
    field: str
    test_only: bool
    def __init__(self, operand: _Optional[bytes] = ..., field: _Optional[str] = ..., test_only: _Optional[bool] = ...) -> None: ...

class Call(_message.Message):
    __slots__ = ("target", "function", "arguments")
    TARGET_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    target: bytes
    function: str
    arguments: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, target: _Optional[bytes] = ..., function: _Optional[str] = ..., arguments: _Optional[_Iterable[bytes]] = ...) -> None: ...

class List(_message.Message):
    __slots__ = ("elements", "optional_indices")
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    OPTIONAL_INDICES_FIELD_NUMBER: _ClassVar[int]
    elements: _containers.RepeatedScalarFieldContainer[bytes]
    optional_indices: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, elements: _Optional[_Iterable[bytes]] = ..., optional_indices: _Optional[_Iterable[int]] = ...) -> None: ...

class Struct(_message.Message):
    __slots__ = ("message", "entries")
    class Entry(_message.Message):
        __slots__ = ("id", "field", "key", "value", "optional_entry")
        ID_FIELD_NUMBER: _ClassVar[int]
        FIELD_FIELD_NUMBER: _ClassVar[int]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        OPTIONAL_ENTRY_FIELD_NUMBER: _ClassVar[int]
        id: int
        field: str
        key: bytes
        value: bytes
        optional_entry: bool
        def __init__(self, id: _Optional[int] = ..., field: _Optional[str] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., optional_entry: _Optional[bool] = ...) -> None: ...
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    message: str
    entries: _containers.RepeatedCompositeFieldContainer[Struct.Entry]
    def __init__(self, message: _Optional[str] = ..., entries: _Optional[_Iterable[_Union[Struct.Entry, _Mapping]]] = ...) -> None: ...

class Comprehension(_message.Message):
    __slots__ = ("variable", "range", "accumulator", "initial", "condition", "step", "result", "second")
    VARIABLE_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    ACCUMULATOR_FIELD_NUMBER: _ClassVar[int]
    INITIAL_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    SECOND_FIELD_NUMBER: _ClassVar[int]
    variable: str
    range: bytes
    accumulator: str
    initial: bytes
    condition: bytes
    step: bytes
    result: bytes
    second: str
    def __init__(self, variable: _Optional[str] = ..., range: _Optional[bytes] = ..., accumulator: _Optional[str] = ..., initial: _Optional[bytes] = ..., condition: _Optional[bytes] = ..., step: _Optional[bytes] = ..., result: _Optional[bytes] = ..., second: _Optional[str] = ...) -> None: ...

class Constant(_message.Message):
    __slots__ = ("boolean", "integer", "unsigned", "floating", "text", "octets")
    BOOLEAN_FIELD_NUMBER: _ClassVar[int]
    INTEGER_FIELD_NUMBER: _ClassVar[int]
    UNSIGNED_FIELD_NUMBER: _ClassVar[int]
    FLOATING_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    OCTETS_FIELD_NUMBER: _ClassVar[int]
    boolean: bool
    integer: int
    unsigned: int
    floating: float
    text: str
    octets: bytes
    def __init__(self, boolean: _Optional[bool] = ..., integer: _Optional[int] = ..., unsigned: _Optional[int] = ..., floating: _Optional[float] = ..., text: _Optional[str] = ..., octets: _Optional[bytes] = ...) -> None: ...
