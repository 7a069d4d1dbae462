import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from driver.cli.doctor import host as node_itself
from driver.cli.doctor.checks import findings, host
from driver.cli.lazy import app
from tests.fakes import toolkits
from tests.support import golden

State = findings.State
NUMBERS = {"nvidia0": (195, 0), "nvidiactl": (195, 255), "nvidia-uvm": (511, 0)}


def a_host(folder: Path, *, links: bool = True, kubelet: str = "systemd") -> Path:
    """A node's root, as far as doctor looks at it."""
    for name in ("usr/lib64", "dev/char", "var/run/cdi", "etc/containerd", "var/lib/kubelet"):
        (folder / name).mkdir(parents=True)
    (folder / "usr/lib64/libnvidia-ml.so.1").touch()
    for name, (major, minor) in NUMBERS.items():
        (folder / "dev" / name).touch()
        if links:
            (folder / "dev/char" / f"{major}:{minor}").symlink_to(f"../{name}")
    (folder / "var/lib/kubelet/config.yaml").write_text(f"cgroupDriver: {kubelet}\n")
    (folder / "etc/containerd/config.toml").write_text("  SystemdCgroup = true\n")
    return folder


def found(folder: Path) -> dict[str, findings.Finding]:
    seen = node_itself.collect_host(
        folder, "auto", "gpu-1", lambda path: NUMBERS.get(path.name), toolkits.ask
    )
    return {finding.check: finding for finding in host.examine(seen)}


def test_a_node_as_it_should_be(tmp_path: Path) -> None:
    document = found(a_host(tmp_path))
    assert {finding.state for finding in document.values()} == {State.FINE}
    assert document["driver root"].message == "the driver's libraries are below /"
    assert document["device files"].message == "/dev/nvidiactl, /dev/nvidia-uvm, and 1 GPUs"
    assert document["cgroups"].message == "cgroup v1, driver systemd"
    assert {finding.where for finding in document.values()} == {"gpu-1"}


def test_a_hook_program_is_told_with_its_version_or_why_it_is_not_used(tmp_path: Path) -> None:
    root = a_host(tmp_path)
    assert found(root)["cdi hook"].message == "no nvidia-cdi-hook; none is needed"
    program = root / "usr/bin/nvidia-cdi-hook"
    program.parent.mkdir(parents=True)
    program.write_text("NVIDIA CDI Hook version 1.18.1\n")
    finding = found(root)["cdi hook"]
    assert (finding.state, finding.message) == (
        State.FINE,
        "/usr/bin/nvidia-cdi-hook 1.18.1 is used",
    )
    program.write_text("NVIDIA CDI Hook version 1.16.2\n")
    finding = found(root)["cdi hook"]
    assert finding.state is State.WRONG
    assert "is version 1.16.2; expected 1.17.8 or newer" in finding.message
    assert "update" in finding.fix


def test_without_links_containers_lose_their_gpu(tmp_path: Path) -> None:
    finding = found(a_host(tmp_path, links=False))["dev char"]
    assert (finding.state, "create-dev-char-symlinks" in finding.fix) == (State.WRONG, True)
    assert finding.message.startswith("/dev/char lacks links to nvidia-uvm, nvidia0, nvidiactl: ")


def test_with_cgroupfs_nobody_misses_the_links_but_the_drivers_disagree(tmp_path: Path) -> None:
    document = found(a_host(tmp_path, links=False, kubelet="cgroupfs"))
    assert document["dev char"].state is State.NOTE
    assert (document["cgroups"].state, document["cgroups"].message) == (
        State.WRONG,
        "the kubelet's cgroup driver is cgroupfs, containerd's systemd",
    )


def test_the_device_files_of_a_driver_container_count(tmp_path: Path) -> None:
    inside = a_host(tmp_path / "run/nvidia/driver", links=False)
    (tmp_path / "dev/char").mkdir(parents=True)
    document = found(tmp_path)
    assert inside.is_dir()
    assert document["driver root"].message == "the driver's libraries are below /run/nvidia/driver"
    assert document["device files"].state is State.FINE
    assert document["dev char"].state is State.WRONG


def test_nothing_but_the_answer_is_printed(bare: Path) -> None:
    a_host(bare / "run/nvidia/driver")
    words = ["doctor", "--host", "-o", "json", f"--host-root={bare}"]
    assert json.loads(CliRunner().invoke(app, words).stdout)


def test_cdi_that_is_switched_off_is_wrong(tmp_path: Path) -> None:
    a_host(tmp_path)
    (tmp_path / "etc/containerd/config.toml").write_text("enable_cdi = false\n")
    assert found(tmp_path)["cdi"].state is State.WRONG


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "usr/lib64").mkdir(parents=True)
    return tmp_path


def test_a_machine_without_a_driver_is_told_what_it_lacks(bare: Path) -> None:
    words = [*["doctor", "--host", "--node=gpu-1", "-o", "json"], f"--host-root={bare}"]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 1
    golden.same("doctor-host.json", answer.output.replace(str(bare), "ROOT"))


def test_a_root_that_is_none_is_refused(bare: Path) -> None:
    answer = CliRunner().invoke(app, ["doctor", "--host", f"--host-root={bare / 'none'}"])
    assert (answer.exit_code, answer.output.count("\n")) == (2, 1)
