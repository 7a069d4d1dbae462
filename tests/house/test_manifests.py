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
    there = {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): (path, one)
        for path, one in documents()
    }
    for path, one in documents():
        if one["kind"] != "ValidatingAdmissionPolicyBinding" or "paramRef" not in one["spec"]:
            continue
        _, policy = there["ValidatingAdmissionPolicy", "", one["spec"]["policyName"]]
        kind, wanted = policy["spec"]["paramKind"]["kind"], one["spec"]["paramRef"]
        before, _ = there[kind, wanted["namespace"], wanted["name"]]
        assert before < path
