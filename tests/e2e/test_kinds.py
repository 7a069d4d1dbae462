"""Our kinds on a real API server: what it takes, what it refuses and where, what kubectl shows."""

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from driver import errors
from driver.api import crd
from driver.kube import client, gvr
from driver.resources import queues, reservations
from hack.cluster import api
from hack.cluster.errors import CommandFailedError
from hack.crds import kinds
from tests.e2e.leadership import CONTROLLERS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
NAMESPACE = "e2e-kinds"
SPEC: dict[str, Any] = {
    "parent": "e2e-research",
    "weight": 3,
    "deserved": {
        "gpus": "2.5",
        "memory": "960Gi",
        "compute": 400,
        "models": [{"product": "NVIDIA H100 80GB HBM3", "gpus": 2}],
        "devices": [{"driver": "nic.example.com", "count": 4}],
    },
    "limit": {
        "gpus": 16,
        "memory": "1Ti",
        "compute": 400,
        "models": [{"product": "NVIDIA H100 80GB HBM3", "gpus": "2.0"}],
        "devices": [{"driver": "nic.example.com", "count": 4}],
    },
    "members": [{"namespace": "vision", "labels": {"team": "a"}}],
    "halfLife": "24h",
    "minRunTime": "90s",
    "idleReclaim": {"after": "1h30m", "action": "preferAsVictim"},
}
HELD: dict[str, Any] = {
    "for": {"pod": "train", "uid": "6f0c0a39-0000-4000-8000-000000000000"},
    "start": "2026-12-01T22:00:00Z",
    "count": 4,
    "devices": {
        "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.ration.dev", "count": 8}}],
        "constraints": [{"matchAttribute": "gpu.ration.dev/productName"}],
    },
}
Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kinds:
    """A cluster with our kinds, and a namespace of the test's own."""

    cluster: api.Cluster
    kube: client.KubeClient

    def make(self, kind: kinds.Kind, name: str, spec: Spec) -> Mapping[str, Any]:
        """Create one, as a user does; CommandFailedError with the API server's words."""
        body = {
            "apiVersion": crd.VERSION,
            "kind": kind.name,
            "metadata": {"name": name},
            "spec": spec,
        }
        command = ("create", f"--namespace={NAMESPACE}", "--filename=-", "--output=json")
        document: Mapping[str, Any] = json.loads(
            self.cluster.kubectl(*command, input=json.dumps(body))
        )
        return document

    def refusal(self, kind: kinds.Kind, spec: Spec) -> str:
        """Return why it is not made."""
        with pytest.raises(CommandFailedError) as refused:
            self.make(kind, "e2e-refused", spec)
        return str(refused.value.output)

    def says(self, kind: gvr.Resource, name: str, status: Spec) -> None:
        """Write a status, as the controller does."""
        namespace = NAMESPACE if kind.namespaced else None
        body = {"status": status}
        self.kube.patch(kind, name, body, namespace=namespace, subresource="status")

    def shown(self, *query: str) -> list[list[str]]:
        """Head and rows of `kubectl get`, cut at two blanks or more."""
        text = self.cluster.kubectl("get", *query, f"--namespace={NAMESPACE}")
        return [line.split() for line in text.splitlines()]


@pytest.fixture(scope="module")
def world(cluster: api.Cluster, kube: client.KubeClient) -> Iterator[Kinds]:
    """No controller runs meanwhile: it would say how things stand itself."""
    stopped = [name for name in CONTROLLERS if cluster.pid(name) is not None]
    for text in stopped:
        cluster.stop(text)
    cluster.kubectl("create", "namespace", NAMESPACE)
    try:
        yield Kinds(cluster, kube)
    finally:
        for text in stopped:
            cluster.start(text)
        cluster.kubectl("delete", "namespace", NAMESPACE)
        names = (item["metadata"]["name"] for item in kube.list(gvr.QUEUES).items)
        for name in [name for name in names if name.startswith("e2e-")]:
            kube.delete(gvr.QUEUES, name)


