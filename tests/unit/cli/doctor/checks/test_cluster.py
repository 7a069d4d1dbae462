import datetime as dt

import pytest

from driver import clock
from driver.cli.doctor import checks
from driver.cli.doctor.checks import facts, findings, webhooks
from tests.fakes import doctored
from tests.support.builders import objects

State = findings.State
FORBIDDEN = facts.Unreadable("list nodes", "API server: 403", forbidden=True)


def test_a_healthy_cluster_has_no_problems_and_no_remedies() -> None:
    run = checks.run(doctored.healthy())
    assert {finding.state for finding in run} == {State.FINE, State.NOTE}
    assert {finding.fix for finding in run} == {""}
    assert findings.exit_code(run) is findings.Exit.FINE


@pytest.mark.parametrize("version", ["v1.36.3", "v1.35.9"])
def test_a_server_below_the_floor_is_wrong(version: str) -> None:
    finding = doctored.found("kubernetes", version=version)
    assert (finding.state, finding.message) == (
        State.WRONG,
        f"Kubernetes is {version}, below 1.36.4",
    )
    assert "upgrade" in finding.fix


def test_without_the_api_group_it_is_told_once() -> None:
    missing = facts.Unreadable("list deviceclasses", "API server: 404", missing=True)
    states = doctored.states(classes=missing, slices=missing)
    assert states["api"] == "wrong"
    assert "classes" not in states


def test_a_driver_without_a_class_cannot_be_claimed() -> None:
    assert doctored.found("classes", classes=(doctored.a_class("gpu.nvidia.com"),)).state is (
        State.WRONG
    )
    longer = doctored.a_class("gpu.ration.dev.example.com")
    assert doctored.states(classes=(longer,))["classes"] == "wrong"


def test_devices_without_counters_say_that_sharing_is_off() -> None:
    device = doctored.a_device()
    del device["consumesCounters"]
    finding = doctored.found("features", slices=(objects.a_slice("node-a", [device]),))
    assert (finding.state, finding.message[:14]) == (State.WRONG, "sharing is off")
    assert "DRAPartitionableDevices" in finding.fix


def test_the_controllers_devices_without_taints_are_taken_by_kube_scheduler() -> None:
    device = doctored.a_device()
    del device["taints"]
    finding = doctored.found("features", slices=(objects.a_slice("node-a", [device]),))
    assert finding.state is State.WRONG
    assert finding.message.startswith("the API server drops the devices' taints")


@pytest.mark.parametrize(
    ("lease", "state", "words"),
    [
        (doctored.a_lease(), State.FINE, "one leads"),
        (doctored.a_lease(age_s=40), State.FINE, "one leads"),
        (doctored.a_lease(age_s=-20), State.FINE, "one leads"),
        (doctored.a_lease(age_s=100), State.WRONG, "was last heard of 100 s ago"),
        (doctored.a_lease(holder=""), State.WRONG, "no controller leads in namespace ration-"),
    ],
)
def test_a_controller_leads_and_said_so_lately(
    lease: doctored.Object, state: findings.State, words: str
) -> None:
    finding = doctored.found("controller", leases=(lease,))
    assert finding.state is state
    assert words in finding.message


def test_with_kube_scheduler_as_allocator_a_missing_controller_is_fine() -> None:
    slices = (objects.a_slice("node-a", [doctored.a_device("gpu-0", "scheduler")]),)
    assert doctored.found("controller", leases=(), slices=slices).state is State.NOTE
    assert doctored.found("controller", leases=()).state is State.WRONG


def test_a_lease_that_never_was_renewed_is_old() -> None:
    lease = doctored.a_lease()
    del lease["spec"]["renewTime"]
    assert doctored.found("controller", leases=(lease,)).message.endswith("ages ago")


def test_pods_that_are_not_ready_are_named_with_where_to_look() -> None:
    late = doctored.a_pod("kubeletplugin", ready=False)
    run = checks.run(doctored.healthy(pods=(late, doctored.a_pod("controller"))))
    document = {item.message: item for item in run if item.check == "pods"}
    finding = document["kubeletplugin: 1 of 1 not ready: ration-kubeletplugin-1"]
    assert finding.state is State.WRONG
    assert finding.fix.startswith("kubectl -n ration-system logs -l ")
    assert document["controller: 1 ready"].state is State.FINE


def test_without_pods_of_the_chart_the_namespace_may_be_another() -> None:
    finding = doctored.found("pods", pods=({"metadata": {"name": "other"}},))
    assert (finding.state, "--namespace" in finding.fix) == (State.NOTE, True)


def test_a_webhook_needs_an_authority_that_holds() -> None:
    good = doctored.a_bundle()
    bundles = {"": "caBundle is empty", "bm8=": "caBundle is no certificate", good: None}
    for bundle, words in bundles.items():
        problem = webhooks.problem(bundle, clock.SystemClock().now())
        assert (problem or "").startswith(words or "")
        assert (problem is None) is (words is None)
    past = doctored.a_bundle(doctored.NOW - dt.timedelta(days=1))
    finding = doctored.found("webhook", webhooks=(doctored.a_webhook(past),))
    assert finding.state is State.WRONG
    assert "caBundle expired on 2026-11-21" in finding.message


def test_an_authority_of_tomorrow_does_not_hold_today() -> None:
    later = doctored.a_bundle(doctored.NOW + dt.timedelta(days=30))
    assert webhooks.problem(later, doctored.NOW) == "caBundle is not valid yet"


def test_webhooks_of_others_are_not_looked_at() -> None:
    other = doctored.a_webhook("", "pods.example.com")
    assert doctored.found("webhook", webhooks=(other,)).state is State.NOTE


def test_components_of_the_gpu_operator_are_worth_knowing_where_they_run() -> None:
    sets = (
        doctored.a_daemon_set("nvidia-device-plugin-daemonset"),
        doctored.a_daemon_set("nvidia-mig-manager"),
        doctored.a_daemon_set("nvidia-dcgm-exporter"),
    )
    states = doctored.states(daemon_sets=sets)
    assert (states["device plugin"], states["mig manager"]) == ("note", "note")
    idle = (doctored.a_daemon_set("nvidia-mig-manager", pods=0),)
    assert "mig manager" not in doctored.states(daemon_sets=idle)


@pytest.mark.parametrize(
    ("description", "check"),
    [
        ("version", "kubernetes"),
        ("classes", "api"),
        ("slices", "features"),
        ("leases", "controller"),
        ("pods", "pods"),
        ("webhooks", "webhook"),
        ("daemon_sets", "device plugin"),
        ("nodes", "nodes"),
    ],
)
def test_forbidden_objects_are_reported_with_the_missing_right(
    description: str, check: str
) -> None:
    run = checks.run(doctored.healthy(**{description: FORBIDDEN}))
    (finding,) = (item for item in run if item.check == check)
    assert (finding.state, finding.message) == (State.UNSEEN, "you may not list nodes")
    assert finding.fix == "ask for the right: kubectl auth can-i list nodes"
    assert findings.exit_code(run) is findings.Exit.UNSEEN


def test_something_wrong_outweighs_what_was_not_seen() -> None:
    run = checks.run(doctored.healthy(version="v1.36.3", pods=FORBIDDEN))
    assert findings.exit_code(run) is findings.Exit.WRONG
