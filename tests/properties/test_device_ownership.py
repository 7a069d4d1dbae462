"""Whatever is configured, edited, lost or late: no device is two allocators' at once."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from driver.scheduling.device_ownership import rule_plan

APART_S = rule_plan.HANDOVER_S
LAG_S = 25.0
NONE: AbstractSet[int] = frozenset()
DRIVERS = ("gpu.example.com", "nic.example.com")
POOLS = ("a", "b", "c")
Device = tuple[str, str]
"""Driver and pool: all devices of a pool have the same rules."""
DEVICES = tuple((driver, pool) for driver in DRIVERS for pool in POOLS)
Stored = Mapping[str, rule_plan.AllocatorRule]
SELECTORS = st.builds(
    rule_plan.DeviceSelector,
    st.sampled_from((None, *DRIVERS)),
    st.sampled_from((None, *POOLS)),
    st.sampled_from((None, None, "gpu-0")),
)


def allocator(device: Device, rules: Stored) -> str | None:
    """Return who gives a device out, as any reader of these rules would say; None: nobody."""
    driver, pool = device
    target = rule_plan.DeviceSelector(driver, pool, "gpu-0")
    taints = {
        rule.taint for rule in rules.values() if rule.selector and rule.selector.covers(target)
    }
    if rule_plan.RuleTaint.HANDOVER in taints:
        return None
    return "controller" if rule_plan.RuleTaint.ALLOCATOR in taints else "scheduler"


@dataclass(frozen=True)
class Version:
    """Rules and published devices from a moment on."""

    at_s: float
    rules: Stored
    published: frozenset[Device]

    def owners(self) -> Iterator[tuple[Device, str]]:
        for device in self.published:
            owner = allocator(device, self.rules)
            if owner is not None:
                yield device, owner


class Cluster:
    """An API server's history of rules and pools."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.versions = [Version(0.0, {}, frozenset())]
        self.owned: dict[tuple[Device, str], float] = {}
        self.breaches: list[str] = []

    @property
    def rules(self) -> Stored:
        return self.versions[-1].rules

    @property
    def published(self) -> frozenset[Device]:
        return self.versions[-1].published

    def store(self, rules: Stored) -> None:
        self._append(rules, self.published)

    def publish(self, published: frozenset[Device]) -> None:
        self._append(self.rules, published)

    def forget(self) -> None:
        """Forgive what an edit by hand did; judge from now on."""
        self.owned.clear()
        self.versions = [replace(self.versions[-1], at_s=self.now_s)]

    def seen(self, late_s: float) -> Version:
        """Return what a reader sees that is so late."""
        at_s = self.now_s - late_s
        return next((v for v in reversed(self.versions) if v.at_s <= at_s), self.versions[0])

    def _append(self, rules: Stored, published: frozenset[Device]) -> None:
        for entry in self.versions[-1].owners():
            self.owned[entry] = self.now_s
        self.versions.append(Version(self.now_s, rules, published))
        for device, owner in self.versions[-1].owners():
            other = "scheduler" if owner == "controller" else "controller"
            last_s = self.owned.get((device, other))
            if last_s is not None and self.now_s - last_s < APART_S:
                self.breaches.append(f"{device}: {owner}'s {self.now_s - last_s} s after {other}'s")


