"""Reports of a dump, or of a kubeconfig alone: what cannot be known of it is said."""

import json
from pathlib import Path

import pytest

from driver.cli.sources import local
from driver.scheduling.lifecycle import backfill_plan
from tests.fakes import clock
from tests.support.scenarios import fleets

KEPT = (
    f"No node fits. {backfill_plan.PLAN_SENTENCE} 2026-11-22T12:00:00Z: "
    "6 GPUs of gpu-2.example, 1 GPU of gpu-3"
)


def missing(folder: Path, message: str, *, free_gpus: bool = False) -> list[str]:
    raw = fleets.raw()
    for entry in raw:
        for condition in entry.get("status", {}).get("conditions", ()):
            if entry["metadata"]["name"] == "big" and "message" in condition:
                condition["message"] = message
    return read(folder, raw, free_gpus=free_gpus)


def read(folder: Path, results: list[fleets.Raw], *, free_gpus: bool) -> list[str]:
    file = folder / "dump.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": results}))
    time = clock.FakeClock()
    reports = local.read_file(str(file), "gpu.ration.dev", time, free_gpus=free_gpus)
    return [*reports.cluster.objects.missing]


@pytest.mark.parametrize("free_gpus", [False, True])
def test_a_pod_that_has_gpus_kept_for_it_is_named_with_their_nodes(
    tmp_path: Path, *, free_gpus: bool
) -> None:
    (message,) = missing(tmp_path, KEPT, free_gpus=free_gpus)
    assert message == (
        "which GPUs are kept for pod nlp/big until 2026-11-22T12:00:00Z (backfill, 6 GPUs of "
        "gpu-2.example, 1 GPU of gpu-3): the controller alone knows, and it was not asked "
        "(--source controller asks it); they are shown as free"
    )


def test_a_plan_that_is_over_is_not_told(tmp_path: Path) -> None:
    assert missing(tmp_path, KEPT.replace("2026-11-22", "2026-11-20")) == []


def test_without_a_document_nothing_is_missing(tmp_path: Path) -> None:
    assert missing(tmp_path, "No node fits.") == []


def test_a_gpu_is_called_free_with_the_note_that_it_may_be_kept(tmp_path: Path) -> None:
    (message,) = missing(tmp_path, "No node fits.", free_gpus=True)
    assert message.startswith("whether GPUs shown as free are kept for pods that wait")
    assert "--source controller asks it" in message


def test_without_pending_pods_no_gpu_is_reserved(tmp_path: Path) -> None:
    idle = [entry for entry in fleets.raw() if entry["kind"] != "Pod"]
    assert read(tmp_path, idle, free_gpus=True) == []
