"""A whole driver's files: what the toolkit gives a container and has its hooks do, and what we do.

Its own hook for vulkan and X comes apart from the other links; ours is one. Its newest hook, which
narrows what EGL and Vulkan show, is not among ours.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driver.kubeletplugin.cdi import allow, model, template
from driver.kubeletplugin.cdi.driver import files as driver_files
from driver.kubeletplugin.host import driver_root
from hack.cluster import shell
from simulator import layout
from simulator import store as machines
from tests.contract import toolkit, worlds
from tests.fakes import gpunode, toolkits

LIBRARIES = {
    "libnvidia-ptxjitcompiler.so": "1",
    "libnvidia-nvvm.so": "4",
    "libnvidia-allocator.so": "1",
    "libGLX_nvidia.so": "0",
    "libnvidia-opticalflow.so": "1",
    "libnvidia-glcore.so": "",
    "vdpau/libvdpau_nvidia.so": "1",
}
"""By the version that their SONAME ends in; empty: the driver's own."""
FILES = (
    "usr/bin/nvidia-debugdump",
    "usr/bin/nvidia-persistenced",
    "usr/bin/nvidia-imex",
    "usr/bin/nvidia-imex-ctl",
    "usr/bin/nvidia-xconfig",
    "usr/share/glvnd/egl_vendor.d/10_nvidia.json",
    "usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json",
    "usr/share/egl/egl_external_platform.d/20_nvidia_xlib.json",
    "usr/share/nvidia/nvoptix.bin",
    "usr/share/X11/xorg.conf.d/nvidia-drm-outputclass.conf",
    "etc/OpenCL/vendors/nvidia.icd",
    "etc/vulkan/icd.d/nvidia_icd.json",
    "usr/share/vulkan/implicit_layer.d/nvidia_layers.json",
    "usr/lib/xorg/modules/drivers/nvidia_drv.so",
)
OTHER_LOADERS = ("/usr/lib64/", "/usr/local/nvidia/lib64/")
"""Of other images: only the hook knows which loader a container has."""
DEVICE = template.Device("d", (), ("CUDA_MPS_CLIENT_PRIORITY=0",))

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="device nodes are root's"),
    pytest.mark.timeout(900),  # the first of them builds the programs
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An H100 machine with nearly all that NVIDIA's installer puts on one, and a hook."""
    path = tmp_path_factory.mktemp("machine")
    with worlds.running(path, "hgx-h100"):
        position, version = layout.Layout(path), machines.load(path).driver_version
        for name, own in LIBRARIES.items():
            a_library(position.libraries / f"{name}.{version}", own)
        for name in (*FILES, f"lib/firmware/nvidia/{version}/gsp_ga10x.bin"):
            gpunode.write(position.driver_root / name, "")
            (position.driver_root / name).chmod(0o755)
        gpunode.a_socket(position.driver_root / "run/nvidia-fabricmanager/socket")
        gpunode.write(position.host_root / "usr/bin/nvidia-cdi-hook", "")
        yield path


def a_library(path: Path, own: str) -> None:
    """A shared library with a SONAME, and the links that ldconfig and developers make."""
    stem = path.name.partition(".so")[0] + ".so"
    soname = f"{stem}.{own}" if own else path.name
    path.parent.mkdir(exist_ok=True)
    shell.run(("cc", "-shared", f"-Wl,-soname,{soname}", "-x", "c", "/dev/null", "-o", str(path)))
    if own:
        (path.parent / soname).symlink_to(path.name)
    if own == "4":
        (path.parent / stem).symlink_to(soname)


def ours(base: Path, hook: str = "auto") -> Any:
    position = layout.Layout(base)
    root = driver_root.DriverRoot(position.driver_root)
    files = driver_files.DriverFiles(root, position.host_root, hook, run_version=toolkits.ask)
    common = files.read()
    text = template.render("gpu.ration.dev/claim", common, (DEVICE,))
    program = common.hooks[0].path if common.hooks else ""
    spec = model.parse(text, allow.Limits(str(position.driver_root), "", program))
    return json.loads(model.render_canonical(spec))


