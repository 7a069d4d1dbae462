"""Checks whether a claim's devices can be under the MPS daemon that it configures. Pure.

`sharing.daemon` decides, as for the allocator and for Prepare, over devices that have everything:
what it refuses of those it refuses of any.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from driver import errors
from driver.api import v1alpha1
from driver.resources.dra import claims
from driver.resources.sharing import claim_mps
from driver.webhook.validation import configs, opaque
from driver.webhook.validation import selectors as validation_selectors
from driver.webhook.validation.selectors import Face

_BOUNDLESS = 1 << 62


@dataclass(frozen=True, slots=True)
class ClaimDaemon:
    """Devices that are surely under the claim's own daemon.

    `complete`: no others can be, and the number of devices is known.
    """

    devices: tuple[tuple[claim_mps.Device, v1alpha1.Mps], ...]
    complete: bool


def check(request_outcomes: Sequence[configs.RequestOutcome]) -> opaque.Findings:
    """Return the errors of the daemon of a claim with these requests."""
    own = _own(request_outcomes)
    doubts = () if own.complete else tuple(_doubts(request_outcomes, own))
    if not own.devices:
        return opaque.Findings(warnings=doubts)
    named = tuple(_by_uuid(own))
    counted = own.complete and not named
    settings = (device if counted else _without_places(device) for device in own.devices)
    try:
        claim_mps.claim_mps_server(tuple(settings))
    except errors.BadInput as problem:
        return opaque.Findings((str(problem),), doubts)
    return opaque.Findings((), (*named, *doubts))


def daemon_devices(outcome: configs.RequestOutcome) -> v1alpha1.Mps | None:
    """The settings of the daemon of a request's devices, where they surely are under one."""
    return _settings(outcome.sure[0]) if outcome.ways == len(outcome.sure) == 1 else None


def _settings(configured: configs.Configured) -> v1alpha1.Mps | None:
    alone = (
        configured.way.face in {Face.WHOLE, Face.MIG} and not configured.way.request.admin_access
    )
    sharing = configured.config.sharing
    return sharing.mps if alone and isinstance(sharing, v1alpha1.MpsSharing) else None


def _own(request_outcomes: Sequence[configs.RequestOutcome]) -> ClaimDaemon:
    devices: list[tuple[claim_mps.Device, v1alpha1.Mps]] = []
    complete = True
    for request_outcome in request_outcomes:
        settings = daemon_devices(request_outcome)
        complete &= request_outcome.ways == 0 or (
            request_outcome.ways == 1 and len(request_outcome.sure) == 1
        )
        if settings is None:
            continue
        way = request_outcome.sure[0].way
        complete &= not way.request.all_devices
        many = 1 if way.request.all_devices else min(way.count, claims.MAX_RESULTS)
        devices += ((_device(way, len(devices) + path), settings) for path in range(many))
    return ClaimDaemon(tuple(devices), complete)


def _device(way: validation_selectors.CandidateWay, index: int) -> claim_mps.Device:
    name = f"a {way.face} of request {way.name}"
    return claim_mps.Device(name, f"{index:02}", _BOUNDLESS, way.face is Face.MIG)


def _without_places(
    item: tuple[claim_mps.Device, v1alpha1.Mps],
) -> tuple[claim_mps.Device, v1alpha1.Mps]:
    device, settings = item
    return device, settings.model_copy(update={"pinnedMemoryPerDevice": {}})


def _by_uuid(own: ClaimDaemon) -> Iterator[str]:
    keys = {key for _, settings in own.devices for key in settings.pinnedMemoryPerDevice}
    for key in sorted(key for key in keys if not key.isdigit()):
        yield f"the memory limit of {key} holds only where the claim gets that very device"


def _doubts(request_outcomes: Sequence[configs.RequestOutcome], own: ClaimDaemon) -> Iterator[str]:
    if any(settings.pinnedMemoryPerDevice for _, settings in own.devices):
        yield "which devices the memory limits by place are for is known only once there are some"
    for request_outcome in request_outcomes:
        if request_outcome.ways > 1 and any(_settings(way) for way in request_outcome.sure):
            name = request_outcome.sure[0].way.name.partition("/")[0]
            yield f"request {name}: its MPS daemon depends on which alternative the claim gets"
