"""The plugin's metrics computed at scrape time, from records and the threads' last readings.

Nothing is read from NVML or the API server: a scrape reads the node's records, and memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from driver import clock, errors, ids, names
from driver.devices import faces, model
from driver.kubeletplugin.collectors import claims, device_usage, gpus, records
from driver.kubeletplugin.records import checkpoint
from driver.resources.publish import slice_builder
from driver.runtime.metrics.families import Family, Figures

_log = structlog.get_logger(__name__)
LAG: Final = Family(
    "dra_gpu_plugin_publish_lag_seconds",
    "Time for which desired and stored ResourceSlices have differed; 0 while they are equal.",
)
FAMILIES: Final = (*gpus.FAMILIES, *claims.FAMILIES, *records.FAMILIES, LAG)


@dataclass(frozen=True, slots=True)
class Sources:
    """Inputs of the figures; each is callable from any thread and does not wait.

    `records` raises NodeFault. `published` and `ailments` are those of the pool builder and the
    health watch, `write_time` and `lag_s` those of the checkpoint and the publisher.
    """

    records: Callable[[], tuple[checkpoint.Record, ...]]
    write_time: Callable[[ids.ClaimUid], float | None]
    published: Callable[[], tuple[slice_builder.Pool | None, tuple[model.Gpu, ...]]]
    ailments: Callable[[], gpus.Ailments]
    readings: Callable[[], claims.Readings]
    lag_s: Callable[[], float]


class ScrapeSource:
    """`figures` is a `collector.Source`."""

    def __init__(self, driver: str, node: str, sources: Sources, time: clock.Clock) -> None:
        self._driver = driver
        self._node = node
        self._sources = sources
        self._clock = time

    def figures(self) -> Figures:
        """Return the figures of `FAMILIES`."""
        sources = self._sources
        pool, known_gpus = sources.published()
        readings = sources.readings()
        all_records, records_part = self._record_figures()
        by_uuid = {gpu.uuid: gpu for gpu in known_gpus}
        uses = tuple(device_usage.device_uses(all_records, by_uuid))
        node = gpus.NodeGpus(
            self._driver,
            self._node,
            known_gpus,
            sources.ailments(),
            _offered_shares(pool, known_gpus),
            readings.watts,
        )
        return {
            **gpus.gpu_figures(node, uses),
            **claims.claim_figures(self._driver, uses, readings),
            **records_part,
            **LAG.single(sources.lag_s()),
        }

    def _record_figures(self) -> tuple[tuple[checkpoint.Record, ...], Figures]:
        now = self._clock.now().timestamp()
        try:
            all_records = self._sources.records()
            return all_records, records.record_figures(all_records, self._sources.write_time, now)
        except errors.NodeFault as e:
            _log.warning("records not shown", error=str(e))
            return (), {
                **records.record_figures((), lambda _: None, now),
                **records.READABLE.single(0),
            }


def _offered_shares(
    pool: slice_builder.Pool | None, known_gpus: tuple[model.Gpu, ...]
) -> dict[ids.GpuUuid, dict[str, int]]:
    """Return the published shares of each GPU, by mode."""
    by_name = {device.name: device for device in pool.devices} if pool else {}
    result: dict[ids.GpuUuid, dict[str, int]] = {}
    for gpu in known_gpus:
        for sharing in faces.Sharing:
            device = by_name.get(faces.ShareFace(gpu, sharing, 1).name)
            shares = device.capacity.get(names.CAP_SHARES) if device else None
            if shares is not None:
                result.setdefault(gpu.uuid, {})[sharing.value] = shares.value.units
    return result
