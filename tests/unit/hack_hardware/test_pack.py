"""The file to carry has the driver's hashed requirements but for a few large ones."""

from hack.hardware import pack

LOCK = (pack.ROOT / "requirements" / "runtime.lock").read_text()


def test_requirements_are_carried_with_their_hashes() -> None:
    lock = "aiohttp==3.1 \\\n    --hash=sha256:a\npyyaml==6.0 ; os \\\n    --hash=sha256:b\n"
    assert pack.carried(lock) == "pyyaml==6.0 ; os \\\n    --hash=sha256:b\n"


def test_omitted_packages_are_requirements_of_the_driver() -> None:
    names = {line.partition("==")[0] for line in LOCK.splitlines() if line[:1].isalnum()}
    assert names >= pack.LEFT_OUT
    assert all(f"{name}==" in pack.carried(LOCK) for name in names - pack.LEFT_OUT)
