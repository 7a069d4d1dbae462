"""Caches that are too old to say who allocates, or to hand devices over by."""

import threading
from dataclasses import dataclass, field
from typing import cast

import pytest

from driver import names
from driver.controller.informers import informers, stores
from driver.resources.dra import taint_rules
from tests.support.builders import objects

RULES = "devicetaintrules"
FRESH_S, STALE_S = informers.SLICES_STALE_S, informers.SLICES_STALE_S + 1


@dataclass
class Informer:
    """A reflector that was last heard of so long ago."""

    seconds: float = 0.0
    synced: threading.Event = field(default_factory=threading.Event)

    def age_s(self) -> float:
        return self.seconds


def reflectors(**ages_s: float) -> informers.Reflectors:
    result = {name: Informer(ages_s.get(name, 0.0)) for name in ("nodes", informers.SLICES, RULES)}
    for informer in result.values():
        informer.synced.set()
    return cast("informers.Reflectors", result)


def caches(*, has_rules: bool) -> stores.Stores:
    result = stores.empty()
    result.taint_rules.set_parser(taint_rules.parse, lambda _key, _error: None)
    meta = objects.meta("rule", None, labels={names.ALLOCATOR_RULE: str(has_rules).lower()})
    spec = {"taint": {"key": names.ALLOCATOR_TAINT, "effect": "NoSchedule"}}
    result.taint_rules.apply({"metadata": meta, "spec": spec})
    return result


@pytest.mark.parametrize("has_rules", [True, False])
def test_old_slices_do_not_say_who_allocates(*, has_rules: bool) -> None:
    for seconds, stale in ((FRESH_S, False), (STALE_S, True)):
        old = reflectors(resourceslices=seconds)
        assert informers.allocators_are_stale(old, caches(has_rules=has_rules)) is stale


def test_old_rules_matter_where_the_controller_has_some() -> None:
    old = reflectors(devicetaintrules=STALE_S)
    assert informers.allocators_are_stale(old, caches(has_rules=True))
    assert not informers.allocators_are_stale(old, caches(has_rules=False))


def test_nothing_is_handed_over_by_caches_that_are_old_or_not_filled() -> None:
    assert informers.rules_may_change(reflectors(nodes=60.0))
    assert not informers.rules_may_change(reflectors(devicetaintrules=STALE_S))
    assert not informers.rules_may_change(reflectors(resourceslices=STALE_S))
    for name in ("nodes", informers.SLICES, RULES):
        filling = reflectors()
        filling[name].synced.clear()
        assert not informers.rules_may_change(filling)