def test_the_api_server_serves_the_kinds_as_they_are_on_file(world: Kinds) -> None:
    for kind in kinds.KINDS:
        document = json.loads(world.cluster.kubectl("get", "crd", kind.crd, "--output=json"))
        conditions = {entry["type"]: entry["status"] for entry in document["status"]["conditions"]}
        assert (conditions["Established"], conditions["NamesAccepted"]) == ("True", "True")
        assert "NonStructuralSchema" not in conditions
        written = kinds.spec(kind)["versions"][0]["schema"]
        assert document["spec"]["versions"][0]["schema"] == written


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("queue", "A team's share of the GPUs"),
        ("queue.spec", "Deserved share, which it gets before siblings borrow"),
        ("queue.spec.limit.models.gpus", "fractions are strings"),
        ("queue.spec.reclaim", "LowerPriority: pods with a higher priority"),
        ("queue.status", "Number of its pending pods"),
        (
            "reservation.spec.for",
            "Holder of the devices: exactly one of gang, pod, claim, labels, queue",
        ),
        ("reservation.spec.devices", "as in spec.devices of a ResourceClaim"),
    ],
)
def test_explain_teaches_the_fields(world: Kinds, path: str, words: str) -> None:
    output = world.cluster.kubectl("explain", path, "--api-version", crd.VERSION)
    assert words in " ".join(output.split())


def test_a_whole_queue_is_taken_and_read_as_it_was_meant(world: Kinds) -> None:
    queue = queues.parse(world.make(kinds.QUEUE, "e2e-vision", SPEC))
    assert (queue.parent, queue.weight, queue.reclaim) == ("e2e-research", 3, "LowerPriority")
    assert (queue.deserved.gpus, queue.limit.gpus, queue.limit.memory) == (2500, 16000, 1 << 40)
    assert queue.limit.models == {"NVIDIA H100 80GB HBM3": 2000}
    assert (queue.half_life_s, queue.min_runtime_s, queue.starvation_s) == (86400.0, 90.0, 3600.0)


def test_omitted_queue_fields_have_defaults(world: Kinds) -> None:
    built = world.make(kinds.QUEUE, "e2e-plain", {})
    assert built["spec"] == {
        "weight": 1,
        "borrowing": True,
        "preemptible": True,
        "reclaim": "LowerPriority",
        "starvationBound": "1h",
    }
    assert queues.parse(built) == queues.parse({**built, "spec": {}})


def test_a_whole_reservation_is_taken_and_read_as_it_was_meant(world: Kinds) -> None:
    reservation = reservations.parse(world.make(kinds.RESERVATION, "whole", HELD))
    assert (reservation.holder.pod, reservation.start, reservation.ttl_s) == (
        "train",
        HELD["start"],
        3600.0,
    )
    assert reservation.count == 4
    assert reservation.spec.requests[0].name == "gpu"
    bare = reservations.parse(world.make(kinds.RESERVATION, "bare", {"for": {"queue": "vision"}}))
    assert (bare.holder.queue, bare.count, bare.spec.requests) == ("vision", 1, ())


def other(spec: Spec, path: str, value: object) -> Spec:
    """A spec with another value at a path."""
    copied = copy.deepcopy(spec)
    *above, last = path.split(".")
    position = copied
    for key in above:
        position = position.setdefault(key, {})
    position[last] = value
    return copied


