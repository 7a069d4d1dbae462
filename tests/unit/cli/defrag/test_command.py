"""`ration defrag` on clusters in files."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from driver import names
from driver.cli.lazy import app
from tests.support.builders import objects
from tests.support.scenarios.defrag_dumps import OPTED, as_read, cluster, running

RUN = CliRunner()


def defrag(*args: str) -> tuple[int, str]:
    answer = RUN.invoke(app, ["defrag", "--plan", *args], env={"COLUMNS": "200"})
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    return answer.exit_code, answer.output


def as_json(*args: str) -> tuple[int, dict[str, Any]]:
    code, text = defrag(*args, "-o", "json")
    return code, json.loads(text)


@pytest.fixture
def scattered(tmp_path: Path) -> str:
    """Two nodes of two GPUs, one in use on each."""
    return cluster(
        tmp_path,
        {"node-a": 2, "node-b": 2},
        running("web-1", "node-a", "gpu-0"),
        running("web-2", "node-b", "gpu-0"),
    )


def test_the_pod_to_move_is_told_with_where_it_is_and_where_it_goes(scattered: str) -> None:
    code, text = defrag("--gpus", "2", "--cluster", scattered)
    assert code == 0
    assert "Evict 1 pod, and gpu-0, gpu-1 on node-a are free for it" in text
    (row,) = [line.split() for line in text.splitlines() if line.strip().startswith("default/")]
    assert row == ["default/web-1", "ReplicaSet", "web", "node-a:", "gpu-0", "node-b:", "gpu-1"]


def test_a_plan_for_programs_says_the_same(scattered: str) -> None:
    code, result = as_json("--gpus", "2", "--cluster", scattered)
    assert (code, result["state"], result["node"], result["best"]) == (0, "planned", "node-a", True)
    assert result["devices"] == ["gpu-0", "gpu-1"]
    assert result["evict"] == [
        {
            "pod": "default/web-1",
            "owner": "ReplicaSet web",
            "from": {"node": "node-a", "devices": ["gpu-0"]},
            "to": {"node": "node-b", "devices": ["gpu-1"]},
        }
    ]


def test_yaml_is_what_json_is(scattered: str) -> None:
    _, text = defrag("--gpus", "2", "--cluster", scattered, "-o", "yaml")
    assert yaml.safe_load(text) == as_json("--gpus", "2", "--cluster", scattered)[1]


def test_a_pod_that_fits_now_needs_no_move(scattered: str) -> None:
    code, text = defrag("--gpus", "1", "--cluster", scattered)
    assert (code, "Nothing to do: fits now on node-a: gpu-1" in text) == (0, True)


def test_a_plan_that_leaves_a_pod_unplaced_is_refused_unless_allowed(
    tmp_path: Path,
) -> None:
    values = running("web-1", "node-a", "gpu-0"), running("web-2", "node-a", "gpu-1")
    full = cluster(tmp_path, {"node-a": 2}, *values)
    code, text = defrag("--gpus", "1", "--cluster", full)
    assert (code, "Refused without --allow-pending" in text) == (1, True)
    code, result = as_json("--gpus", "1", "--cluster", full, "--allow-pending")
    assert (code, result["state"], result["waiting"]) == (0, "planned", 1)
    assert result["evict"][0]["to"] is None
    assert "0 of 1 devices fit" in result["evict"][0]["why"]


@pytest.mark.parametrize(
    ("owner", "annotations", "why"),
    [
        ("ReplicaSet", {}, "did not opt in"),
        ("ReplicaSet", {names.DEFRAG: "yes"}, "did not opt in"),
        ("", OPTED, "nobody would make it again"),
    ],
)
def test_pods_that_are_not_to_be_moved_stay_and_are_named(
    tmp_path: Path, owner: str, annotations: dict[str, str], why: str
) -> None:
    stays = running("web-1", "node-a", "gpu-0", owner=owner, annotations=annotations)
    existing = cluster(tmp_path, {"node-a": 2, "node-b": 1}, stays)
    code, text = defrag("--gpus", "2", "--cluster", existing)
    assert code == 1
    assert "No plan: no pod may be moved" in text
    assert "freeing pod default/web-1 would do" in text
    assert f"default/web-1 {why}" in text


def test_devices_that_no_node_has_are_reported(scattered: str) -> None:
    code, result = as_json("--gpus", "3", "--cluster", scattered)
    assert (code, result["state"], result["candidates"]) == (1, "no plan", 2)
    assert result["nearest"]["ever"] is False
    assert "No node here has 3 GPUs" in result["nearest"]["summary"]


def test_a_pod_in_a_file_asks_its_cpu_too(tmp_path: Path, scattered: str) -> None:
    template = {
        "metadata": objects.meta("two"),
        "spec": {"spec": {"devices": {"requests": [objects.a_request(count=2)]}}},
    }
    pod = objects.a_pod("train")
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "two"}]
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "9"
    path = tmp_path / "train.yaml"
    documents = [as_read("ResourceClaimTemplate", template), as_read("Pod", pod)]
    path.write_text(yaml.safe_dump_all(documents))
    code, result = as_json("-f", str(path), "--cluster", scattered)
    assert (code, result["pod"]) == (1, "default/train")
    assert "9000m cpu" in result["summary"]


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_a_claim_or_a_template_alone_is_a_shape(tmp_path: Path, scattered: str, kind: str) -> None:
    devices = {"devices": {"requests": [objects.a_request(count=2)]}}
    spec = devices if kind == "ResourceClaim" else {"spec": devices}
    path = tmp_path / "shape.yaml"
    path.write_text(yaml.safe_dump(as_read(kind, {"metadata": {"name": "two"}, "spec": spec})))
    code, result = as_json("-f", str(path), "--cluster", scattered)
    assert (code, [entry["pod"] for entry in result["evict"]]) == (0, ["default/web-1"])


def test_a_product_narrows_gpus_down_in_any_case(tmp_path: Path) -> None:
    existing = cluster(tmp_path, {"node-a": 1})
    raw = json.loads(Path(existing).read_text())
    for item in raw["items"]:
        for device in item["spec"].get("devices", ()) if item["kind"] == "ResourceSlice" else ():
            device["attributes"][names.ATTR_PRODUCT] = {"string": "NVIDIA H100 80GB HBM3"}
    Path(existing).write_text(json.dumps(raw))
    assert defrag("--gpus", "1", "--product", "h100", "--cluster", existing)[0] == 0
    assert defrag("--gpus", "1", "--product", "H200", "--cluster", existing)[0] == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "one of --gpus, --profile, --memory and -f"),
        (["--gpus", "1", "--memory", "8Gi"], "one of --gpus, --profile, --memory and -f"),
        (["--gpus", "1", "-f", "x.yaml"], "either -f or flags"),
        (["--memory", "lots"], "is not a quantity"),
        (["-f", "nowhere.yaml"], "nowhere.yaml"),
        (["--gpus", "1", "--policies", "best"], "'best' is no policy"),
        (["--gpus", "1", "--class", "none"], "ClassMissing"),
        (["--memory", "8Gi", "--driver-name", "other.example"], "kube-scheduler allocates"),
    ],
)
def test_bad_input_is_told_with_what_is_expected(
    scattered: str, args: list[str], words: str
) -> None:
    code, text = defrag(*args, "--cluster", scattered)
    assert (code, words in text) == (2, True), text


def test_a_plan_is_asked_for_by_name() -> None:
    answer = RUN.invoke(app, ["defrag", "--gpus", "1"])
    assert (answer.exit_code, "--plan" in answer.output) == (2, True)


def test_help_teaches_by_examples() -> None:
    text = RUN.invoke(app, ["defrag", "--help"], env={"COLUMNS": "120"}).output
    assert "ration defrag --plan --gpus 8" in text
    assert "Exit codes" in text
