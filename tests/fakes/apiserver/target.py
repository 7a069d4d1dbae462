"""What a request's path names."""

import urllib.parse
from dataclasses import dataclass

from tests.fakes.apiserver import rules, storage


@dataclass(frozen=True)
class Target:
    """A collection, an object in it, or a subresource of that object."""

    kind: storage.Kind
    namespace: str | None
    name: str
    subresource: str

    @property
    def key(self) -> storage.Name:
        return self.namespace or "", self.name


def of(path: str) -> Target:
    """Raises the 404 for a path that is no resource's."""
    parts = [urllib.parse.unquote(p) for p in path.strip("/").split("/")]
    match parts:
        case ["api", _, *rest]:
            group = ""
        case ["apis", group, _, *rest]:
            pass
        case _:
            raise rules.Refusal(404, "NotFound", f"no resource at {path}")
    namespace: str | None = None
    match rest:
        case ["namespaces", namespace, plural, *tail]:
            pass
        case [plural, *tail]:
            pass
        case _:
            raise rules.Refusal(404, "NotFound", f"no resource at {path}")
    name, subresource, *_ = [*tail, "", ""]
    return Target((group, plural), namespace, name, subresource)
