"""Checks of `ration doctor`. Pure: facts in, findings out."""

from collections.abc import Callable, Iterable
from typing import Final

from driver.cli.doctor.checks import (
    components,
    controller,
    facts,
    findings,
    managed_drivers,
    nodes,
    plugins,
    server,
    webhooks,
)

CHECKS: Final[tuple[Callable[[facts.Facts], Iterable[findings.Finding]], ...]] = (
    server.version,
    server.api,
    server.classes,
    server.features,
    server.gates,
    controller.lease,
    controller.pods,
    components.versions,
    components.rights,
    managed_drivers.served,
    managed_drivers.rules,
    managed_drivers.classes,
    managed_drivers.mixed_claims,
    webhooks.certificates,
    plugins.device_plugins,
    plugins.mig_managers,
    nodes.nodes,
)
"""In the order in which they are shown."""


def run(facts: facts.Facts) -> tuple[findings.Finding, ...]:
    """Every check's findings."""
    return tuple(finding for check in CHECKS for finding in check(facts))
