"""The shell of `ration doctor`: asks the API server for all that the checks are shown."""

import datetime as dt

from driver import errors
from driver.cli.checks import facts
from driver.kube import client, resource


class Gathering:
    """Looks with the caller's rights; what may not be seen is noted, and the rest looked at."""

    def __init__(self, kube: client.KubeClient) -> None:
        self._kube = kube

    def look(self, driver: str, namespace: str, node: str, now: dt.datetime) -> facts.Facts:
        """All there is to check."""
        nodes = f"metadata.name={node}" if node else ""
        slices = f"spec.driver={driver}" + (f",spec.nodeName={node}" if node else "")
        return facts.Facts(
            driver=driver,
            namespace=namespace,
            now=now,
            version=self._version(),
            nodes=self._list(resource.NODES, fields=nodes),
            slices=self._list(resource.RESOURCE_SLICES, fields=slices),
            classes=self._list(resource.DEVICE_CLASSES),
            leases=self._list(resource.LEASES, namespace),
            pods=self._list(resource.PODS, namespace),
            daemon_sets=self._list(resource.DAEMON_SETS),
            webhooks=self._webhooks(),
            node=node,
        )

    def _version(self) -> str | facts.Unseen:
        try:
            return self._kube.server_version().git
        except errors.ApiError as e:
            return _unseen("get /version", e)

    def _webhooks(self) -> facts.Listing:
        found: list[dict[str, object]] = []
        for kind in (resource.VALIDATING_WEBHOOKS, resource.MUTATING_WEBHOOKS):
            listing = self._list(kind)
            if isinstance(listing, facts.Unseen):
                return listing
            # The items of a list do not say what kind they are.
            named = kind.plural.removesuffix("s")
            found += ({**one, "kind": named} for one in listing)
        return tuple(found)

    def _list(
        self, kind: resource.Resource, namespace: str | None = None, fields: str = ""
    ) -> facts.Listing:
        try:
            return tuple(self._kube.list(kind, namespace=namespace, field_selector=fields).items)
        except errors.ApiError as e:
            group = f".{kind.group}" if kind.group else ""
            within = f" -n {namespace}" if namespace else ""
            return _unseen(f"list {kind.plural}{group}{within}", e)


def _unseen(right: str, problem: errors.ApiError) -> facts.Unseen:
    return facts.Unseen(
        right,
        str(problem),
        forbidden=isinstance(problem, errors.Forbidden | errors.Unauthorized),
        missing=isinstance(problem, errors.NotFound),
    )
