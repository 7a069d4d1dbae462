"""`verdicts.ClusterReader` on the API server: caches what seldom changes, reads a pod's claims."""

from collections.abc import Callable, Mapping

import structlog

from driver import clock, errors, ids
from driver.kube import backoff, client, gvr, reflector, store
from driver.resources import fields
from driver.resources.dra import device_classes, slices
from driver.webhook import admission_review, controller_lease, read_cache
from driver.webhook.validation import configs, hardware, opaque, pods

_log = structlog.get_logger(__name__)
_CALL_S = 1.0
_RECENT_S = 2.0
"""For how long a claim or template counts as read; their specs do not change."""
_KINDS = {
    opaque.CLAIM: gvr.RESOURCE_CLAIMS,
    opaque.TEMPLATE: gvr.RESOURCE_CLAIM_TEMPLATES,
}
Reflectors = Mapping[str, reflector.Reflector[object]]


class ClusterState:
    """Classes, the sizes of hardware, and namespaces, kept by `reflectors`."""

    def __init__(
        self, kube: client.KubeClient, driver: str, namespace: str, time: clock.Clock
    ) -> None:
        self._kube = kube.with_timeout(_CALL_S)
        self._driver = driver
        self._lease = controller_lease.ControllerLease(self._kube, namespace, time)
        self._parts = read_cache.RecentReads[opaque.ConfigPart](time, _RECENT_S)
        self._classes: store.Store[device_classes.DeviceClass] = store.Store()
        self._hardware: store.Store[hardware.Hardware] = store.Store()
        self._namespaces: store.Store[Mapping[str, str]] = store.Store()

    def reflectors(
        self, kube: client.KubeClient, time: clock.Clock, jitter: backoff.Jitter
    ) -> Reflectors:
        """Return the reflectors by kind; of slices only sizes are stored."""

        def kept(
            kind: gvr.Resource,
            target: object,
            parse: Callable[[gvr.Object], object],
        ) -> reflector.Reflector[object]:
            options = reflector.Options(jitter=jitter, on_invalid=_unreadable)
            source = reflector.ListWatch(kube, kind)
            return reflector.Reflector(source, target, parse, time, options)  # type: ignore[arg-type]

        result = (
            (gvr.DEVICE_CLASSES, self._classes, device_classes.parse),
            (gvr.RESOURCE_SLICES, self._hardware, self._sizes),
            (gvr.NAMESPACES, self._namespaces, _labels),
        )
        return {kind.plural: kept(kind, target, parse) for kind, target, parse in result}

    def cluster_facts(self) -> configs.ClusterFacts:
        """Return the current facts."""
        by_name = {
            device_class.name: device_class for device_class in self._classes.snapshot().values()
        }
        return configs.ClusterFacts(
            self._driver, by_name, hardware.max_hardware(self._hardware.snapshot().values())
        )

    def converted_resources(self) -> Mapping[str, str]:
        """Return the extended resources of labelled classes; the cache is this moment's."""
        return device_classes.converted_resources(self._classes.snapshot().values())

    def claim_part(self, namespace: str, named: pods.ClaimReference) -> opaque.ConfigPart | None:
        """Read a pod's claim, once for both webhooks: a template is created just before its pod."""
        key = (namespace, named.kind, named.source)
        return self._parts.get(key, lambda: self._read(namespace, named))

    def _read(self, namespace: str, named: pods.ClaimReference) -> opaque.ConfigPart | None:
        try:
            obj = self._kube.get(_KINDS[named.kind], named.source, namespace)
            kind = admission_review.ObjectKind(opaque.GROUP, "v1", named.kind)
            return opaque.claim_part(kind, obj)
        except errors.RationError as error:
            _log.debug("claim not looked up", claim=f"{namespace}/{named.source}", error=str(error))
            return None

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Return the cached labels."""
        return self._namespaces.get(ids.Key(namespace)) or {}

    def is_allocating(self) -> bool:
        """Tell whether a controller leads, by its Lease as of two seconds ago at most."""
        return self._lease.is_held()

    def _sizes(self, obj: gvr.Object) -> hardware.Hardware:
        return hardware.slice_hardware(slices.parse(obj), self._driver)


def _labels(obj: gvr.Object) -> Mapping[str, str]:
    return fields.text_map(fields.mapping(obj, "metadata"), "labels", "metadata")


def _unreadable(key: object, error: Exception) -> None:
    _log.warning("object not readable", key=key, error=str(error))
