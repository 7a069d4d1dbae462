"""Tests of the locks: the installed is the locked, byte for byte.

And the locked is the declared.
"""

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
    found: dict[str, str] = {}
    for block in re.split(r"\n(?=\S)", lock.read_text()):
        if block and not block.startswith("#"):
            name = canonicalize_name(re.split(r"[=\s;\[]", block, maxsplit=1)[0])
            found[name] = found.get(name, "") + block
    return found


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
    extras = [one for of in DECLARED[name] for one in project["optional-dependencies"][of]]
    locked = pins(ROOT / "requirements" / f"{name}.lock")
    for one in map(Requirement, [*project["dependencies"], *extras]):
        text = locked[canonicalize_name(one.name)]
        versions = re.findall(r"==([^\s;\\]+)", text)
        assert all(one.specifier.contains(version) for version in versions[:1]), one


def test_what_is_developed_with_is_what_is_shipped() -> None:
    """The tests' environment has the versions of the image's."""
    shipped = pins(ROOT / "requirements" / "runtime.lock")
    for other in ("dev", "fuzz"):
        locked = pins(ROOT / "requirements" / f"{other}.lock")
        for name, text in shipped.items():
            assert locked[name].split()[0] == text.split()[0]