class Leader:
    """A process that reconciles: it knows only for how long it has itself seen a rule."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._since: dict[rule_plan.AllocatorRule, float] = {}

    def turn(
        self, desired: frozenset[rule_plan.DeviceSelector], refused: AbstractSet[int] = NONE
    ) -> None:
        """Send the planned writes, of which the server refuses some."""
        now_s, rules = self._cluster.now_s, self._cluster.rules
        self._since = {rule: self._since.get(rule, now_s) for rule in rules.values()}
        seen = [replace(rule, seen_s=now_s - at_s) for rule, at_s in self._since.items()]
        for index, write in enumerate(rule_plan.plan_writes(desired, seen)):
            if index not in refused:
                self._send(write)

    def _send(self, write: rule_plan.Write) -> None:
        rules = dict(self._cluster.rules)
        match write:
            case rule_plan.Create(selector, taint):
                name = rule_plan.rule_name(selector)
                assert name not in rules
                rules[name] = rule_plan.AllocatorRule(name, selector, taint)
            case rule_plan.SetTaint(rule, taint):
                rules[rule.name] = replace(rule, taint=taint, seen_s=0.0)
            case rule_plan.Delete(rule):
                del rules[rule.name]
        self._cluster.store(rules)


class Ownership(stateful.RuleBasedStateMachine):
    """Two drivers whose pools come and go, under leaders that change."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.leader = Leader(self.cluster)
        self.desired: frozenset[rule_plan.DeviceSelector] = frozenset()

    @stateful.initialize(pools=st.none() | st.sets(st.sampled_from(POOLS)))
    def begin(self, pools: set[str] | None) -> None:
        """Publish everything, and hand over a part of one driver."""
        self.cluster.publish(frozenset(DEVICES))
        self.configure(DRIVERS[0], pools, NONE)
        self.pass_time_and_turn(APART_S)

    @stateful.rule(
        driver=st.sampled_from(DRIVERS),
        pools=st.none() | st.sets(st.sampled_from(POOLS)),
        refused=st.frozensets(st.integers(0, 3)),
    )
    def configure(self, driver: str, pools: set[str] | None, refused: AbstractSet[int]) -> None:
        """Manage a driver everywhere, in some pools, or nowhere."""
        others = {selector for selector in self.desired if selector.driver != driver}
        chosen = {None} if pools is None else pools
        mine = {rule_plan.DeviceSelector(driver, pool) for pool in chosen}
        self.desired = frozenset(others | mine)
        self.turn(refused)

    @stateful.rule(published=st.sets(st.sampled_from(DEVICES)))
    def publish(self, published: set[Device]) -> None:
        self.cluster.publish(frozenset(published))

    @stateful.rule(seconds=st.sampled_from([0.5, 2.0, 10.0, 29.5, 30.0, 31.0]))
    def pass_time(self, seconds: float) -> None:
        self.cluster.now_s += seconds

    @stateful.rule(seconds=st.floats(25.0, 35.0))
    def pass_time_and_turn(self, seconds: float) -> None:
        self.turn()
        self.cluster.now_s += seconds
        self.turn()

    @stateful.rule(refused=st.frozensets(st.integers(0, 3)))
    def turn(self, refused: AbstractSet[int] = NONE) -> None:
        self.leader.turn(self.desired, refused)

    @stateful.rule()
    def change_leader(self) -> None:
        self.leader = Leader(self.cluster)

    @stateful.rule(
        index=st.integers(0, 9),
        selector=st.none() | SELECTORS,
        taint=st.sampled_from(rule_plan.RuleTaint),
    )
    def edit_by_hand(
        self, index: int, selector: rule_plan.DeviceSelector | None, taint: rule_plan.RuleTaint
    ) -> None:
        """Edit a rule past the admission policy; what that alone does is not judged."""
        rules = dict(self.cluster.rules)
        if not rules:
            return
        name = sorted(rules)[index % len(rules)]
        rules[name] = replace(rules[name], selector=selector, taint=taint)
        self.cluster.store(rules)
        self.cluster.forget()
        self.cluster.breaches.clear()

    @stateful.rule(late_s=st.tuples(st.floats(0, LAG_S), st.floats(0, LAG_S)))
    def read_late(self, late_s: tuple[float, float]) -> None:
        """Ask a kube-scheduler and a controller that are late for whom they take each device."""
        scheduler, controller = (self.cluster.seen(seconds) for seconds in late_s)
        for device in scheduler.published & controller.published:
            takes = (
                allocator(device, scheduler.rules) == "scheduler",
                allocator(device, controller.rules) == "controller",
            )
            assert takes != (True, True), device

    @stateful.invariant()
    def nobody_follows_the_other_within_thirty_seconds(self) -> None:
        assert not self.cluster.breaches

    def teardown(self) -> None:
        """Left alone, every rule that is desired has the allocator taint, and no other is left."""
        for _ in range(100):
            self.cluster.now_s += 2.0
            self.turn()
        assert not self.cluster.breaches
        names = {name: rule.selector for name, rule in self.cluster.rules.items()}
        assert names == {rule_plan.rule_name(selector): selector for selector in self.desired}
        taints = {rule.taint for rule in self.cluster.rules.values()}
        assert taints <= {rule_plan.RuleTaint.ALLOCATOR}


TestOwnership = Ownership.TestCase
TestOwnership.settings = hypothesis.settings(max_examples=300, stateful_step_count=40)
