"""The controller's only writer: every write carries the term's name (D22).

Requests that an admission policy can fence by `request.options.fieldManager`:

- PATCH (subresources too) and POST: `fieldManager` is a query parameter and reaches
  `PatchOptions` and `CreateOptions`.
- An eviction is a POST of `pods/<name>/eviction`, so it has `CreateOptions` with a manager.
- Server-side apply under a name that outlives terms, so that the next leader removes what this one
  applied: that name is not a term's, so it is refused locally without a term, as is
- DELETE: its `DeleteOptions` hold no manager. Other owners' pods are therefore removed by eviction
  only, and a delete here names the UID. Where a late DELETE would do harm, the term is written into
  the object first (`names.FENCE`) and the policy compares that with the Lease.
"""

from collections.abc import Callable

from driver import errors
from driver.kube import client, gvr, lease


class NotLeading(errors.ApiError):
    """There is no term to write under, so nothing was sent: as if the server's fence had refused.

    It may pass: a process that was frozen has no term until it has renewed its Lease.
    """

    def __init__(self) -> None:
        super().__init__(0, "NotLeading", "this process does not lead at present")


class FencedWriter:
    """Writes under the current term. Raises NotLeading, and ApiError (Forbidden: fenced off)."""

    def __init__(self, kube: client.KubeClient, term: Callable[[], lease.Term | None]) -> None:
        self._client = kube
        self._term = term

    def get(self, resource: gvr.Resource, name: str, namespace: str | None = None) -> gvr.Object:
        """See `KubeClient.get`: reading needs no term."""
        return self._client.get(resource, name, namespace)

    def patch(  # noqa: PLR0913 - the parameters of the client's patch
        self,
        resource: gvr.Resource,
        name: str,
        body: object,
        *,
        namespace: str | None = None,
        subresource: str = "",
        kind: client.PatchType = client.PatchType.MERGE,
        force: bool = False,
    ) -> gvr.Object:
        """See `KubeClient.patch`."""
        return self._client.patch(
            resource,
            name,
            body,
            namespace=namespace,
            subresource=subresource,
            kind=kind,
            field_manager=self._manager(),
            force=force,
        )

    def apply(self, resource: gvr.Resource, name: str, body: object, *, manager: str) -> gvr.Object:
        """Apply (server-side) as `manager`; Conflict: another manager owns a field.

        Fenced by the term here, not by the server.
        """
        self._manager()
        return self._client.patch(
            resource, name, body, kind=client.PatchType.APPLY, field_manager=manager
        )

    def add_finalizer(
        self,
        resource: gvr.Resource,
        name: str,
        finalizer: str,
        *,
        namespace: str | None = None,
        version: str,
    ) -> gvr.Object:
        """See `KubeClient.add_finalizer`."""
        return self._client.add_finalizer(
            resource,
            name,
            finalizer,
            namespace=namespace,
            version=version,
            field_manager=self._manager(),
        )

    def create(
        self, resource: gvr.Resource, body: gvr.Object, namespace: str | None = None
    ) -> gvr.Object:
        """See `KubeClient.create`."""
        return self._client.create(resource, body, namespace, field_manager=self._manager())

    def create_eviction(
        self, name: str, namespace: str, *, uid: str, grace_s: int | None = None
    ) -> None:
        """Request the eviction of the pod `uid`.

        Raises TooManyRequests while a disruption budget forbids it, Conflict if the pod is another
        one by now, NotFound if it is gone.
        """
        options: gvr.Object = {"preconditions": {"uid": uid}}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": options,
        }
        self._client.create(
            gvr.PODS,
            body,
            namespace,
            subresource="eviction",
            name=name,
            field_manager=self._manager(),
        )

    def delete(
        self,
        resource: gvr.Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str,
        version: str | None = None,
    ) -> None:
        """Delete exactly the object `uid`, at `version` if given; Conflict: it is another by now.

        Fenced by the term here, and by the server only for objects that carry `names.FENCE`.
        """
        self._manager()
        self._client.delete(resource, name, namespace, uid=uid, version=version)

    def field_manager(self) -> str:
        """Return the name of the current term, to stamp an object with before its deletion."""
        return self._manager()

    def _manager(self) -> str:
        term = self._term()
        if term is None:
            raise NotLeading
        return term.field_manager
