"""Reports of a dump, or of a kubeconfig alone: what cannot be known of it is said."""

import json
from pathlib import Path

from driver.cli.reading import local
from driver.controller.waiting import planned
from tests import fleets
from tests.fakes import clock


def missing(folder: Path, message: str) -> list[str]:
    found = fleets.raw()
    for one in found:
        for condition in one.get("status", {}).get("conditions", ()):
            if one["metadata"]["name"] == "big" and "message" in condition:
                condition["message"] = message
    file = folder / "dump.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": found}))
    reports = local.of_file(str(file), "gpu.ration.dev", clock.FakeClock())
    return [*reports.found.objects.missing]


def test_a_pod_that_has_gpus_kept_for_it_is_named(tmp_path: Path) -> None:
    (told,) = missing(tmp_path, f"No node fits. {planned.OWN} 2026-11-22T12:00:00Z: 6 GPUs of a")
    assert told.startswith("GPUs kept for pod nlp/big (backfill)")


def test_where_none_is_nothing_is_missing(tmp_path: Path) -> None:
    assert missing(tmp_path, "No node fits.") == []
