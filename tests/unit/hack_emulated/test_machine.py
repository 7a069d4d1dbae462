import shutil

import pytest

from hack.cluster import errors, shell
from hack.emulated import machine


def test_a_machine_without_the_tools_is_told_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "unshare" else f"/bin/{name}")
    with pytest.raises(errors.ClusterError, match=r"^this machine has no unshare$"):
        machine.emulator()


def test_a_kernel_without_emulators_of_a_namespace_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(argv: tuple[str, ...]) -> str:
        raise errors.CommandFailedError(argv, 32, "mount: permission denied\n")

    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(shell, "run", refuse)
    with pytest.raises(errors.ClusterError, match=r"takes Linux 6\.7 .*: mount: permission denied"):
        machine.emulator()
