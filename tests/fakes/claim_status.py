"""Claims as the API server keeps them, status and all, without a server."""

import copy
from collections.abc import Mapping
from typing import Any

from driver import errors, names
from driver.kube import gvr
from driver.kubeletplugin import ports
from driver.resources.dra import claims
from tests.fakes.apiserver import rules, storage

Raw = dict[str, Any]
KIND = (gvr.RESOURCE_CLAIMS.group, gvr.RESOURCE_CLAIMS.plural)
_ERRORS = {404: errors.NotFound, 409: errors.Conflict, 422: errors.Invalid}


class ClaimStatus:
    """`ports.ClaimStatus`. `trouble` is raised by the next calls, one each."""

    def __init__(self) -> None:
        self.storage = storage.Storage()
        self.trouble: list[errors.ApiError | None] = []
        self.applied = 0
        self.reads = 0

    def put(self, raw: Raw) -> None:
        """A claim, as it is."""
        self.storage.put(KIND, raw)

    def raw(self, name: str) -> Raw:
        """The claim as it stands."""
        return self.storage.get(KIND, ("default", name))

    def read(self, ref: ports.ClaimRef) -> claims.Claim:
        self.reads += 1
        self._suffer()
        try:
            return claims.parse(self.raw(ref.name))
        except rules.Refusal as e:
            raise _ERRORS[e.code](e.code, e.reason, e.message) from e

    def apply(self, ref: ports.ClaimRef, body: Mapping[str, object]) -> None:
        self._suffer()
        self.apply_as(ref.name, names.PLUGIN_FIELD_MANAGER, body)
        self.applied += 1

    def apply_as(self, name: str, manager: str, body: Mapping[str, object]) -> None:
        """Somebody's apply, with force."""
        how = storage.Apply(copy.deepcopy(dict(body)), manager, force=True)
        try:
            self.storage.apply(KIND, ("default", name), how, "status")
        except rules.Refusal as e:
            raise _ERRORS[e.code](e.code, e.reason, e.message) from e

    def conditions(self, name: str, device: str = "gpu-0") -> dict[str, tuple[str, str, str]]:
        """Return the conditions of one device, by type: status, reason, time."""
        device_statuses = claims.parse(self.raw(name)).device_statuses
        return {
            condition.type: (condition.status, condition.reason, condition.since)
            for entry in device_statuses
            if entry.device.device == device
            for condition in entry.conditions
        }

    def _suffer(self) -> None:
        trouble = self.trouble.pop(0) if self.trouble else None
        if trouble is not None:
            raise trouble
