"""Tests of a running plugin while the CDI folder, the toolkit and the driver's files change."""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from driver.kubeletplugin.recovery import claim_gc
from driver.runtime.files import container_toolkit
from simulator import layout
from tests.fakes import battering, gpunode, publishing, supervised, toolkits, waiting
from tests.fakes import clock as fake_clock
from tests.fakes.apiserver import server as api_server
from tests.support.builders import allocated_claims

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="MIG and device nodes are root's")


def specs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.json")}


def errors_of(entries: Any) -> list[str]:
    return [entry.error for entry in entries.values()]


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only by a mount, or put a file in its place without that right."""
    mounting = ["mount", "--bind", str(folder), str(folder)]
    if subprocess.run(mounting, check=False, capture_output=True).returncode:
        aside = folder.rename(folder.with_name("aside"))
        folder.write_text("in the way")
        yield
        folder.unlink()
        aside.rename(folder)
        return
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_specs_that_were_wiped_are_back_at_the_repeated_call_of_every_face(
    battered: battering.Battered,
) -> None:
    refs = battered.claims()
    battered.again("prepare", refs)
    previous = specs(battered.own / "cdi")
    shutil.rmtree(battered.own / "cdi")
    battered.again("prepare", refs)
    assert specs(battered.own / "cdi") == previous
    battered.again("unprepare", refs)
    assert battered.left() == []


def test_a_spec_that_was_wiped_is_back_without_a_call_of_the_kubelet() -> None:
    reader = gpunode.FakeReader()
    claim = allocated_claims.an_allocated_claim()
    reader.claims[claim.key] = claim
    with supervised.node() as node, supervised.core(node, reader) as core:
        core.recover()
        core.preparation.prepare(allocated_claims.a_ref(), gpunode.never)
        previous = specs(node.own / "cdi")
        assert len(previous) == 1
        looking = claim_gc.ClaimCollector(core.gc_targets, print, fake_clock.Hasty(), lambda: 0.0)
        stop = threading.Event()
        thread = threading.Thread(target=looking.run, args=(stop,))
        thread.start()
        try:
            for _ in range(3):
                shutil.rmtree(node.own / "cdi")
                waiting.until(lambda: specs(node.own / "cdi") == previous)
        finally:
            stop.set()
            thread.join(10)
        assert not thread.is_alive()


def test_while_the_cdi_folder_cannot_be_written_nothing_is_left_and_then_all_goes(
    battered: battering.Battered,
) -> None:
    cdi = battered.own / "cdi"
    refs = battered.claims()
    battered.again("prepare", refs)
    battered.again("unprepare", refs)
    with read_only(cdi):
        refused = errors_of(battered.plugin.prepare(*refs))
        assert [name for name in refused if str(cdi) not in name] == []
        assert len(refused) == len(refs)
    assert battered.left() == []
    battered.again("prepare", refs)
    previous = specs(cdi)
    with read_only(cdi):
        names = errors_of(battered.plugin.unprepare(*refs))
        assert [name for name in names if str(cdi) not in name] == []
    assert specs(cdi) == previous
    battered.again("unprepare", refs)
    assert battered.left() == []


def test_the_next_spec_has_the_hook_of_the_toolkit_that_is_there_by_then(
    battered: battering.Battered,
) -> None:
    host = layout.Layout(battered.base).host_root
    first, second = (host / path.lstrip("/") for path in container_toolkit.PROGRAMS)

    def hooks() -> set[str]:
        """Programs that the spec of a new claim has run."""
        refs = battered.claims()[:1]
        battered.again("prepare", refs)
        (spec,) = specs(battered.own / "cdi").values()
        battered.again("unprepare", refs)
        return {entry["path"] for entry in json.loads(spec)["containerEdits"].get("hooks", ())}

    assert hooks() == set()
    toolkits.install(first, "1.17.8")
    assert hooks() == {container_toolkit.PROGRAMS[0]}
    toolkits.install(first, "1.19.0")
    assert hooks() == {container_toolkit.PROGRAMS[0]}
    toolkits.install(second, "1.19.0")
    first.unlink()
    assert hooks() == {container_toolkit.PROGRAMS[1]}
    toolkits.install(second, "1.17.7")
    assert hooks() == set()


def test_the_specs_of_running_claims_follow_the_toolkit_without_a_call_of_the_kubelet() -> None:
    reader = gpunode.FakeReader()
    claim = allocated_claims.an_allocated_claim()
    reader.claims[claim.key] = claim
    with supervised.node() as node, supervised.core(node, reader) as core:
        host = layout.Layout(node.base).host_root
        first, second = (host / path.lstrip("/") for path in container_toolkit.PROGRAMS)
        toolkits.install(first, "1.17.8")
        core.recover()
        core.preparation.prepare(allocated_claims.a_ref(), gpunode.never)
        assert core.gc_targets.repair() == ()

        def hooks() -> set[str]:
            (spec,) = specs(node.own / "cdi").values()
            return {entry["path"] for entry in json.loads(spec)["containerEdits"].get("hooks", ())}

        assert hooks() == {container_toolkit.PROGRAMS[0]}
        toolkits.install(second, "1.19.0")
        first.unlink()
        assert core.gc_targets.repair() == ()
        assert hooks() == {container_toolkit.PROGRAMS[1]}


def test_a_late_driver_is_awaited_and_then_used_without_a_restart(
    battered: battering.Battered, api: api_server.ApiServer
) -> None:
    refs = battered.claims()
    root = layout.Layout(battered.base).driver_root
    battered.kill()
    aside = root.rename(root.with_name("not-yet"))
    try:
        battered.start()
        waiting.until(lambda: not publishing.devices(api), battering.WITHIN_S)
        for error in errors_of(battered.plugin.prepare(*refs)):
            assert "DriverNotReady" in error
        assert list((battered.own / "state/claims").glob("*")) == []
    finally:
        aside.rename(root)
    waiting.until(lambda: publishing.devices(api), battering.WITHIN_S)
    battered.again("prepare", refs)
    battered.again("unprepare", refs)
    assert battered.left() == []
