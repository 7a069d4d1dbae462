"""Informers of the controller: one reflector per kind, each filling its store."""

from dataclasses import dataclass, replace

import structlog

from driver import clock
from driver.controller.informers import stores
from driver.kube import backoff, client, gvr, optional_kinds, reflector
from driver.resources import disruption_budgets, pod_groups, queues, reservations
from driver.resources.bulk import slice_decoder
from driver.resources.core import namespaces, nodes, pods, storage, volumes
from driver.resources.dra import claims, device_classes, taint_rules

_log = structlog.get_logger(__name__)
_SLICES_WATCH_S, _SLICES_SILENCE_S = 6.0, 12.0
SLICES_STALE_S = 15.0
"""Slices say who allocates what. A node that changes hands says so for 30 s (D2): what is known of
slices must be newer than that by what a write may take.
"""
SLICES = gvr.RESOURCE_SLICES.plural
_RULES = gvr.DEVICE_TAINT_RULES.plural
_OWNERSHIP = (gvr.NODES.plural, SLICES, _RULES)
LISTED_BEFORE_TERM = frozenset(
    kind.plural
    for kind in (
        *(gvr.NODES, gvr.RESOURCE_SLICES, gvr.DEVICE_CLASSES, gvr.PODS, gvr.NAMESPACES),
        *(gvr.PVCS, gvr.PVS, gvr.STORAGE_CLASSES, gvr.CSI_NODES, gvr.CSI_DRIVERS),
        *(gvr.STORAGE_CAPACITIES, gvr.VOLUME_ATTACHMENTS),
    )
)
"""Kinds that a new leader lists while it waits for its term. Claims and rules are not among them:
listed then, they could lack the last write of the leader before.
"""
Reflectors = dict[str, reflector.Reflector[object]]
"""By name."""


def allocators_are_stale(reflectors: Reflectors, caches: stores.Stores) -> bool:
    """Return whether the caches may be too old to say who allocates the devices.

    Slices say it, and rules where the controller has some.
    """
    rules = caches.taint_rules.snapshot().values()
    kinds = (SLICES, _RULES) if any(rule.is_allocator_rule for rule in rules) else (SLICES,)
    return any(reflectors[kind].age_s() > SLICES_STALE_S for kind in kinds)


def rules_may_change(reflectors: Reflectors) -> bool:
    """Return whether the caches are filled and fresh enough to hand devices over by them."""
    return all(reflectors[kind].synced.is_set() for kind in _OWNERSHIP) and all(
        reflectors[kind].age_s() <= SLICES_STALE_S for kind in (SLICES, _RULES)
    )


@dataclass(frozen=True, slots=True)
class InformerFactory:
    """Builds the reflectors; Kubernetes' own PodGroups only with `pod_groups`."""

    kube: client.KubeClient
    time: clock.Clock
    jitter: backoff.Jitter
    relist_s: float
    pod_groups: bool = False

    def build_reflectors(self, caches: stores.Stores) -> Reflectors:
        """Return the reflectors of all kinds by name, optional kinds included."""
        options = reflector.Options(
            relist_s=self.relist_s, jitter=self.jitter, on_invalid=_unreadable
        )
        prompt = replace(options, watch_s=_SLICES_WATCH_S, silence_s=_SLICES_SILENCE_S)
        kinds = (
            (gvr.NODES, caches.nodes, nodes.parse, None),
            (gvr.RESOURCE_SLICES, caches.slices, slice_decoder.parse, slice_decoder.decode),
            (gvr.DEVICE_CLASSES, caches.classes, device_classes.parse, None),
            (gvr.RESOURCE_CLAIMS, caches.claims, claims.parse, None),
            (gvr.PODS, caches.pods, pods.parse, None),
        )
        reflectors: Reflectors = {
            kind.plural: reflector.Reflector(
                reflector.ListWatch(self.kube, kind, bulk=bulk),
                target,  # type: ignore[arg-type]
                parse,
                self.time,
                prompt if kind is gvr.RESOURCE_SLICES else options,
            )
            for kind, target, parse, bulk in kinds
        }
        optional = self._optional(caches, options, prompt)
        return reflectors | optional | self._refining(caches, options)

    def _optional(
        self, caches: stores.Stores, options: reflector.Options, prompt: reflector.Options
    ) -> Reflectors:
        """Kinds that a server may lack: of another version, or without their CRDs.

        Without the right to PodGroups only pods that name one wait. Queues, Reservations and taints
        are for every pod: without the right to those nothing is allocated.
        """
        kinds = (
            (
                "",
                gvr.DEVICE_TAINT_RULES,
                gvr.DEVICE_TAINT_RULE_VERSIONS,
                caches.taint_rules,
                taint_rules.parse,
            ),
            ("", gvr.QUEUES, ("v1alpha1",), caches.queues, queues.parse),
            ("", gvr.RESERVATIONS, ("v1alpha1",), caches.reservations, reservations.parse),
            (
                "",
                gvr.POD_GROUPS,
                ("v1beta1", "v1alpha2"),
                caches.native_pod_groups,
                pod_groups.parse,
            ),
            (
                "coscheduling-",
                gvr.COSCHEDULING_POD_GROUPS,
                ("v1alpha1",),
                caches.coscheduling,
                pod_groups.parse,
            ),
        )
        served = (row for row in kinds if self.pod_groups or row[1] is not gvr.POD_GROUPS)
        return {
            f"{prefix}{kind.plural}": reflector.Reflector(
                optional_kinds.OptionalListWatch(
                    reflector.ListWatch(self.kube, kind),
                    versions,
                    forbidden=kind.plural == gvr.POD_GROUPS.plural,
                ),
                target,  # type: ignore[arg-type]
                parse,
                self.time,
                # Rules say who allocates, as slices do.
                prompt if kind is gvr.DEVICE_TAINT_RULES else options,
            )
            for prefix, kind, versions, target, parse in served
        }

    def _refining(self, filled: stores.Stores, options: reflector.Options) -> Reflectors:
        """Kinds that some pods need; without the right to them the others are placed.

        A pod whose volume claims or volumes are not seen waits. Of StorageClasses, Namespaces and
        what storage drivers say filters know less, and kube-scheduler's refusals are followed.
        PodDisruptionBudgets are enforced by the API server, which evicts.
        """
        kinds = (
            (gvr.PVCS, filled.volume_claims, volumes.parse_claim),
            (gvr.PVS, filled.volumes, volumes.parse_volume),
            (gvr.PDBS, filled.budgets, disruption_budgets.parse),
            (gvr.NAMESPACES, filled.namespaces, namespaces.parse),
            (gvr.STORAGE_CLASSES, filled.storage_classes, storage.parse_class),
            (gvr.CSI_NODES, filled.csi_nodes, storage.parse_node),
            (gvr.CSI_DRIVERS, filled.csi_drivers, storage.parse_driver),
            (gvr.STORAGE_CAPACITIES, filled.capacities, storage.parse_capacity),
            (gvr.VOLUME_ATTACHMENTS, filled.attachments, storage.parse_attachment),
        )
        return {
            kind.plural: reflector.Reflector(
                optional_kinds.OptionalListWatch(
                    reflector.ListWatch(self.kube, kind), (kind.version,), forbidden=True
                ),
                target,  # type: ignore[arg-type]
                parse,
                self.time,
                options,
            )
            for kind, target, parse in kinds
        }


def _unreadable(key: object, error: Exception) -> None:
    _log.warning("object not readable", key=key, error=str(error))
