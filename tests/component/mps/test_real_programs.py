"""The supervisor with NVIDIA's own control daemon, on a libc of another build; no GPU is needed.

`make real-programs` fetches them; where they are not, these tests are skipped and say so.
"""

import contextlib
import itertools
import os
import shutil
from pathlib import Path

import pytest

from driver import errors, ids
from driver.devices import mps_files
from driver.kubeletplugin.host import driver_root, nvidia_smi
from driver.mps.daemon import process as daemon_process
from driver.runtime.files import driver_search
from tests.fakes import mpsnode, nvidia_roots, waiting

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
NODES = list(itertools.product(nvidia_roots.LAYOUTS, nvidia_roots.SYSTEMS))
DEFAULTS = "get_default_active_thread_percentage", "get_default_device_pinned_mem_limit 0"
NO_DRIVER = "couldn't communicate with the NVIDIA driver"


@pytest.fixture(params=NODES, ids=" ".join)
def real(tmp_path: Path, request: pytest.FixtureRequest) -> nvidia_roots.Node:
    layout, system = request.param
    return nvidia_roots.lay_node(layout, system, tmp_path / "host")


def search(real: nvidia_roots.Node) -> driver_search.Search:
    return driver_search.build_search("auto", real.host)


def defaults(node: mpsnode.Node, real: nvidia_roots.Node) -> list[str]:
    """Return the status of the daemon, which serves one shell at a time."""
    key = node.uuid(0)
    daemon_paths = daemon_process.DaemonPaths(
        node.layout.pipe(key), node.layout.log(key), node.own / "s/shm/k/shm"
    )
    program = daemon_process.ControlProgram(search(real))

    def answer() -> str | None:
        with contextlib.suppress(daemon_process.ControlOccupied):
            return program.send(daemon_paths, DEFAULTS)
        return None

    return waiting.value(answer, bool, mpsnode.WITHIN_S).split()


#
def test_a_daemon_is_ready_takes_other_limits_is_adopted_and_goes(
    alone: mpsnode.Node, real: nvidia_roots.Node
) -> None:
    flags = "--driver-root=auto", f"--host-root={real.host}"
    first = alone.supervise(*flags)
    previous = alone.serving(0, alone.want(0, gib=20, percentage=40, shm_bytes=1 << 26))
    assert defaults(alone, real) == ["40.0", "20G"]
    assert "Starting control daemon using socket" in alone.control_log(0)
    first.kill()
    first.wait(mpsnode.WITHIN_S)
    later = alone.want(0, gib=3, percentage=70, shm_bytes=1 << 26)
    alone.supervise(*flags)
    after = alone.serving(0, later)
    assert (after.pid, after.problem) == (previous.pid, "")
    assert defaults(alone, real) == ["70.0", "3G"]
    alone.unwant(0)
    waiting.until(lambda: alone.status(0) is None, mpsnode.WITHIN_S)
    assert alone.daemons(0) == ()


def test_nothing_is_written_to_the_drivers_root(
    alone: mpsnode.Node, real: nvidia_roots.Node
) -> None:
    def names() -> list[str]:
        return sorted(str(path) for path in real.host.rglob("*"))

    previous = names()
    alone.supervise("--driver-root=auto", f"--host-root={real.host}")
    alone.serving(0, alone.want(0))
    assert names() == previous


def test_nvidia_smi_says_in_its_own_words_that_there_is_no_driver(real: nvidia_roots.Node) -> None:
    smi = nvidia_smi.NvidiaSmi(driver_root.DriverRoot(search(real), host=real.host))
    with pytest.raises(errors.NodeFault, match=f"exit 9: .*{NO_DRIVER}"):
        smi.set_interval(ids.GpuUuid("GPU-1"), "Long")


def test_programs_linked_to_a_foreign_libc_run_with_it(alone: mpsnode.Node) -> None:
    """The simulated ones, whose driver answers: with clients, and a server of its own."""
    root = alone.own / "driver"
    shutil.copytree(alone.driver_root, root, symlinks=True, copy_function=_link)
    for folder in ("lib", "lib64"):
        shutil.rmtree(root / folder)
    nvidia_roots.lay_foreign_libc(root)
    alone.supervise(f"--driver-root={root}")
    status = alone.serving(0, alone.want(0, gib=7))
    maps = Path(f"/proc/{status.pid}/maps").read_text()
    assert str(root / "usr/lib/x86_64-linux-gnu/libc.so.6") in maps
    _, answer = alone.client(0)
    assert answer["devices"][0]["limit"] == 7 * mpsnode.GIB
    assert status.state is mps_files.State.READY


def _link(source: str, target: str) -> None:
    os.link(source, target, follow_symlinks=False)
