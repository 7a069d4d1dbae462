"""Cases of the test table of kube-scheduler's allocator, recorded by the table itself.

The table is code of an internal package of k8s.io/dynamic-resource-allocation, so a copy of the
module in a temporary folder is compiled with `record_test.go` of this folder, which writes down
what each case asks and what the allocator answers. Nothing of it is part of this repository.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.cluster import shell, toolchain, versions
from tests.oracle import scenarios

Raw = dict[str, Any]
MODULE = "k8s.io/dynamic-resource-allocation"
_FOLDER = Path(__file__).parent
_RECORDER = _FOLDER / "record_test.go"
_GO_MOD = _FOLDER.parent / "go.mod"
_TABLE = Path("structured/internal/allocatortesting/allocator_testing.go")
_PACKAGE = Path("structured/internal/experimental")
_LOOP = "\tfor name, tc := range testcases {\n\t\tt.Run(name, func(t *testing.T) {\n"
_RECORDING = "cases.jsonl"
_NOT_ANSWERED = ("context deadline exceeded", "context canceled")


@dataclass(frozen=True, slots=True)
class Case:
    """One case: `features` are the gates that are on; `fits` is the allocator's answer."""

    name: str
    features: frozenset[str]
    world: scenarios.World
    fits: bool


def load() -> tuple[Case, ...]:
    """Return the cases with claims, each name once; built and recorded now if not in the cache."""
    recording = toolchain.keep(_cached(), _record) / _RECORDING
    raw_cases = [json.loads(line) for line in recording.read_text().splitlines()]
    gates = sorted({gate for raw in raw_cases for gate in _gates(raw)})
    by_name = {
        raw["name"]: _case(raw, gates)
        for raw in reversed(raw_cases)
        if raw["claims"] and not raw["error"].endswith(_NOT_ANSWERED)
    }
    return tuple(by_name[name] for name in sorted(by_name))


def _cached() -> Path:
    parts = (_RECORDER.read_bytes(), Path(__file__).read_bytes(), _GO_MOD.read_bytes())
    return toolchain.cache_root() / "tools" / f"upstream-table-{versions.cache_key(parts)}"


def _record(folder: Path) -> None:
    """Write the recording: a second after a minute of compiling on one CPU."""
    command = ("go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", MODULE)
    shell.run(("go", "mod", "download", MODULE), cwd=_FOLDER.parent)
    source = Path(shell.run(command, cwd=_FOLDER.parent).strip())
    with tempfile.TemporaryDirectory() as scratch:
        module = Path(scratch) / "module"
        shutil.copytree(source, module, copy_function=shutil.copyfile)
        for path in (module, *module.rglob("*/")):
            path.chmod(0o755)
        _expose_names(module / _TABLE)
        shutil.copyfile(_RECORDER, module / _PACKAGE / _RECORDER.name)
        environment = {**os.environ, "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
        environment["RATION_TABLE"] = str(folder / _RECORDING)
        test = ("go", "test", "-count=1", "-run=TestRecord", f"./{_PACKAGE}")
        shell.run(test, cwd=module, env=environment)


def _expose_names(table: Path) -> None:
    """Have the table's loop publish the name of the case that runs."""
    text = table.read_text()
    if text.count(_LOOP) != 1:
        raise ValueError(f"{table.name}: the loop over the cases is not where it was")
    text = text.replace(_LOOP, f"{_LOOP}\t\t\tCaseName = name\n")
    table.write_text(f"{text}\n// CaseName is the case that runs.\nvar CaseName string\n")


def _case(raw: Raw, gates: Sequence[str]) -> Case:
    """Return a case; objects get the types, names and UIDs that the API server gives them."""
    is_on = frozenset(_gates(raw))
    cluster = scenarios.Cluster(
        nodes={raw["node"]: raw["labels"] or {}},
        slices=[
            _object("ResourceSlice", item, f"{item['metadata']['name']}-{number}")
            for number, item in enumerate(raw["slices"] or ())
        ],
        classes=[
            _object("DeviceClass", item, item["metadata"]["name"]) for item in raw["classes"] or ()
        ],
        allocated=_allocated_claims(raw),
        features={gate: gate in is_on for gate in gates},
    )
    claims = tuple(
        _object("ResourceClaim", item, f"{item['metadata']['name']}-{number}")
        for number, item in enumerate(raw["claims"])
    )
    return Case(raw["name"], is_on, scenarios.World(cluster, claims), bool(raw["allocations"]))


def _gates(raw: Raw) -> list[str]:
    """Return the gates that are on; two that go together are named as one."""
    return [gate.partition("+")[0] for gate in raw["features"]]


def _object(kind: str, body: Raw, name: str) -> Raw:
    meta = {**body["metadata"], "name": name, "uid": f"uid-of-{name}"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, **body, "metadata": meta}


def _allocated_claims(raw: Raw) -> list[Raw]:
    """Return a claim for each device and share in use, with all capacity that is consumed."""
    consumed = {_key(device): device["consumedCapacity"] for device in raw["capacity"] or ()}
    shares = [
        device | {"consumedCapacity": consumed.pop(_key(device), {})}
        for device in raw["shares"] or ()
    ]
    shares += [
        {"driver": driver, "pool": pool, "device": name, "consumedCapacity": amounts}
        | {"shareID": f"00000000-0000-4000-8000-{number:012d}"}
        for number, ((driver, pool, name), amounts) in enumerate(consumed.items())
    ]
    return [
        _allocated_claim(f"in-use-{number}", {"request": "r", **device})
        for number, device in enumerate((*(raw["allocated"] or ()), *shares))
    ]


def _allocated_claim(name: str, result: Raw) -> Raw:
    requests = [{"name": "r", "exactly": {"deviceClassName": "any"}}]
    body = {
        "metadata": {"name": name, "namespace": "in-use"},
        "spec": {"devices": {"requests": requests}},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }
    return _object("ResourceClaim", body, name)


def _key(device: Raw) -> tuple[str, str, str]:
    return device["driver"], device["pool"], device["device"]
