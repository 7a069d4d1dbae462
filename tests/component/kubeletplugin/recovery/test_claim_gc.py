"""Reclaiming with what it runs on: threads, an API server over HTTP, NVML, files."""

import threading
from pathlib import Path

from driver import clock
from driver.devices import mps_files
from driver.kube import client, gvr
from driver.kubeletplugin import ports
from driver.kubeletplugin.nvml import library as nvml
from driver.kubeletplugin.nvml.queries import processes as gpu_processes
from driver.kubeletplugin.plan import planner
from driver.kubeletplugin.prepare import mps_client
from driver.kubeletplugin.records import checkpoint, claims_api
from driver.kubeletplugin.recovery import claim_gc
from simulator import codes, control, layout
from tests.fakes import clock as fake_clock
from tests.fakes import gpunode, waiting
from tests.fakes.apiserver import server as api_server
from tests.support.builders import allocated_claims

RAW = {
    "metadata": {"name": "one", "namespace": "default", "uid": allocated_claims.UID},
    "spec": {"devices": {}},
}


def test_a_claim_that_is_deleted_on_the_server_is_released_by_the_thread(
    api: api_server.ApiServer, kube: client.KubeClient, tmp_path: Path
) -> None:
    world = gpunode.GpuNode(tmp_path / "node")
    plugin = world.process()
    ref = world.allocate(allocated_claims.an_allocated_claim())
    assert isinstance(plugin.preparer.prepare(ref, gpunode.never), ports.Prepared)
    claim = api.put(gvr.RESOURCE_CLAIMS, RAW)
    rounds = threading.Semaphore(0)
    messages: list[str] = []

    def mend() -> tuple[str, ...]:
        rounds.release()
        return plugin.mend()

    watched = claim_gc.GcTargets(
        plugin.executor.records.list_records,
        claims_api.KubeClaimReader(kube),
        lambda _: "",
        plugin.preparer.unprepare,
        mend,
    )
    stop = threading.Event()
    looking = claim_gc.ClaimCollector(watched, messages.append, fake_clock.Hasty(), lambda: 0.0)
    thread = threading.Thread(target=looking.run, args=(stop,))
    thread.start()
    try:
        for _ in range(4):
            assert rounds.acquire(timeout=10)
        assert world.files()
        assert not messages
        kube.delete(gvr.RESOURCE_CLAIMS, "one", "default", uid=claim["metadata"]["uid"])
        waiting.until(lambda: messages, within_s=10)
        assert not world.files()
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()
    assert allocated_claims.UID in messages[0]


def test_many_threads_that_meet_a_damaged_record_move_it_aside_once(tmp_path: Path) -> None:
    plugins = [checkpoint.Checkpoint(tmp_path, "boot-1") for _ in range(2)]
    path = tmp_path / f"{allocated_claims.UID}.json"
    failures: list[BaseException] = []
    for number in range(30):
        path.write_bytes(b"{")
        start = threading.Barrier(8)

        def meet(which: int, start: threading.Barrier = start) -> None:
            start.wait(5)
            try:
                assert plugins[which % 2].read(allocated_claims.UID) is None
            except BaseException as e:  # noqa: BLE001 - shown below
                failures.append(e)

        threads = [threading.Thread(target=meet, args=(which,)) for which in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert not failures
        assert len(list(tmp_path.glob("*.damaged-*"))) == number + 1
    record = plugins[0].write_started(allocated_claims.a_ref(), planner.Plan((), ()))
    assert plugins[1].list_records() == (record,)


def test_the_processes_of_a_gpu_are_counted_by_nvml(
    node_layout: layout.Layout, library: nvml.NvmlLibrary
) -> None:
    first, second = library.inventory().gpus[:2]
    on_gpus = gpu_processes.NvmlProcesses(library.session)
    assert on_gpus.count(first.uuid) == 0
    for pid in (4711, 4712):
        values = (codes.WHOLE_GPU, codes.WHOLE_GPU)
        control.send(node_layout.base, "process", first.uuid, *map(str, (pid, 1 << 30, *values)))
    assert (on_gpus.count(first.uuid), on_gpus.count(second.uuid)) == (2, 0)


def test_a_daemon_is_asked_for_by_a_file_without_waiting(tmp_path: Path) -> None:
    door = mps_client.MpsClient(tmp_path, "boot-1", clock.SystemClock())
    assert door.desired_keys() == ()
    desired = mps_files.Desired(key="GPU-1", devices=("GPU-1",), pinned_memory=(mps_files.MIB,))
    door.request(desired)
    assert door.desired_keys() == ("GPU-1",)
    assert mps_files.Layout(tmp_path).desired("GPU-1").read_bytes() == desired.render()
