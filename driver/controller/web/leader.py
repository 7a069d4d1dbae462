"""Finds the leader by the Lease: a standby forwards its readers there."""

import threading
from collections.abc import Callable

import structlog

from driver import clock, errors
from driver.kube import client, gvr

_log = structlog.get_logger(__name__)
CACHE_S = 2.0
_CALL_S = 2.0


class Leader:
    """Holder of the controllers' Lease, read at most every two seconds. Thread safe."""

    def __init__(
        self, kube: client.KubeClient, lease: str, namespace: str, time: clock.Clock
    ) -> None:
        self._kube = kube.with_timeout(_CALL_S)
        self._lease = lease, namespace
        self._clock = time
        self._lock = threading.Lock()
        self._pod = _Cached(time, self._read_pod)
        self._address = _Cached(time, self._read_address)

    def pod(self) -> str:
        """Return the leader's pod: its identity without the per-process suffix; "" without."""
        with self._lock:
            return self._pod.value()

    def address(self) -> str:
        """Return the address of the leader's pod; "" if unknown."""
        with self._lock:
            return self._address.value()

    def _read_pod(self) -> str:
        lease = self._kube.get(gvr.LEASES, *self._lease)
        return str((lease.get("spec") or {}).get("holderIdentity") or "").rpartition("-")[0]

    def _read_address(self) -> str:
        name = self._pod.value()
        if not name:
            return ""
        pod = self._kube.get(gvr.PODS, name, self._lease[1])
        return str((pod.get("status") or {}).get("podIP") or "")


class _Cached:
    """A value that is read again after two seconds; "" while it cannot be read."""

    def __init__(self, time: clock.Clock, read: Callable[[], str]) -> None:
        self._clock = time
        self._read = read
        self._cached: tuple[float, str] | None = None

    def value(self) -> str:
        now = self._clock.monotonic()
        if self._cached is None or now - self._cached[0] >= CACHE_S:
            try:
                self._cached = now, self._read()
            except errors.ApiError as error:
                _log.info("leader not known", error=str(error))
                self._cached = now, ""
        return self._cached[1]
