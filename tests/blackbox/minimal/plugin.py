"""Answers of the minimal driver at its two sockets."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from driver.pb import dra_v1_pb2 as dra
from tests.blackbox.minimal import api, state
from tests.fakes import dra_sockets

_log = logging.getLogger(__name__)


class Plugin(dra_sockets.Sockets):
    """Serves v1 alone."""

    def __init__(self, root: Path, driver: str, server: api.Server, retained: state.State) -> None:
        super().__init__(root, driver, self._answer_prepare, self._answer_unprepare)
        self._api = server
        self._state = retained

    def _answer_prepare(self, claim: Any) -> dra.NodePrepareResourceResponse:
        try:
            devices = self._api.devices_of(claim.namespace, claim.name, claim.uid)
            self._state.prepare(claim.uid, devices)
        except (api.Refused, OSError) as e:
            _log.warning("claim %s: %s", claim.uid, e)
            return dra.NodePrepareResourceResponse(error=str(e))
        return dra.NodePrepareResourceResponse(devices=self._told(claim.uid, devices))

    def _told(self, uid: str, devices: state.Devices) -> Iterable[dra.Device]:
        return [
            dra.Device(
                request_names=[device.request],
                pool_name=device.pool,
                device_name=device.device,
                cdi_device_ids=self._state.ids(uid, device.device),
            )
            for device in devices
        ]

    def _answer_unprepare(self, claim: Any) -> dra.NodeUnprepareResourceResponse:
        try:
            self._state.unprepare(claim.uid)
        except OSError as e:
            return dra.NodeUnprepareResourceResponse(error=str(e))
        return dra.NodeUnprepareResourceResponse()
