"""Where the files of a release come from: an in-toto statement with SLSA's provenance, v1.

https://in-toto.io/Statement/v1 and https://slsa.dev/provenance/v1 define the fields.
"""

import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from hack.cluster import shell
from hack.release import checksums

ROOT = Path(__file__).resolve().parents[2]
BUILD_TYPE = "https://ration.dev/release/v1"
"""`make release` of the commit below, with the locks below, by the interpreter below."""
_LOCKS = ("requirements/bootstrap.lock", "requirements/runtime.lock", "requirements/release.lock")


def write(path: Path, version: str) -> None:
    """Write the statement over all files that lie beside `path`."""
    others = [one for one in sorted(path.parent.iterdir()) if one != path]
    path.write_text(json.dumps(statement(others, version), indent=2) + "\n")


def statement(files: Sequence[Path], version: str) -> Mapping[str, object]:
    """Return the statement: subjects by digest, the commit, the locks, the interpreter."""
    commit, changed = _git("rev-parse", "HEAD"), _git("status", "--porcelain")
    sources = [
        {"name": "ration", "digest": {"gitCommit": commit}},
        *({"name": name, "digest": {"sha256": checksums.sha256(ROOT / name)}} for name in _LOCKS),
    ]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": one.name, "digest": {"sha256": checksums.sha256(one)}} for one in files
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"version": version, "uncommittedChanges": bool(changed)},
                "internalParameters": {
                    "python": platform.python_version(),
                    "libc": " ".join(platform.libc_ver()),
                    "machine": platform.machine(),
                },
                "resolvedDependencies": sources,
            },
            "runDetails": {"builder": {"id": "https://ration.dev/release/by-hand"}},
        },
    }


def _git(*words: str) -> str:
    return shell.run(("git", "-C", str(ROOT), *words)).strip()
