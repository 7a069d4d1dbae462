"""Tests of which new pods wait behind our scheduling gate for the controller's first answer."""

from collections.abc import Mapping
from typing import Any

import pytest

from driver import errors, names
from driver.kube import gvr
from driver.webhook import admission_review, controller_lease, scheduling_gate, verdicts
from driver.webhook.validation import configs, opaque, pods
from tests.fakes import clock
from tests.support.builders import objects
from tests.unit.webhook.cluster import KNOWN, SLICE

Raw = dict[str, Any]
OURS, FOREIGN, MISSING = "ours", "foreign", "missing"
ENTRY = {"name": names.ALLOCATION_GATE}
FIRST = ({"op": "add", "path": "/spec/schedulingGates", "value": [ENTRY]},)
NOW = clock.START


def part(*selectors: str, **request: Any) -> opaque.ConfigPart:
    claim = objects.a_claim("claim", objects.a_request("gpu", 1, *selectors, **request))
    config_part = opaque.claim_part(
        admission_review.ObjectKind("resource.k8s.io", "v1", "ResourceClaim"), claim
    )
    assert config_part is not None
    return config_part


PARTS = {
    OURS: part(),
    SLICE: part(deviceClassName=SLICE),
    FOREIGN: part('device.driver == "nic.example.com"', deviceClassName="any"),
    "open": part(deviceClassName="any"),
}


class World:
    """`handling.World`: claims by their names."""

    def __init__(self, label: str = "", *, allocating: bool = True) -> None:
        self._label = label
        self._allocating = allocating

    def cluster_facts(self) -> configs.ClusterFacts:
        return KNOWN

    def claim_part(self, namespace: str, named: pods.ClaimReference) -> opaque.ConfigPart | None:
        assert namespace == "team"
        return PARTS.get(named.source)

    def namespace_labels(self, namespace: str) -> Raw:
        assert namespace == "team"
        return {names.GATE_LABEL: self._label}

    def converted_resources(self) -> Mapping[str, str]:
        return {}

    def is_allocating(self) -> bool:
        return self._allocating


def a_pod(*claims: str, **spec: Any) -> Raw:
    entries = [{"name": name, "resourceClaimName": name} for name in claims]
    return {"metadata": {"name": "pod"}, "spec": {"resourceClaims": entries, **spec}}


def gated(pod: Raw, world: World | None = None, **more: Any) -> admission_review.ReviewResponse:
    requested = {"operation": "CREATE", "namespace": "team", **more}
    kind = admission_review.ObjectKind("", "v1", "Pod")
    request = admission_review.ReviewRequest(uid="u", kind=kind, object=pod, **requested)
    return verdicts.gate(request, world or World())


@pytest.mark.parametrize("claims", [(OURS,), (SLICE,), (FOREIGN, OURS)])
def test_a_pod_that_asks_our_driver_is_gated(claims: tuple[str, ...]) -> None:
    assert gated(a_pod(*claims)).patch == FIRST


@pytest.mark.parametrize("claims", [(), (FOREIGN,), ("open",), (OURS, MISSING)])
def test_a_pod_that_may_be_anothers_is_not_gated(claims: tuple[str, ...]) -> None:
    assert gated(a_pod(*claims)) == admission_review.ALLOWED


def test_the_gate_is_added_beside_those_of_others() -> None:
    anothers = {"name": "kueue.x-k8s.io/admission"}
    answer = gated(a_pod(OURS, schedulingGates=[anothers]))
    assert answer.patch == ({"op": "add", "path": "/spec/schedulingGates/-", "value": ENTRY},)


def test_a_pod_is_gated_once() -> None:
    assert gated(a_pod(OURS, schedulingGates=[ENTRY])) == admission_review.ALLOWED


def test_a_pod_that_names_its_node_is_not_gated() -> None:
    assert gated(a_pod(OURS, nodeName="node-a")) == admission_review.ALLOWED


def test_no_pod_is_gated_while_no_controller_leads() -> None:
    assert gated(a_pod(OURS), World(allocating=False)) == admission_review.ALLOWED


def test_a_namespace_may_refuse_the_gate() -> None:
    assert gated(a_pod(OURS), World("false")) == admission_review.ALLOWED
    assert gated(a_pod(OURS), World("true")).patch == FIRST


def test_only_new_pods_are_gated() -> None:
    assert gated(a_pod(OURS), operation="UPDATE", old=a_pod()) == admission_review.ALLOWED
    assert gated(a_pod(OURS), subresource="status") == admission_review.ALLOWED


def test_a_pod_that_cannot_be_read_is_the_api_servers_to_refuse() -> None:
    assert gated({"spec": {"resourceClaims": 3}}) == admission_review.ALLOWED
    assert gated(a_pod(OURS, schedulingGates="no")) == admission_review.ALLOWED
    with pytest.raises(errors.BadInput):
        scheduling_gate.gate_patch(a_pod(OURS, schedulingGates="no"), [PARTS[OURS]], KNOWN)


def a_lease(renewed: str = "2026-11-21T08:59:50.000000Z", **spec: Any) -> gvr.Object:
    held = {"holderIdentity": "controller-0", "leaseDurationSeconds": 15, "renewTime": renewed}
    return {"metadata": {"name": "ration-controller"}, "spec": {**held, **spec}}


def test_a_lease_is_held_for_its_duration() -> None:
    assert controller_lease.is_held(a_lease(), NOW)
    assert not controller_lease.is_held(a_lease("2026-11-21T08:59:45.000000Z"), NOW)


@pytest.mark.parametrize(
    "spec", [{"holderIdentity": ""}, {"renewTime": "soon"}, {"leaseDurationSeconds": None}]
)
def test_a_lease_without_a_holder_or_a_time_is_not_held(spec: Raw) -> None:
    assert not controller_lease.is_held(a_lease(**spec), NOW)


class Leases:
    """A client that counts what is read; None: the API server refuses."""

    def __init__(self, lease: gvr.Object | None) -> None:
        self.lease = lease
        self.reads = 0

    def get(self, kind: gvr.Resource, name: str, namespace: str) -> gvr.Object:
        assert (kind, name, namespace) == (gvr.LEASES, "ration-controller", "ration-system")
        self.reads += 1
        if self.lease is None:
            raise errors.Forbidden(403, "Forbidden", "leases")
        return self.lease


def test_the_lease_is_read_once_for_pods_that_come_together() -> None:
    time = clock.FakeClock()
    leases = Leases(a_lease())
    held = controller_lease.ControllerLease(leases, "ration-system", time)  # type: ignore[arg-type]
    assert held.is_held()
    assert held.is_held()
    assert leases.reads == 1
    leases.lease = None
    time.advance(2.0)
    assert not held.is_held()
    assert leases.reads == 2
