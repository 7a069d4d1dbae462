"""Verbs of the API server, on raw objects. One client per process, thread safe.

Objects are plain dictionaries: typed models drop unknown fields and cost twenty times as much to
decode. Every failure is an `errors.ApiError`; nothing is retried here, so that each loop keeps its
own policy.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Self

from driver import errors
from driver.kube import gvr
from driver.kube.http import api_errors, credentials, json_decode, transport, watch_stream

_LIST_TRIES = 3


class PatchType(StrEnum):
    """Content type of a patch's body."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Listing:
    """All objects as of resource version `version`."""

    items: list[gvr.Object]
    version: str


@dataclass(frozen=True, slots=True)
class Walk:
    """All objects as of `version`, to be iterated once.

    Pages are read as they are reached, so that a large listing is never held whole. Reading one may
    fail; Gone means that the listing expired: begin again.
    """

    items: Iterator[gvr.Object]
    version: str


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to connect, and seconds without a byte of the response."""

    connect_s: float = 5.0
    read_s: float = 10.0


class ServerVersion(NamedTuple):
    """`(1, 37, "v1.37.1")`; compares with `(1, 36)`."""

    major: int
    minor: int
    git: str


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    content_type: str = "application/json"
    bulk: json_decode.Bulk | None = None


class KubeClient:
    """Get, list, watch, create, patch, replace, delete. Raises `errors.ApiError` and its kinds."""

    def __init__(self, wire: transport.Transport, timeouts: Timeouts | None = None) -> None:
        self._wire = wire
        self._timeouts = timeouts or Timeouts()

    @classmethod
    def connect(cls, kubeconfig: Path | None, user_agent: str) -> Self:
        """Return a client for a kubeconfig file, or for the pod we run in without one.

        Connections are opened on use. Raises BadInput if the credentials are invalid.
        """
        return cls(transport.Transport(credentials.Credentials(kubeconfig), user_agent))

    def with_timeout(self, timeout_s: float) -> "KubeClient":
        """Return a client on the same connections, whose calls take at most `timeout_s`."""
        half = timeout_s / 2
        return KubeClient(self._wire, Timeouts(connect_s=half, read_s=half))

    def get(self, resource: gvr.Resource, name: str, namespace: str | None = None) -> gvr.Object:
        """Return one object. Raises NotFound."""
        return self._request(_Request("GET", resource.path(namespace, name)))

    def get_text(self, path: str, query: Mapping[str, str] | None = None) -> str:
        """Return a response that is no object: a pod's `log`, or the server's own `/metrics`."""
        raw = self._wire.read(
            transport.Call("GET", path, self._limits(), query or {}, accept="*/*")
        )
        return raw.decode(errors="replace")

    def list(
        self,
        resource: gvr.Resource,
        *,
        namespace: str | None = None,
        field_selector: str = "",
        label_selector: str = "",
        limit: int = 500,
    ) -> Listing:
        """Return every object, in pages of `limit`; a listing that expires midway starts again."""
        path = resource.path(namespace)
        query = _selector_query(field_selector, label_selector) | {"limit": str(limit)}
        for _ in range(_LIST_TRIES - 1):
            try:
                return self._list_all(path, query)
            except errors.Gone:
                continue
        return self._list_all(path, query)

    def walk(
        self,
        resource: gvr.Resource,
        *,
        namespace: str | None = None,
        field_selector: str = "",
        label_selector: str = "",
        limit: int = 500,
        bulk: json_decode.Bulk | None = None,
    ) -> Walk:
        """Return every object; the first page of `limit` is read now, the others on the way."""
        query = _selector_query(field_selector, label_selector) | {"limit": str(limit)}
        return self._walk(_Request("GET", resource.path(namespace), query, bulk=bulk))

    def watch(  # noqa: PLR0913 - the parameters of the API's watch
        self,
        resource: gvr.Resource,
        *,
        version: str,
        timeout_s: int,
        read_timeout_s: float,
        namespace: str | None = None,
        field_selector: str = "",
        label_selector: str = "",
        bulk: json_decode.Bulk | None = None,
    ) -> watch_stream.Watch:
        """Return events after `version` and bookmarks; the server ends it after `timeout_s`.

        `read_timeout_s` without a byte is Unreachable; an ERROR event raises the error it holds.
        """
        query = _selector_query(field_selector, label_selector) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(timeout_s),
        }
        call = transport.Call(
            "GET", resource.path(namespace), (self._timeouts.connect_s, read_timeout_s), query
        )
        return watch_stream.Watch(self._wire.open(call), call.path, bulk)

    def create(
        self,
        resource: gvr.Resource,
        body: gvr.Object,
        namespace: str | None = None,
        *,
        subresource: str = "",
        name: str | None = None,
        field_manager: str | None = None,
    ) -> gvr.Object:
        """Create an object; `name` and `subresource` for subresources (eviction)."""
        path = resource.path(namespace, name, subresource)
        return self._request(_Request("POST", path, _manager_query(field_manager), body))

    def patch(  # noqa: PLR0913 - the parameters of the API's patch
        self,
        resource: gvr.Resource,
        name: str,
        body: object,
        *,
        namespace: str | None = None,
        subresource: str = "",
        kind: PatchType = PatchType.MERGE,
        field_manager: str | None = None,
        force: bool = False,
    ) -> gvr.Object:
        """Patch an object; `metadata.resourceVersion` in the body makes it conditional.

        `force` takes fields from other managers (`PatchType.APPLY` only).
        """
        query = _manager_query(field_manager) | ({"force": "true"} if force else {})
        path = resource.path(namespace, name, subresource)
        return self._request(_Request("PATCH", path, query, body, kind.value))

    def replace(
        self,
        resource: gvr.Resource,
        name: str,
        body: gvr.Object,
        *,
        namespace: str | None = None,
        field_manager: str | None = None,
    ) -> gvr.Object:
        """Replace an object that is entirely ours (slices, leases). Raises Conflict."""
        path = resource.path(namespace, name)
        return self._request(_Request("PUT", path, _manager_query(field_manager), body))

    def add_finalizer(
        self,
        resource: gvr.Resource,
        name: str,
        finalizer: str,
        *,
        namespace: str | None = None,
        version: str,
        field_manager: str | None = None,
    ) -> gvr.Object:
        """Add a finalizer, every other byte unchanged: for objects that a patch would break.

        Raises Conflict if the object's version is not `version`.
        """
        # Protobuf, which nothing else of this client takes.
        from driver.kube import finalizers  # noqa: PLC0415

        path = resource.path(namespace, name)
        form = finalizers.MEDIA_TYPE
        raw = self._wire.read(transport.Call("GET", path, self._limits(), accept=form))
        try:
            body = finalizers.add_finalizer(raw, finalizer, version)
        except ValueError as e:
            raise api_errors.unreachable("GET", path, e) from e
        return self._request(_Request("PUT", path, _manager_query(field_manager), body, form))

    def delete(
        self,
        resource: gvr.Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        version: str | None = None,
    ) -> None:
        """Delete an object, if it still has `uid` and `version`.

        Raises NotFound; Conflict if it is another one.
        """
        expected = {"uid": uid, "resourceVersion": version}
        preconditions = {k: v for k, v in expected.items() if v is not None}
        body = {"kind": "DeleteOptions", "apiVersion": "v1"}
        options = body | ({"preconditions": preconditions} if preconditions else {})
        self._request(_Request("DELETE", resource.path(namespace, name), body=options))

    def server_version(self) -> ServerVersion:
        """Return the server's version."""
        info = self._request(_Request("GET", "/version"))
        minor = "".join(c for c in str(info["minor"]) if c.isdigit())  # "36+" on some clouds
        return ServerVersion(int(info["major"]), int(minor), str(info["gitVersion"]))

    def _list_all(self, path: str, query: Mapping[str, str]) -> Listing:
        pages = self._walk(_Request("GET", path, query))
        return Listing([*pages.items], pages.version)

    def _walk(self, first: _Request) -> Walk:
        page = self._request(first)
        return Walk(self._items(page, first), page["metadata"]["resourceVersion"])

    def _items(self, page: gvr.Object, first: _Request) -> Iterator[gvr.Object]:
        while True:
            items = page.get("items") or []
            items.reverse()
            while items:
                yield items.pop()
            token = page["metadata"].get("continue")
            if not token:
                return
            page = self._request(replace(first, query={**first.query, "continue": token}))

    def _limits(self) -> tuple[float, float]:
        return self._timeouts.connect_s, self._timeouts.read_s

    def _request(self, request: _Request) -> gvr.Object:
        raw = self._wire.read(
            transport.Call(
                request.method,
                request.path,
                self._limits(),
                request.query,
                request.body,
                request.content_type,
            )
        )
        try:
            response = json_decode.decode(raw, request.bulk)
        except ValueError as e:
            raise api_errors.unreachable(request.method, request.path, e) from e
        if not isinstance(response, dict):
            cause = TypeError("the answer is no JSON object")
            raise api_errors.unreachable(request.method, request.path, cause)
        return response


def _selector_query(field_selector: str, label_selector: str) -> dict[str, str]:
    selectors = {"fieldSelector": field_selector, "labelSelector": label_selector}
    return {k: v for k, v in selectors.items() if v}


def _manager_query(field_manager: str | None) -> dict[str, str]:
    return {} if field_manager is None else {"fieldManager": field_manager}