H100 = "NVIDIA H100 80GB HBM3"
LESS = "the limit is less than what is deserved"
QUEUES: dict[str, tuple[str, object, tuple[str, ...]]] = {
    "fewer GPUs": ("limit.gpus", 2, ("spec.limit.gpus", f"{LESS}: gpus")),
    "a part of a GPU less": ("limit.gpus", "2.499", ("spec.limit.gpus", f"{LESS}: gpus")),
    "less memory": ("limit.memory", "959.9Gi", ("spec.limit.memory", f"{LESS}: memory")),
    "less compute": ("limit.compute", 399, ("spec.limit.compute", f"{LESS}: compute")),
    "fewer of a model": (
        "limit.models",
        [{"product": "other", "gpus": 9}, {"product": H100, "gpus": "1.999"}],
        ("spec.limit.models", f"{LESS}: gpus of a model"),
    ),
    "fewer devices of a driver": (
        "limit.devices",
        [{"driver": "nic.example.com", "count": "3.5"}],
        ("spec.limit.devices", f"{LESS}: devices of a driver"),
    ),
    "a model twice": (
        "deserved.models",
        [{"product": H100, "gpus": 1}, {"product": H100, "gpus": 1}],
        ("spec.deserved.models[1]", "Duplicate value"),
    ),
    "a limit without borrowing": ("borrowing", False, ("spec.limit", "leave limit out")),
    "its own child": ("parent", "e2e-refused", ("spec.parent", "is not its own parent")),
    "a parent that is no name": ("parent", "A_b", ("spec.parent", "should match")),
    "a negative weight": ("weight", -1, ("spec.weight", "greater than or equal to 1")),
    "no weight": ("weight", 0, ("spec.weight", "greater than or equal to 1")),
    "negative GPUs": ("deserved.gpus", -1, ("spec.deserved.gpus", "greater than or equal to 0")),
    "negative GPUs as text": ("deserved.gpus", "-1", ("spec.deserved.gpus", "should match")),
    "memory of no size": ("deserved.memory", "much", ("spec.deserved.memory", "should match")),
    "a word for a time": ("halfLife", "a day", ("spec.halfLife", "should match")),
    "a time of another unit": ("starvationBound", "2d", ("spec.starvationBound", "should match")),
    "an empty time": ("minRunTime", "", ("spec.minRunTime", "at least 2 chars long")),
    "idle after no time": ("idleReclaim.after", "0m", ("spec.idleReclaim.after", "longer than")),
    "an action unknown": (
        "idleReclaim.action",
        "delete",
        ("spec.idleReclaim.action", 'supported values: "report", "preferAsVictim", "evict"'),
    ),
    "a word for a number": ("weight", "3", ("spec.weight", "must be of type integer")),
    "an unknown field": ("wieght", 3, ("strict decoding error", 'unknown field "spec.wieght"')),
    "an unknown amount": (
        "limit.cpus",
        3,
        ("strict decoding error", 'unknown field "spec.limit.cpus"'),
    ),
    "too many members": (
        "members",
        [{"namespace": f"n{index}"} for index in range(257)],
        ("spec.members", "must have at most 256 items"),
    ),
}


@pytest.mark.parametrize("case", QUEUES)
def test_a_queue_that_is_wrong_by_itself_is_refused_at_its_field(world: Kinds, case: str) -> None:
    path, value, words = QUEUES[case]
    refusal = world.refusal(kinds.QUEUE, other(SPEC, path, value))
    for word in words:
        assert word in refusal


RESERVATIONS: dict[str, tuple[str, object, tuple[str, ...]]] = {
    "nobody": ("for", {}, ("spec.for", "exactly one of gang, pod")),
    "two holders": ("for", {"gang": "a", "claim": "b"}, ("spec.for", "exactly one of gang, pod")),
    "a uid of no pod": (
        "for",
        {"gang": "a", "uid": "6f0c0a39"},
        ("spec.for.uid", "name the pod too"),
    ),
    "labels that name none": ("for", {"labels": {}}, ("spec.for.labels", "at least 1 properties")),
    "no time": ("ttl", "0s", ("spec.ttl", "a time longer than none")),
    "a bad time": ("ttl", "1 hour", ("spec.ttl", "should match")),
    "a day that there is not": ("start", "2026-13-01T22:00:00Z", ("spec.start", "date-time")),
    "a start without a zone": ("start", "2026-12-01T22:00:00", ("spec.start", "should match")),
    "no pods": ("count", 0, ("spec.count", "greater than or equal to 1")),
    "nothing asked": ("devices", {}, ("spec.devices.requests", "Required value")),
    "an empty list asked": ("devices", {"requests": []}, ("spec.devices.requests", "at least 1")),
    "a request of no name": (
        "devices",
        {"requests": [{"exactly": {}}]},
        ("spec.devices.requests[0].name", "Required value"),
    ),
    "an unknown field": ("untill", "x", ("strict decoding error", 'unknown field "spec.untill"')),
}


@pytest.mark.parametrize("case", RESERVATIONS)
def test_a_reservation_that_is_wrong_by_itself_is_refused_at_its_field(
    world: Kinds, case: str
) -> None:
    path, value, words = RESERVATIONS[case]
    refusal = world.refusal(kinds.RESERVATION, other(HELD, path, value))
    for word in words:
        assert word in refusal


