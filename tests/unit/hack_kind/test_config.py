"""kind-config.yaml stays as it stands; mounts and the machine's settings are added."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.cluster import errors
from hack.cluster.layout import HOST_ROOT
from hack.kind import config, layout

ROOT = Path(__file__).resolve().parents[3]
WHERE = layout.Layout(Path("/src"), "gpus")
CACHE = layout.Cache(Path("/cache/kind"))
TEXT = (ROOT / "kind-config.yaml").read_text()


def rendered(host: config.Host | None = None, text: str = TEXT) -> Any:
    return json.loads(config.render(config.parse(text), WHERE, CACHE, host or config.Host()))


def test_each_worker_has_a_machine_where_the_charts_values_look_for_it() -> None:
    plain, *workers = rendered()["nodes"]
    assert "extraMounts" not in plain
    for name, worker in zip(("gpus-worker", "gpus-worker2"), workers, strict=True):
        machine = WHERE.machine(name)
        mounts = {entry["containerPath"]: entry["hostPath"] for entry in worker.pop("extraMounts")}
        assert mounts == {
            str(HOST_ROOT): f"{machine}/host-root",
            "/run/nvidia/driver": f"{machine}/driver-root",
            f"{HOST_ROOT}/run/nvidia/driver": f"{machine}/driver-root",
            "/opt/ration-lab/machine": str(machine),
            "/opt/ration-lab/runtime": "/cache/kind/simulators",
        }
    assert [plain, *workers] == yaml.safe_load(TEXT)["nodes"]


def test_on_a_machine_that_lacks_nothing_no_setting_is_added() -> None:
    assert rendered().keys() == yaml.safe_load(TEXT).keys()


def test_on_control_groups_of_version_1_the_kubelet_is_told_to_take_them() -> None:
    (patch,) = rendered(config.Host(legacy_cgroups=True))["kubeadmConfigPatches"]
    document = yaml.safe_load(patch)
    assert (document["kind"], document["failCgroupV1"]) == ("KubeletConfiguration", False)


def test_containerd_keeps_oom_scores_where_they_cannot_be_lowered() -> None:
    (patch,) = rendered(config.Host(oom_scores_fixed=True))["containerdConfigPatches"]
    assert "restrict_oom_score_adj = true" in patch


def test_patches_and_mounts_of_the_users_file_come_first() -> None:
    text = TEXT + "kubeadmConfigPatches: [mine]\n"
    text = text.replace(
        "  - role: worker\n", "  - role: worker\n    extraMounts: [{hostPath: /a}]\n"
    )
    result = rendered(config.Host(legacy_cgroups=True), text)
    assert result["kubeadmConfigPatches"][0] == "mine"
    assert result["nodes"][1]["extraMounts"][0] == {"hostPath": "/a"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: [", "no YAML"),
        ("kind: Pod", "expected a Cluster of kind.x-k8s.io/v1alpha4"),
        (
            "{kind: Cluster, apiVersion: kind.x-k8s.io/v1alpha4, nodes: [{role: control-plane}]}",
            "has no worker",
        ),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(text: str, words: str) -> None:
    with pytest.raises(errors.ClusterError, match=words):
        config.parse(text)
