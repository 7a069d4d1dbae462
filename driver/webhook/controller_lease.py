"""Reads the controller's Lease: pods are gated while a controller leads."""

import datetime as dt
import threading

import structlog

from driver import clock, errors
from driver.kube import client, gvr
from driver.resources import fields

_log = structlog.get_logger(__name__)
_NAME = "ration-controller"
_FRESH_S = 2.0
"""For how long an answer is given again."""


class ControllerLease:
    """Reads the Lease when asked, at most once in _FRESH_S; threads may share it."""

    def __init__(self, kube: client.KubeClient, namespace: str, time: clock.Clock) -> None:
        self._kube = kube
        self._namespace = namespace
        self._clock = time
        self._lock = threading.Lock()
        self._held = False
        self._read_at = float("-inf")

    def is_held(self) -> bool:
        """Tell whether somebody renewed it within its duration; not where it cannot be read."""
        with self._lock:
            if self._clock.monotonic() - self._read_at >= _FRESH_S:
                self._held = self._read()
                self._read_at = self._clock.monotonic()
            return self._held

    def _read(self) -> bool:
        try:
            lease = self._kube.get(gvr.LEASES, _NAME, self._namespace)
            return is_held(lease, self._clock.now())
        except errors.RationError as error:
            _log.debug("controller's Lease not read", error=str(error))
            return False


def is_held(lease: gvr.Object, now: dt.datetime) -> bool:
    """Tell whether a Lease has a holder who renewed it within its duration.

    Raises:
        BadInput: a field has another type than the API's.
    """
    spec = fields.mapping(lease, "spec")
    renewed, lasts_s = fields.text(spec, "renewTime", "spec"), spec.get("leaseDurationSeconds")
    if not fields.text(spec, "holderIdentity", "spec") or not isinstance(lasts_s, int):
        return False
    try:
        age = now - dt.datetime.fromisoformat(renewed)
    except ValueError:
        return False
    return age < dt.timedelta(seconds=lasts_s)
