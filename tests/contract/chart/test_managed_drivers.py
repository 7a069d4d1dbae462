"""Rules that say who allocates devices: what the chart's policies let whom do with them."""

import copy
import functools
from typing import Any

import pytest

from driver import names
from tests.contract.chart import judging, rendered

pytestmark = rendered.BUILDS_HELM
ON = "controller.managedDrivers[0].name=gpu.example.com"
CONTROLLER = "system:serviceaccount:ration-system:ration-controller"
ADMIN = "admin"
LEASE = {"spec": {"holderIdentity": "controller-0_x7", "leaseTransitions": 3}}
LEADER, FORMER = "ration-controller/controller-0_x7/3", "ration-controller/controller-1_y2/2"
CORDON = {"key": names.CORDONED_TAINT, "effect": "NoSchedule"}
ALLOCATOR = {"key": names.ALLOCATOR_TAINT, "value": "controller", "effect": "NoSchedule"}
HANDOVER = {"key": names.HANDOVER_TAINT, "effect": "NoSchedule"}
Raw = dict[str, Any]


@functools.cache
def policy(name: str) -> rendered.Object:
    results = rendered.objects(*rendered.setting(ON))
    return rendered.one(results, "ValidatingAdmissionPolicy", f"ration-{name}")


def a_rule(taint: Raw, *, label: bool = True, stamp: str = LEADER) -> Raw:
    metadata: Raw = {"name": "rule"}
    if label:
        metadata |= {"labels": {names.ALLOCATOR_RULE: "true"}, "annotations": {names.FENCE: stamp}}
    return {
        "metadata": metadata,
        "spec": {"deviceSelector": {"driver": "gpu.example.com"}, "taint": taint},
    }


def write(
    new: Raw | None, old: Raw | None = None, user: str = CONTROLLER, manager: str = LEADER
) -> judging.Request:
    operation = "DELETE" if new is None else "CREATE" if old is None else "UPDATE"
    return judging.Request(user, operation, new, old, manager=manager, params=LEASE)


def is_refused(name: str, request: judging.Request) -> bool:
    return bool(judging.refusals(policy(name), request))


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (a_rule(ALLOCATOR), None),
        (a_rule(HANDOVER), None),
        (a_rule(HANDOVER, label=False), None),
        (a_rule(ALLOCATOR), a_rule(HANDOVER)),
        (a_rule(CORDON), a_rule(ALLOCATOR)),
        (a_rule(ALLOCATOR), a_rule(CORDON)),
    ],
)
def test_only_the_controller_makes_and_changes_rules_that_say_who_allocates(
    new: Raw, old: Raw | None
) -> None:
    assert is_refused("taintrules", write(new, old, ADMIN))
    assert not is_refused("taintrules", write(new, old))


def test_other_rules_are_everybodys() -> None:
    cordon = a_rule(CORDON, label=False)
    for old in (None, cordon):
        assert not is_refused("taintrules", write(cordon, old, ADMIN))
        assert not is_refused("fencerules", write(cordon, old, ADMIN, manager="kubectl"))


def test_whoever_may_delete_rules_may_delete_these_too() -> None:
    (constraint,) = policy("taintrules")["spec"]["matchConstraints"]["resourceRules"]
    assert "DELETE" not in constraint["operations"]
    assert not is_refused("fencerules", write(None, a_rule(ALLOCATOR), ADMIN, manager=""))


def test_the_controller_writes_its_rules_while_it_holds_the_lease() -> None:
    for manager, refused in ((LEADER, False), (FORMER, True), ("", True)):
        assert is_refused("fencerules", write(a_rule(HANDOVER), manager=manager)) is refused
        change = write(a_rule(ALLOCATOR), a_rule(HANDOVER), manager=manager)
        assert is_refused("fencerules", change) is refused


@pytest.mark.parametrize(("stamp", "refused"), [(LEADER, False), (FORMER, True), ("", True)])
def test_a_rule_is_deleted_only_with_the_stamp_of_the_lease(stamp: str, *, refused: bool) -> None:
    rule = a_rule(HANDOVER, stamp=stamp)
    assert is_refused("fencerules", write(None, rule, manager="")) is refused
    bare = copy.deepcopy(rule)
    del bare["metadata"]["annotations"]
    assert is_refused("fencerules", write(None, bare, manager=""))


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (a_rule(HANDOVER, label=False), None),
        (a_rule(CORDON), None),
        (a_rule({**ALLOCATOR, "effect": "NoExecute"}), None),
        ({**a_rule(ALLOCATOR), "spec": {"taint": ALLOCATOR, "deviceSelector": {}}}, None),
        (a_rule(ALLOCATOR), a_rule(CORDON, label=False)),
        (None, a_rule(CORDON, label=False)),
    ],
)
def test_the_controller_writes_no_rule_but_its_own(new: Raw | None, old: Raw | None) -> None:
    assert is_refused("fencerules", write(new, old))


def test_an_edited_rule_may_be_put_right() -> None:
    spec = {"deviceSelector": {}, "taint": {**ALLOCATOR, "effect": "NoExecute"}}
    edited = {**a_rule(ALLOCATOR), "spec": spec}
    right = {**edited, "spec": {**spec, "taint": HANDOVER}}
    assert not is_refused("fencerules", write(right, edited))


def test_without_a_lease_everybody_else_goes_on_making_rules() -> None:
    results = rendered.objects(*rendered.setting(ON))
    binding = rendered.one(results, "ValidatingAdmissionPolicyBinding", "ration-fencerules")
    assert binding["spec"]["paramRef"]["parameterNotFoundAction"] == "Allow"


def test_without_managed_drivers_the_controller_has_no_rights_on_rules() -> None:
    def verbs(*values: str) -> set[str]:
        role = rendered.one(
            rendered.objects(*rendered.setting(*values)), "ClusterRole", "ration-controller"
        )
        return {
            verb
            for rule in role["rules"]
            if "devicetaintrules" in rule["resources"]
            for verb in rule["verbs"]
        }

    assert verbs() == {"list", "watch"}
    assert verbs(ON) == {"list", "watch", "create", "patch", "delete"}


def test_uninstalling_deletes_rules_only_where_the_controller_made_some() -> None:
    def jobs(*values: str) -> str:
        results = rendered.objects(*rendered.setting(*values))
        return str(
            [x["spec"]["template"]["spec"]["containers"] for x in results if x["kind"] == "Job"]
        )

    assert "--allocator-rules" in jobs(ON)
    assert "--allocator-rules" not in jobs()
