"""The hooks that a claim's spec has run, by nvidia-cdi-hook of the versions that hosts have."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from driver import clock
from driver.kubeletplugin.cdi import hooks
from driver.kubeletplugin.cdi.driver import files as driver_files
from driver.runtime.files import container_toolkit as host_toolkit
from hack.cluster import errors, shell
from tests.contract import toolkit
from tests.fakes import gpunode

HOOK = host_toolkit.PROGRAMS[0]
UNKNOWN_HOOK = 3
"""The exit code of a program before 1.18.0 for a hook that it does not have."""

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to enter a host's file system"),
    pytest.mark.timeout(900),  # the first of them builds the programs
]


def a_host(folder: Path, version: str) -> Path:
    """A host's root with a hook program, and the libraries that it is linked to."""
    try:
        program = toolkit.hook_of(version)
    except errors.CommandFailedError as error:
        pytest.skip(f"nvidia-cdi-hook {version} cannot be built here: {error}")
    installed = folder / HOOK.lstrip("/")
    installed.parent.mkdir(parents=True)
    shutil.copy(program, installed)
    for library in re.findall(r"/\S+", shell.run(("ldd", str(program)))):
        copy = folder / library.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, copy)
    return folder


def run(program: Path, *words: str, bundle: Path) -> "subprocess.CompletedProcess[str]":
    """Run a hook as a runtime does, for a container with an empty root."""
    (bundle / "rootfs").mkdir(exist_ok=True)
    (bundle / "config.json").write_text(json.dumps({"root": {"path": "rootfs"}}))
    state = json.dumps({"ociVersion": "1.2.0", "id": "c", "bundle": str(bundle)})
    command = (str(program), *words)
    return subprocess.run(
        command, cwd=bundle, input=state, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("version", toolkit.OLDER)
def test_a_program_in_a_root_of_its_own_tells_its_version(tmp_path: Path, version: str) -> None:
    (hook,) = host_toolkit.Toolkit(a_host(tmp_path, version), clock.SystemClock()).list_hooks()
    assert host_toolkit.format_version(hook.version or (0, 0, 0)) == version
    assert ("CVE-2025-23266" in hook.problem) == (version == "1.16.2")


#
@pytest.mark.parametrize("version", toolkit.OLDER)
def test_no_hook_of_a_spec_is_one_that_the_hosts_program_does_not_have(
    tmp_path: Path, version: str
) -> None:
    host, root = a_host(tmp_path / "host", version), tmp_path / "root"
    gpunode.a_driver_root(root)
    common = driver_files.DriverFiles(gpunode.with_control_nodes(root), host).read()
    assert len(common.hooks) == {"1.16.2": 0, "1.17.8": 3, "1.18.0": 4}[version]
    for hook in common.hooks:
        done = run(toolkit.hook_of(version), *hook.arguments[1:], bundle=tmp_path)
        words = done.stdout + done.stderr
        assert done.returncode != UNKNOWN_HOOK, words
        assert "No help topic" not in words
        assert "Unsupported CDI hook" not in words


@pytest.mark.parametrize("version", toolkit.OLDER)
def test_a_hook_is_left_out_only_where_the_program_does_not_have_it(
    tmp_path: Path, version: str
) -> None:
    """The table of versions is NVIDIA's."""
    host = a_host(tmp_path / "host", version)
    numbers = host_toolkit.parse_version(
        HOOK, shell.run((str(host / HOOK[1:]), "--version"))
    ).version
    assert numbers is not None
    newest = hooks.build_hooks(HOOK, (99, 0, 0), "580.1", (("a", "/b"),), ("/usr/lib",))
    inputs = hooks.build_hooks(HOOK, numbers, "580.1", (("a", "/b"),), ("/usr/lib",))
    for hook in newest:
        done = run(toolkit.hook_of(version), hook.arguments[1], "--help", bundle=tmp_path)
        assert (done.returncode == UNKNOWN_HOOK) == (hook not in inputs), hook
