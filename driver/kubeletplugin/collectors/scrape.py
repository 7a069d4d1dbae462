"""The plugin's metrics that are worked out at each scrape, of records and of what threads saw last.

Nothing is asked of NVML or the API server: a scrape reads the node's records, and memory.
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
    "Since the slices that are wanted and those that are stored differ; 0 while they do not.",
)
FAMILIES: Final = (*gpus.FAMILIES, *claims.FAMILIES, *records.FAMILIES, LAG)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the figures come from; all may be asked by any thread and wait for nobody.

    `records` raises NodeFault. `shown` and `ailments` are as of the supply and the health watch,
    `written` and `lag_s` as of the checkpoint and the publisher.
    """

    records: Callable[[], tuple[checkpoint.Record, ...]]
    write_time: Callable[[ids.ClaimUid], float | None]
    published: Callable[[], tuple[slice_builder.Pool | None, tuple[model.Gpu, ...]]]
    ailments: Callable[[], gpus.Ailments]
    readings: Callable[[], claims.Readings]
    lag_s: Callable[[], float]


class ScrapeSource:
    """`figures` is a `shown.Source`."""

    def __init__(self, driver: str, node: str, sources: Sources, time: clock.Clock) -> None:
        self._driver = driver
        self._node = node
        self._sources = sources
        self._clock = time

    def figures(self) -> Figures:
        """All of `FAMILIES`."""
        ask = self._sources
        pool, known = ask.published()
        read = ask.readings()
        found, of_records = self._record_figures()
        by_uuid = {gpu.uuid: gpu for gpu in known}
        given = tuple(device_usage.device_uses(found, by_uuid))
        node = gpus.NodeGpus(
            self._driver,
            self._node,
            known,
            ask.ailments(),
            _offered_shares(pool, known),
            read.watts,
        )
        return {
            **gpus.gpu_figures(node, given),
            **claims.claim_figures(self._driver, given, read),
            **of_records,
            **LAG.single(ask.lag_s()),
        }

    def _record_figures(self) -> tuple[tuple[checkpoint.Record, ...], Figures]:
        now = self._clock.now().timestamp()
        try:
            found = self._sources.records()
            return found, records.record_figures(found, self._sources.write_time, now)
        except errors.NodeFault as e:
            _log.warning("records not shown", error=str(e))
            return (), {
                **records.record_figures((), lambda _: None, now),
                **records.READABLE.single(0),
            }


def _offered_shares(
    pool: slice_builder.Pool | None, known: tuple[model.Gpu, ...]
) -> dict[ids.GpuUuid, dict[str, int]]:
    """What each GPU is offered in, as it is published."""
    there = {device.name: device for device in pool.devices} if pool else {}
    found: dict[ids.GpuUuid, dict[str, int]] = {}
    for gpu in known:
        for sharing in faces.Sharing:
            device = there.get(faces.ShareFace(gpu, sharing, 1).name)
            shares = device.capacity.get(names.CAP_SHARES) if device else None
            if shares is not None:
                found.setdefault(gpu.uuid, {})[sharing.value] = shares.value.units
    return found
