"""Tests that the installed packages are the locked ones, and the locked the declared ones."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
DECLARED = {"runtime": (), "dev": ("dev",), "fuzz": ("fuzz",)}


def pins(lock: Path) -> dict[str, str]:
    """Each package's lines, by its name."""
    result: dict[str, str] = {}
    for block in re.split(r"\n(?=\S)", lock.read_text()):
        if block and not block.startswith("#"):
            name = canonicalize_name(re.split(r"[=\s;\[]", block, maxsplit=1)[0])
            result[name] = result.get(name, "") + block
    return result


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_pin_is_of_one_version_and_hashed(lock: Path) -> None:
    assert pins(lock)
    for name, text in pins(lock).items():
        assert re.match(r"\S+==\S+", text), name
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", text), name
        assert "://" not in text, f"{name} is of no index"


@pytest.mark.parametrize("name", DECLARED)
def test_a_lock_holds_what_is_declared_within_its_bounds(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [
        entry for owner in DECLARED[name] for entry in project["optional-dependencies"][owner]
    ]
    locked = pins(ROOT / "requirements" / f"{name}.lock")
    for requirement in map(Requirement, [*project["dependencies"], *extras]):
        text = locked[canonicalize_name(requirement.name)]
        versions = re.findall(r"==([^\s;\\]+)", text)
        assert all(requirement.specifier.contains(version) for version in versions[:1]), requirement


def test_development_and_runtime_locks_agree() -> None:
    """The tests' environment has the versions of the image's."""
    shipped = pins(ROOT / "requirements" / "runtime.lock")
    for other in ("dev", "fuzz"):
        locked = pins(ROOT / "requirements" / f"{other}.lock")
        for name, text in shipped.items():
            assert locked[name].split()[0] == text.split()[0]
