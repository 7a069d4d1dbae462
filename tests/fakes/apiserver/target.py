"""Target of a request's path."""

import urllib.parse
from dataclasses import dataclass

from tests.fakes.apiserver import rules, storage

_KINDS = {
    "deviceclasses": "DeviceClass",
    "nodes": "Node",
    "pods": "Pod",
    "resourceclaims": "ResourceClaim",
    "resourceslices": "ResourceSlice",
}
"""What clients of Go are told, who read nothing that does not say what it is."""


@dataclass(frozen=True)
class Target:
    """A collection, an object in it, or a subresource of that object."""

    kind: storage.Kind
    version: str
    namespace: str | None
    name: str
    subresource: str

    def typed(self, suffix: str = "") -> dict[str, str]:
        """`kind` and `apiVersion` of an object here, or of a `List` of them, where known."""
        group, plural = self.kind
        if plural not in _KINDS:
            return {}
        version = f"{group}/{self.version}" if group else self.version
        return {"kind": f"{_KINDS[plural]}{suffix}", "apiVersion": version}

    @property
    def key(self) -> storage.Name:
        return self.namespace or "", self.name


def of(path: str) -> Target:
    """Raises the 404 for a path that is no resource's."""
    parts = [urllib.parse.unquote(p) for p in path.strip("/").split("/")]
    match parts:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
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
    return Target((group, plural), version, namespace, name, subresource)
