"""What the manifests must agree on, or the API server refuses more than we mean."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "manifests"


def documents() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(FOLDER.glob("*.yaml")):
        for one in yaml.safe_load_all(path.read_text()):
            yield path.name, one


def test_what_a_policy_reads_is_installed_before_it() -> None:
    there: dict[tuple[str, str, str], str] = {}
    for path, one in documents():
        meta = one["metadata"]
        there[one["kind"], meta.get("namespace", ""), meta["name"]] = path
    for path, one in documents():
        if one["kind"] == "ValidatingAdmissionPolicyBinding" and "paramRef" in one["spec"]:
            (policy,) = (p for _, p in documents() if p["metadata"]["name"] == one["spec"]["policyName"]
                         and p["kind"] == "ValidatingAdmissionPolicy")  # fmt: skip
            wanted = one["spec"]["paramRef"]
            key = (policy["spec"]["paramKind"]["kind"], wanted["namespace"], wanted["name"])
            assert there[key] < path
