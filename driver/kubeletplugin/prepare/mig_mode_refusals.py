"""GPUs whose MIG mode did not change when a claim needed the other mode.

Another NVML client on the node (DCGM, a monitoring script) can keep the driver from changing the
mode, and the kubelet retries such a claim for as long as it lives. Meanwhile devices that need the
same change are tainted.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog

from driver import clock, ids, names
from driver.devices import faces, model
from driver.kube import backoff
from driver.resources.dra import slices
from driver.resources.publish import slice_builder

_log = structlog.get_logger(__name__)
PACE = backoff.Pace(base_s=60.0, max_s=900.0)
"""Time that the faces are tainted; then the next claim may try, and its failure doubles it."""
ON, OFF = "stays-on", "stays-off"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The unchanged mode, the consecutive failures, and its expiry."""

    value: str
    failures: int
    expires_at: float


def _no_notify() -> None:
    """Notify no subscriber."""


class ModeRefusals:
    """Thread safe. Lost with the process: the next claim detects it again."""

    def __init__(self, clock: clock.Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._refusals: dict[ids.GpuUuid, Refusal] = {}
        self._notify: Callable[[], None] = _no_notify

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Call `changed` when a refusal is added or cleared. Call before any other thread."""
        self._notify = changed

    def add(self, gpu: ids.GpuUuid, value: str) -> None:
        """Record that the mode stays: ON or OFF."""
        with self._lock:
            previous = self._refusals.get(gpu)
            failures = 1 + (previous.failures if previous and previous.value == value else 0)
            lasts_s = PACE.wait_s(failures, backoff.no_jitter)
            ends_at = self._clock.monotonic() + lasts_s
            self._refusals[gpu] = Refusal(value, failures, ends_at)
        _log.warning("MIG mode not changed", gpu=gpu, mode=value, kept_back_s=round(lasts_s))
        self._notify()

    def clear(self, gpu: ids.GpuUuid) -> None:
        """Record that the mode of a GPU could be changed."""
        with self._lock:
            previous = self._refusals.pop(gpu, None)
        if previous is not None:
            self._notify()

    def taints(self, inventory: model.Inventory) -> slice_builder.Taints:
        """Return the taint of every device that needs a mode which the GPU refuses now."""
        now_s = self._clock.monotonic()
        with self._lock:
            active = {
                gpu: refusal
                for gpu, refusal in self._refusals.items()
                if refusal.expires_at > now_s
            }
        return refusal_taints(
            inventory.all_gpus, {gpu: refusal.value for gpu, refusal in active.items()}
        )


def refusal_taints(
    gpus: Iterable[model.Gpu], refusals: dict[ids.GpuUuid, str]
) -> dict[ids.DeviceName, tuple[slices.Taint, ...]]:
    """Return the taint for each face that needs the other mode than the current one."""
    return {
        face.name: (slices.Taint(names.MIG_MODE_TAINT, value, "NoSchedule"),)
        for gpu in gpus
        if (value := _active_refusal(gpu, refusals.get(gpu.uuid, "")))
        for face in faces.all_faces(gpu)
        if _needs_other_mode(face, value)
    }


def _active_refusal(gpu: model.Gpu, value: str) -> str:
    """Return the refusal of a GPU, unless its mode has changed by now."""
    enabled = gpu.mig is not None and gpu.mig.enabled
    return value if enabled == (value == ON) else ""


def _needs_other_mode(face: faces.Face, value: str) -> bool:
    match face:
        case faces.MonitorFace():
            return False
        case faces.MigFace():
            return value == OFF
        case _:
            return value == ON