def test_the_holder_of_a_reservation_is_immutable(world: Kinds) -> None:
    world.make(kinds.RESERVATION, "fixed", {"for": {"gang": "a"}})
    patch = ("patch", "reservation", "fixed", f"--namespace={NAMESPACE}", "--type=merge", "--patch")
    for entry in ({"gang": "b"}, {"gang": None, "pod": "a"}):
        with pytest.raises(CommandFailedError) as refused:
            world.cluster.kubectl(*patch, json.dumps({"spec": {"for": entry}}))
        assert "spec.for" in refused.value.output
        assert "make another Reservation" in refused.value.output
    world.cluster.kubectl(*patch, json.dumps({"spec": {"ttl": "2h", "count": 2}}))


def condition(kind: str, status: str) -> Spec:
    position = {"lastTransitionTime": "2026-11-22T10:00:00Z", "observedGeneration": 1}
    return {"type": kind, "status": status, "reason": "Tried", "message": "", **position}


def test_the_columns_of_queues_tell_what_each_has_and_waits_for(world: Kinds) -> None:
    world.make(kinds.QUEUE, "e2e-shown", {"parent": "e2e-research", "weight": 2})
    texts = {"deserved": "12GPU", "allocated": "14GPU", "fairShare": "13GPU", "borrowed": "2GPU"}
    usage = {"at": "2026-11-22T10:00:00Z", "gpuSeconds": "12.5"}
    more = {"waiting": 3, "oldestWait": "12m", "usage": usage, "observedGeneration": 1}
    accepted = {"conditions": [condition("Accepted", "True")]}
    world.says(gvr.QUEUES, "e2e-shown", {**texts, **more, **accepted})
    head, row = world.shown("rq", "e2e-shown")
    assert " ".join(head) == (
        "NAME PARENT WEIGHT DESERVED USED FAIR BORROWED WAITING OLDEST ACCEPTED AGE"
    )
    values = "e2e-shown e2e-research 2 12GPU 14GPU 13GPU 2GPU 3 12m True"
    assert row[:-1] == values.split()
    queue = queues.parse(world.kube.get(gvr.QUEUES, "e2e-shown"))
    assert queue.usage == queues.Usage(usage["at"], 12.5)


def test_the_columns_of_reservations_tell_what_is_held_and_where(world: Kinds) -> None:
    world.make(kinds.RESERVATION, "shown", HELD)
    device = {"pod": 0, "node": "node-0", "driver": "gpu.ration.dev", "pool": "node-0"}
    devices = [{**device, "device": "gpu-0", "consumedCapacity": {"memory": "10Gi"}}]
    texts = {"for": "pod/train", "nodes": "node-0", "message": "held", "phase": "Held", "count": 1}
    world.says(gvr.RESERVATIONS, "shown", {**texts, "devices": devices})
    head, row = world.shown("rsv", "shown")
    assert head == ["NAME", "FOR", "START", "PHASE", "DEVICES", "NODES", "AGE"]
    assert row[:-1] == f"shown pod/train {HELD['start']} Held 1 node-0".split()
    reservation = reservations.parse(world.kube.get(gvr.RESERVATIONS, "shown", NAMESPACE))
    assert reservations.render_held(reservation.held) == devices
    assert reservation.phase == "Held"
    names = [row[0] for row in world.shown("ration", "--all-namespaces", "--no-headers")]
    assert NAMESPACE in names


def test_a_status_is_validated_by_its_schema_and_cannot_change_the_spec(world: Kinds) -> None:
    built = world.make(kinds.QUEUE, "e2e-said", {})
    body = {"spec": {"weight": 9}, "status": {"waiting": 1}}
    world.kube.patch(gvr.QUEUES, "e2e-said", body, subresource="status")
    assert world.kube.get(gvr.QUEUES, "e2e-said")["spec"] == built["spec"]
    with pytest.raises(errors.Invalid, match=r"status\.waiting"):
        world.says(gvr.QUEUES, "e2e-said", {"waiting": -1})
