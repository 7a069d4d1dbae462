"""Pods that wait on a real cluster: `ration explain` names the true cause of each."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from driver import names
from driver.reasons import Reason
from tests.e2e import playground

Raw = dict[str, Any]
NEVER = {"schedulingGates": [{"name": "example.com/wait"}]}


def claimed(name: str, *, count: int = 1, pod: Raw | None = None, **exactly: Any) -> list[Raw]:
    return [
        playground.a_claim(name, count, **exactly),
        playground.a_pod(name, claims=(name,), **(pod or {})),
    ]


def selecting(text: str) -> list[Raw]:
    return [{"cel": {"expression": text}}]


KINDS: dict[str, tuple[list[Raw], Reason, str]] = {
    "more-than-a-node-has": (claimed("a", count=9), Reason.NO_FIT, "No node here has 9 GPUs"),
    "more-memory-than-a-gpu": (
        claimed(
            "b",
            deviceClassName="gpu-mps.ration.dev",
            capacity={"requests": {"memory": "200Gi"}},
        ),
        Reason.NO_FIT,
        "No GPU here has 200Gi",
    ),
    "no-such-class": (
        claimed("c", deviceClassName="gold.example.com"),
        Reason.CLASS_MISSING,
        "gold.example.com",
    ),
    "no-such-product": (
        claimed(
            "d",
            selectors=selecting(
                f'device.attributes["{names.DRIVER}"].productName == "NVIDIA Nothing"'
            ),
        ),
        Reason.NO_FIT,
        "SelectorMismatch",
    ),
    "another-node": (
        claimed("e", pod={"nodeSelector": {"zone": "nowhere"}}),
        Reason.NO_FIT,
        "NodeMismatch",
    ),
    "too-much-cpu": (claimed("f", pod={"cpu": "4000"}), Reason.NO_FIT, "NodeFull"),
    "gated": (claimed("g", pod=NEVER), Reason.SCHEDULING_GATED, "example.com/wait"),
    "no-claim": ([playground.a_pod("h", claims=("nowhere",))], Reason.CLAIM_MISSING, "nowhere"),
    "half-a-gang": (
        claimed("i"),
        Reason.GANG_WAITS,
        "1 more of its 2",
    ),
}


@pytest.fixture
def explain(field: playground.Playground) -> Callable[[str], Raw]:
    """Return what `ration explain pod` says, as JSON; it ends with 1 for what waits."""

    def ask(name: str) -> Raw:
        command = [str(Path(sys.executable).with_name("ration")), "explain", "pod", name]
        command += ["-n", field.namespace, "-o", "json", "--source", "cluster"]
        command += ["--kubeconfig", str(field.cluster.kubeconfig)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode in {0, 1}, done.stderr
        document: Raw = json.loads(done.stdout)
        assert done.returncode == int(bool(document["reason"]))
        return document

    return ask


def test_each_kind_of_pod_that_waits_is_told_its_true_cause(
    field: playground.Playground, explain: Callable[[str], Raw]
) -> None:
    for created, _, _ in KINDS.values():
        if created[-1]["metadata"]["name"] == "i":
            created[-1]["metadata"]["labels"] = {names.GANG_LABEL: "pair"}
            created[-1]["metadata"]["annotations"] = {names.GANG_SIZE: "2"}
        field.create(*created)
    for kind, (created, reason, words) in KINDS.items():
        name = created[-1]["metadata"]["name"]

        def told(name: str = name, reason: Reason = reason, words: str = words) -> Raw | None:
            result = explain(name)
            text = json.dumps(result)
            return result if result["reason"] == reason and words in text else None

        until = playground.until(told, 30, f"{kind}: {reason}, {words}") or {}
        assert until["advice"], kind
        assert until["state"] == "waiting", kind


def test_a_pod_pending_on_a_full_node_names_its_blockers(
    field: playground.Playground, explain: Callable[[str], Raw]
) -> None:
    on = {"nodeSelector": playground.on("e2e-a")}
    field.create(*claimed("full", count=8, pod=on))
    field.running("full")
    field.create(*claimed("next", pod=on))

    def told() -> Raw | None:
        result = explain("next")
        nearest = (result["explanation"] or {}).get("nearest")
        return nearest if result["reason"] == Reason.NO_FIT else None

    nearest = playground.until(told, 30, "a nearest fit") or {}
    assert nearest["node"] == "e2e-a"
    assert nearest["leaving"] == [f"{field.namespace}/full"]
    condition = next(
        condition
        for condition in field.pod("next")["status"]["conditions"]
        if condition["type"] == names.CONDITION_ALLOCATED
    )
    assert (condition["status"], condition["reason"]) == ("False", "NoFit")
    field.delete_pod("full")
    field.running("next")

    def gone() -> bool:
        conditions = field.pod("next")["status"]["conditions"]
        return all(condition["type"] != names.CONDITION_ALLOCATED for condition in conditions)

    playground.until(gone, 15, "no condition on a pod that waits no more")
    assert explain("next")["state"] == "running"