def mounts(spec: Any) -> set[tuple[str, str]]:
    """(on the host, in the container); without the programs of MPS, which ours never has."""
    return {
        (mount["hostPath"], mount["containerPath"])
        for mount in spec["containerEdits"]["mounts"]
        if "nvidia-cuda-mps-" not in mount["containerPath"]
    }


def hooks(spec: Any) -> dict[str, list[str]]:
    """Arguments by the hook's name, in the order they run; of two of one name, together."""
    result: dict[str, list[str]] = {}
    for hook in spec["containerEdits"]["hooks"]:
        assert (hook["hookName"], hook["path"]) == ("createContainer", "/usr/bin/nvidia-cdi-hook")
        assert hook["env"] == ["NVIDIA_CTK_DEBUG=false"]
        result.setdefault(hook["args"][1], []).extend(hook["args"][2:])
    return result


def test_a_whole_drivers_files_go_where_the_toolkit_puts_them(base: Path) -> None:
    theirs = toolkit.generate(base)
    assert "nvidia-cuda-mps-" in json.dumps(theirs)
    assert "nvidia-cuda-mps-" not in json.dumps(ours(base))
    results, expected = mounts(ours(base)), mounts(theirs)
    assert len(results) > 25
    assert results == {
        (host, location.replace("/usr/share/vulkan", "/etc/vulkan")) for host, location in expected
    }
    bare = {host for host, _ in mounts(ours(base, "none"))}
    assert bare == {host for host, _ in expected}


def test_our_hooks_are_the_toolkits_in_its_order(base: Path) -> None:
    result, expected = hooks(ours(base)), hooks(toolkit.generate(base))
    expected.pop("update-application-profile", None)
    assert list(result) == list(expected)
    for name, words in expected.items():
        assert sorted(result[name]) == sorted(words), name
    variables = toolkit.generate(base)["containerEdits"]["env"]
    assert sorted(ours(base)["containerEdits"]["env"]) == sorted(variables)


def test_the_toolkits_own_hook_makes_the_names_that_we_mount_without_it(
    base: Path, tmp_path: Path
) -> None:
    """Both ways end in the same names for the same files in a container."""
    rootfs = tmp_path / "rootfs"
    for host, location in mounts(ours(base)):
        if Path(host).is_file():
            gpunode.write(rootfs / location.lstrip("/"), host)
    gpunode.write(tmp_path / "config.json", json.dumps({"root": {"path": "rootfs"}}))
    state = json.dumps({"ociVersion": "1.2.0", "id": "c", "bundle": str(tmp_path)})
    (links,) = (
        hook["args"]
        for hook in ours(base)["containerEdits"]["hooks"]
        if hook["args"][1] == "create-symlinks"
    )
    program = str(toolkit.program("nvidia-cdi-hook"))
    subprocess.run([program, *links[1:]], input=state, text=True, check=True, timeout=30)
    names = {
        (path.read_text(), f"/{path.relative_to(rootfs)}")
        for path in rootfs.rglob("*")
        if path.is_file()
    }
    assert names == {
        (host, path)
        for host, path in mounts(ours(base, "none"))
        if Path(host).is_file() and not path.startswith(OTHER_LOADERS)
    }


HEADER_FIRST = """package main

/*
#cgo CFLAGS: -I${SRCDIR}/headers
#include "nvml.h"
*/
import "C"

func main() { println(C.RIGHT) }
"""


# Covers SIM-7.
@pytest.mark.skipif(shutil.which("go") is None, reason="needs Go")
def test_a_header_in_the_temporary_folder_is_in_no_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, shared, own = (tmp_path / name for name in ("module", "shared", "own"))
    for folder in (module / "headers", shared, own):
        folder.mkdir(parents=True)
    (shared / "nvml.h").write_text("#error of another program\n")
    (module / "headers/nvml.h").write_text("#define RIGHT 1\n")
    (module / "go.mod").write_text("module headers\n")
    (module / "main.go").write_text(HEADER_FIRST)
    monkeypatch.setenv("TMPDIR", str(shared))
    command = ("go", "build", "-o", str(own / "program"))
    shell.run(command, cwd=module, env=toolkit.environment(own))
    assert (own / "program").is_file()
