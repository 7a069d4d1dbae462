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
        mounts = {one["containerPath"]: one["hostPath"] for one in worker.pop("extraMounts")}
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


def test_where_scores_cannot_be_lowered_containerd_does_not_try() -> None:
    (patch,) = rendered(config.Host(oom_scores_fixed=True))["containerdConfigPatches"]
    assert "restrict_oom_score_adj = true" in patch


def test_what_the_file_patches_and_mounts_itself_comes_first_and_stays() -> None:
    text = TEXT + "kubeadmConfigPatches: [mine]\n"
    text = text.replace(
        "  - role: worker\n", "  - role: worker\n    extraMounts: [{hostPath: /a}]\n"
    )
    found = rendered(config.Host(legacy_cgroups=True), text)
    assert found["kubeadmConfigPatches"][0] == "mine"
    assert found["nodes"][1]["extraMounts"][0] == {"hostPath": "/a"}


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
