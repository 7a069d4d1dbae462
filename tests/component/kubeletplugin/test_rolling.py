"""A rolling update of the plugin: for a while two processes serve one node."""

import os
import threading

import pytest

from driver.kube import resource
from tests.fakes import battering, waiting
from tests.fakes.apiserver import server as api_server


@pytest.mark.skipif(os.geteuid() != 0, reason="MIG and device nodes are root's")
def test_a_rolling_update_fails_no_call_and_writes_no_slice(
    battered: battering.Battered, api: api_server.ApiServer
) -> None:
    refs = battered.claims()
    battered.again("prepare", refs)
    slices = api.all(resource.RESOURCE_SLICES)
    answers: list[str] = []
    stop = threading.Event()

    def ask() -> None:
        """As the kubelet does: of the plugin that registered last."""
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
    assert api.all(resource.RESOURCE_SLICES) == slices
    battered.again("unprepare", refs)
    assert battered.left() == []
