"""A rolling update of the plugin: for a while two processes serve one node."""

import json
import os
import threading

import pytest

from driver.kube import gvr
from driver.kubeletplugin.records import checkpoint
from tests.fakes import battering, publishing, waiting
from tests.fakes.apiserver import server as api_server


@pytest.mark.skipif(os.geteuid() != 0, reason="MIG and device nodes are root's")
def test_a_rolling_update_fails_no_call_and_writes_no_slice(
    battered: battering.Battered, api: api_server.ApiServer
) -> None:
    refs = battered.claims()
    battered.again("prepare", refs)
    slices = api.all(gvr.RESOURCE_SLICES)
    answers: list[str] = []
    stop = threading.Event()

    def ask() -> None:
        """Call the plugin that registered last, as the kubelet does."""
        while not stop.wait(0.02):
            entries = battered.plugin.prepare(*refs)
            answers.extend(entries[ref.uid].error for ref in refs)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        assert battered.roll("second") == 0
        assert battered.roll("third") == 0
        count = len(answers)
        waiting.until(lambda: len(answers) > count + 20)
    finally:
        stop.set()
        asking.join(60)
    assert not asking.is_alive()
    assert set(answers) == {""}
    assert api.all(gvr.RESOURCE_SLICES) == slices
    battered.again("unprepare", refs)
    assert battered.left() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="MIG and device nodes are root's")
def test_a_version_too_old_for_a_record_leaves_the_kubelet_to_the_serving_one(
    battered: battering.Battered,
) -> None:
    refs = battered.claims()
    battered.again("prepare", refs)
    path = battered.own / f"state/claims/{refs[0].uid}.json"
    written, offered, serving = path.read_bytes(), battered.offered(), battered.plugin
    later = {**json.loads(written)["record"], "version": checkpoint.VERSION + 2}
    path.write_bytes(checkpoint.seal(later))
    battered.launch("--instance=older")
    message = f"it has schema {checkpoint.VERSION + 2}"
    waiting.until(lambda: message in battered.log.read_text(), battering.WITHIN_S)
    assert battered.offered() == offered
    assert path.read_bytes() == checkpoint.seal(later)

    path.write_bytes(written)
    waiting.until(lambda: len(battered.offered()) == len(offered) + 1, battering.WITHIN_S)
    assert {entry.error for entry in serving.prepare(*refs).values()} == {""}
    battered.again("unprepare", refs)
    assert battered.left() == []


def shared(api: api_server.ApiServer) -> bool | None:
    """Return whether shares are published; None while there are no devices."""
    results = [device.get("allowMultipleAllocations", False) for device in publishing.devices(api)]
    return any(results) if results else None


@pytest.mark.skipif(os.geteuid() != 0, reason="device nodes are root's")
def test_the_newer_process_publishes_and_the_older_again_once_it_is_killed(
    battered: battering.Battered, api: api_server.ApiServer
) -> None:
    assert shared(api) is True
    battered.start("--instance=second", "--share-domain=none")
    waiting.until(lambda: shared(api) is False, battering.WITHIN_S)
    for entry in api.all(gvr.RESOURCE_SLICES):
        api.remove(gvr.RESOURCE_SLICES, entry["metadata"]["name"])
    waiting.until(lambda: shared(api) is False, battering.WITHIN_S)
    battered.kill()
    waiting.until(lambda: shared(api) is True, battering.WITHIN_S)
    third = battered.start("--instance=third", "--share-domain=none")
    assert third.info.name == battering.DRIVER
    waiting.until(lambda: shared(api) is False, battering.WITHIN_S)
