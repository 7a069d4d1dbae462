"""The controller's world: what its shell code asks of the rooms around it."""

from collections.abc import Mapping
from typing import Any, Protocol

from driver.kube import client, gvr


class Writer(Protocol):
    """Fenced writes (kube.writer.FencedWriter), and a look at what they met."""

    def get(
        self, kind_of: gvr.Resource, /, name: str, namespace: str | None = None
    ) -> dict[str, Any]:
        """The object as the server holds it now. Raises NotFound."""
        ...

    def patch(  # noqa: PLR0913 - the parameters of the client's patch
        self,
        kind_of: gvr.Resource,
        name: str,
        body: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str = "",
        kind: client.PatchType = client.PatchType.MERGE,
        force: bool = False,
    ) -> dict[str, Any]:
        """Patch an object; the object as the server answered it."""
        ...

    def apply(
        self,
        kind_of: gvr.Resource,
        name: str,
        body: Mapping[str, Any],
        *,
        manager: str,
    ) -> dict[str, Any]:
        """Apply what `manager`, the same for every leader, says of an object of no namespace.

        Raises Conflict where a field is another's.
        """
        ...

    def add_finalizer(
        self,
        kind_of: gvr.Resource,
        name: str,
        finalizer: str,
        *,
        namespace: str | None = None,
        version: str,
    ) -> dict[str, Any]:
        """Add a finalizer to an object that no patch can be made of; the object then."""
        ...

    def create(
        self, kind_of: gvr.Resource, body: dict[str, Any], namespace: str | None = None
    ) -> dict[str, Any]:
        """Create an object; the object as the server answered it. Raises AlreadyExists."""
        ...

    def delete(
        self, kind_of: gvr.Resource, name: str, namespace: str | None = None, *, uid: str
    ) -> None:
        """Delete exactly the object `uid`. Raises NotFound."""
        ...

    def create_eviction(
        self, name: str, namespace: str, *, uid: str, grace_s: int | None = None
    ) -> None:
        """Ask for the pod `uid` to leave; raises TooManyRequests while a budget forbids it."""
        ...


class Observe(Protocol):
    """Shows the caches an object the server just answered."""

    def __call__(self, obj: Mapping[str, Any]) -> None:
        """Take note of the object, if it is newer."""
        ...
