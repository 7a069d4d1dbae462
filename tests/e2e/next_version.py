"""The next version of this checkout: another number, and more in the files that it leaves on nodes.

Until there are two releases: the same code, whose records are of the next schema (ADR 16) and,
as the files for the MPS supervisor, hold a field that this checkout does not know.
"""

import re
import shutil
from pathlib import Path

from driver.kubeletplugin.records import checkpoint
from hack.image import build

SCHEMA = checkpoint.VERSION + 1
TAG = "next"
IMAGE = f"ration.local/driver:{TAG}"
_PARTS = (
    "driver",
    "deploy/helm/ration",
    "pyproject.toml",
    "README.md",
    "requirements/runtime.lock",
    "deploy/images/left-out",
)
_NUMBER = "99.0.0"
_CHANGES = {
    "pyproject.toml": {r'^version = ".+"$': f'version = "{_NUMBER}"'},
    "deploy/helm/ration/Chart.yaml": {
        r"^version: .+$": f"version: {_NUMBER}",
        r"^appVersion: .+$": f"appVersion: {_NUMBER}",
    },
    "driver/kubeletplugin/records/checkpoint.py": {
        r"^VERSION = \d+$": f"VERSION = {SCHEMA}",
        r'^    pod_claim: str = ""$': '    pod_claim: str = ""\n    later: str = "a claim"',
    },
    "driver/devices/mps_files.py": {
        r"^    shm_bytes: Mebibytes \| None = None$": (
            '    shm_bytes: Mebibytes | None = None\n    later: str = "a daemon"'
        ),
    },
}


def write(folder: Path) -> Path:
    """The next version's sources below `folder`; its chart."""
    for part in _PARTS:
        source, target = build.CHECKOUT / part, folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    for name, changes in _CHANGES.items():
        text = (folder / name).read_text()
        for old, new in changes.items():
            text, count = re.subn(old, new, text, flags=re.MULTILINE)
            assert count == 1, f"{name} has {count} lines like {old}"
        (folder / name).write_text(text)
    return folder / "deploy/helm/ration"
