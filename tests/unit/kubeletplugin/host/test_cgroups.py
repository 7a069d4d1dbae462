import pytest

from driver.kubeletplugin.host import cgroups

POD = "0f7a4a80-5c1e-4d6b-9d0e-3c2b1a09f8e7"
OTHER = "1e6b5b91-6d2f-4e7c-8e1f-4d3c2b1a0f9e"
DASHED, SCORED = POD, POD.replace("-", "_")
V1 = f"""\
12:pids:/kubepods/besteffort/pod{DASHED}/7cbd
11:memory:/kubepods/besteffort/pod{DASHED}/7cbd
3:cpu,cpuacct:/kubepods/besteffort/pod{DASHED}/7cbd
1:name=systemd:/kubepods/besteffort/pod{DASHED}/7cbd
0::/
"""


@pytest.mark.parametrize(
    "text",
    [
        V1,
        f"0::/kubepods/pod{DASHED}/7cbd\n",
        f"0::/kubepods.slice/kubepods-pod{SCORED}.slice/cri-containerd-7cbd.scope\n",
        f"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{SCORED}.slice/a.scope\n",
        f"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{SCORED}.slice/a.scope\n",
        f"0::/../../kubepods-burstable-pod{SCORED}.slice/crio-7cbd.scope\n",
        f"5:memory:/ration-0a1b/pods/node-1/kubepods/burstable/pod{DASHED}/7cbd\n",
        f"0::/kubepods/pod{DASHED}/7cbd/what the container made: pod of its own\n",
    ],
    ids=["v1", "v2", "systemd", "besteffort", "kind", "namespaced", "rooted", "nested"],
)
def test_a_process_is_of_the_pod_that_its_group_is_named_after(text: str) -> None:
    assert cgroups.parse_pod_uids(text) == (POD,)


def test_for_a_kubelet_in_a_pod_the_outermost_pod_comes_first() -> None:
    text = f"0::/kubepods/pod{DASHED}/7cbd/kubelet/kubepods/burstable/pod{OTHER}/11aa\n"
    assert cgroups.parse_pod_uids(text) == (POD, OTHER)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "0::/\n",
        "0::/system.slice/nvidia-persistenced.service\n",
        "4:memory:/docker/7cbd0000\n",
        "0::/kubepods/podless/7cbd\n",
        "0::/kubepods/pod3f9c3a/7cbd\n",
        f"0::/kubepods/pod{DASHED}0/7cbd\n",
        f"0::/kubepods/pod{SCORED}/7cbd\n",
        f"0::/kubepods-pod{DASHED}.slice/7cbd\n",
        f"pod{DASHED}",
        "\x00\x01:\ud800/",
    ],
)
def test_other_processes_and_garbage_are_of_no_pod(text: str) -> None:
    assert cgroups.parse_pod_uids(text) == ()
