"""Tests of the contents of a node image, read from kind and kubeadm."""

from pathlib import Path

import pytest

from hack.cluster import errors, versions
from hack.kind.nodeimage import build, rootfs, upstream

CONFIG = """
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.example/pause:3.10"
"""
CNI = 'const image = "docker.io/kindest/kindnetd:v1-a"\n'
STORAGE = 'const a = "docker.io/kindest/local-path-helper:v2"\n'


def a_source(folder: Path) -> Path:
    sources = folder / "pkg/build/nodeimage"
    sources.mkdir(parents=True)
    (sources / "const_cni.go").write_text(CNI)
    (sources / "const_storage.go").write_text(STORAGE)
    configuration = folder / upstream.BASE_FILES / upstream.CONTAINERD_CONFIG
    configuration.parent.mkdir(parents=True)
    configuration.write_text(CONFIG)
    return folder


def test_kinds_own_images_and_kubeadms_are_known_by_what_runs_in_them(tmp_path: Path) -> None:
    listed = ["registry.example/coredns/coredns:v1", "registry.example/pause:3.10.2"]
    names = upstream.names(a_source(tmp_path), listed)
    assert names.image("kindnetd") == "docker.io/kindest/kindnetd:v1-a"
    assert names.image("local-path-helper") == "docker.io/kindest/local-path-helper:v2"
    assert names.image("coredns") == "registry.example/coredns/coredns:v1"


def test_the_sandbox_is_containerds_and_not_kubeadms(tmp_path: Path) -> None:
    names = upstream.names(a_source(tmp_path), ["registry.example/pause:3.10.2"])
    assert names.image("pause") == "registry.example/pause:3.10"


def test_an_image_that_nobody_asks_for_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.ClusterError, match="an image of etcd"):
        upstream.names(a_source(tmp_path), []).image("etcd")


def test_containers_get_kinds_hook_and_not_the_limits_of_their_maker() -> None:
    usual = {"process": {"args": ["sh"], "rlimits": [1]}, "hooks": {"poststop": [2]}}
    assert rootfs.base_spec(usual) == {
        "process": {"args": ["sh"]},
        "hooks": {
            "poststop": [2],
            "createContainer": [{"path": "/kind/bin/mount-product-files.sh"}],
        },
    }


def test_kubeadm_is_pinned_to_the_default_line() -> None:
    catalogue = versions.load()
    build.check(build.Recipe(catalogue.default))
    older = next(line for line in catalogue.kubernetes if line != catalogue.default)
    with pytest.raises(errors.ClusterError, match="--node-image"):
        build.check(build.Recipe(older))


def test_a_node_images_name_holds_all_that_went_into_it() -> None:
    recipe = build.Recipe(versions.load().default)
    assert recipe.image() == f"ration.local/kind-node:{recipe.tools.version}-{recipe.key()}"
