"""Tests of the path of the daemons' cgroup, for a supervisor in a pod or outside of any."""

from pathlib import Path

import pytest

from driver.mps.daemon import cgroups
from driver.runtime.files import mounts

ROOT = Path("/")
V1_TABLE = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:3 - cgroup cgroup rw,cpu,cpuacct
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
"""
V2_TABLE = "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"


def groups(own: str, table: str, host_root: Path = ROOT) -> tuple[str, ...]:
    paths = cgroups.beside_pods(own, mounts.parse_mountinfo(table), host_root)
    return tuple(str(group) for group in paths)


@pytest.mark.parametrize(
    ("path", "group"),
    [
        ("/kubepods/burstable/podc1f0/b7", "/ration-mps"),
        ("/kubepods.slice/kubepods-burstable.slice/cri-containerd-b7.scope", "/ration-mps"),
        ("/kubelet.slice/kubelet-kubepods.slice/cri-b7.scope", "/kubelet.slice/ration-mps"),
    ],
)
def test_daemons_are_beside_the_kubelets_pods_with_either_cgroup_driver(
    path: str, group: str
) -> None:
    assert groups(f"0::{path}\n", V2_TABLE) == (f"/sys/fs/cgroup{group}",)


def test_every_hierarchy_of_version_1_has_its_group() -> None:
    own = "9:name=systemd:/kubepods/pod1/b7\n4:cpu,cpuacct:/kubepods/pod1/b7\n0::/system.slice\n"
    assert groups(own, V1_TABLE) == (
        "/sys/fs/cgroup/systemd/ration-mps",
        "/sys/fs/cgroup/cpu,cpuacct/ration-mps",
    )


def test_the_nodes_own_hierarchies_are_meant() -> None:
    table = V2_TABLE + V2_TABLE.replace("/sys", "/host/sys")
    own = "0::/kubepods/pod1/b7\n"
    assert groups(own, table, Path("/host")) == ("/host/sys/fs/cgroup/ration-mps",)


def test_a_hierarchy_outside_the_host_root_serves_as_fallback() -> None:
    own = "4:cpu,cpuacct:/kubepods/pod1/b7\n"
    cpu = V1_TABLE.splitlines(keepends=True)[1]
    container = cpu.replace(" / /sys", " /kubepods/pod1/b7 /sys")
    node = cpu.replace(" / /sys", " / /host/sys")
    assert groups(own, container + node, Path("/host/simulated")) == (
        "/host/sys/fs/cgroup/cpu,cpuacct/ration-mps",
    )


def test_outside_of_a_pod_there_is_nothing_to_leave() -> None:
    assert groups("0::/system.slice/ration-mps.service\n", V2_TABLE) == ()
    assert groups("0::/\n", V2_TABLE) == ()
    assert groups("", V2_TABLE) == ()


def test_a_hierarchy_that_is_not_mounted_is_left_out() -> None:
    assert groups("7:blkio:/kubepods/pod1\n", V1_TABLE) == ()
