"""Kubernetes' feature gates of dynamic resource allocation, as its sources state them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

RECORD = Path(__file__).parents[1] / "data" / "kube" / "dra_feature_gates.json"
VERSIONS = ("1.36", "1.37")
_GATE = re.compile(r"^\t(\w+): \{\n((?:\t\t.*\n)+)\t\},", re.MULTILINE)
_SPEC = re.compile(
    r'MustParse\("(\d+)\.(\d+)"\), Default: (\w+), PreRelease: featuregate\.(\w+)'
    r"(?:, LockToDefault: (\w+))?"
)
_NAMES = re.compile(
    r"DRA[A-Z]\w+|DynamicResourceAllocation|KubeletPodResourcesDynamicResources"
    r"|ResourceHealthStatus(?:Message)?"
)
Stages = Mapping[str, Mapping[str, str]]
"""Stage and default by version, by gate."""


def record() -> Stages:
    """Return the recorded gates."""
    stages: Stages = json.loads(RECORD.read_text())["gates"]
    return stages


def source() -> str:
    """Return the file of Kubernetes that the record was read from, within its module."""
    return str(json.loads(RECORD.read_text())["file"])


def module() -> str:
    """Return the module and the version of Kubernetes that the record was read from."""
    return str(json.loads(RECORD.read_text())["module"])


def read(text: str) -> Stages:
    """Read the gates of dynamic resource allocation from `kube_features.go`."""
    return {
        name: {version: _stage(specs, version) for version in VERSIONS}
        for name, specs in sorted(_GATE.findall(text))
        if _NAMES.fullmatch(name) and "MustParse" in specs
    }


def _stage(specs: str, version: str) -> str:
    """Return `GA, locked`, `beta, on`, `alpha, off`; `-` before the gate exists."""
    stage, current = "-", tuple(map(int, version.split(".")))
    for major, minor, default, prerelease, locked in _SPEC.findall(specs):
        if (int(major), int(minor)) <= current:
            state = "locked" if locked == "true" else "on" if default == "true" else "off"
            stage = f"{prerelease if prerelease == 'GA' else prerelease.lower()}, {state}"
    return stage
