"""What a query says, as a tree that is printed as text (`-q`) or as XML (`-q -x`)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_VALUES_AT = 42


@dataclass(frozen=True, slots=True)
class Field:
    """A value by its tag in XML and its title in text."""

    tag: str
    title: str
    value: str


@dataclass(frozen=True, slots=True)
class Group:
    """Fields and groups under one tag; an empty one holds the word `none` in XML."""

    tag: str
    title: str
    members: tuple["Field | Group", ...]
    attributes: str = ""
    none: str = "None"


Node = Field | Group


def group(tag: str, title: str, *members: Node) -> Group:
    """A group of these."""
    return Group(tag, title, members)


def find(nodes: Sequence[Node], path: str) -> str:
    """The value at a path of tags, parted by slashes; KeyError where there is none."""
    tag, _, rest = path.partition("/")
    for node in nodes:
        if node.tag != tag:
            continue
        if isinstance(node, Group):
            return find(node.members, rest)
        return node.value
    raise KeyError(path)


def xml(nodes: Sequence[Node], depth: int = 0) -> Iterator[str]:
    """Lines, indented by tabs as the real program indents them."""
    tabs = "\t" * depth
    for node in nodes:
        if isinstance(node, Field):
            yield f"{tabs}<{node.tag}>{escape(node.value)}</{node.tag}>"
            continue
        yield f"{tabs}<{node.tag}{node.attributes}>"
        if node.members:
            yield from xml(node.members, depth + 1)
        elif node.none:
            yield f"{tabs}\t{node.none}"
        yield f"{tabs}</{node.tag}>"


def text(nodes: Sequence[Node], depth: int = 0) -> Iterator[str]:
    """Lines with titles, four spaces deeper for each group; a group without a title is no level."""
    indent = " " * (4 * depth)
    for node in nodes:
        if isinstance(node, Field):
            yield f"{indent}{node.title}".ljust(_VALUES_AT) + f": {node.value}"
        elif not node.title:
            yield from text(node.members, depth)
        elif node.members:
            yield f"{indent}{node.title}"
            yield from text(node.members, depth + 1)
