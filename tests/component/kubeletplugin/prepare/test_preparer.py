"""The whole core on a simulated machine: its library, its driver root, its device nodes."""

import json
import threading
from pathlib import Path

import pytest

from driver import clock, ids
from driver.kubeletplugin import ports
from driver.kubeletplugin.cdi import metadata_files, model, spec_writer, store
from driver.kubeletplugin.cdi.driver import files as driver_files
from driver.kubeletplugin.host import capabilities, discovery, driver_root, locks
from driver.kubeletplugin.nvml import library as nvml
from driver.kubeletplugin.prepare import executor
from driver.kubeletplugin.prepare import preparer as claim_preparer
from driver.kubeletplugin.records import checkpoint, tombstones
from driver.kubeletplugin.recovery import recovery
from driver.runtime.files import boot_id
from simulator import layout
from tests.fakes import gpunode
from tests.support.builders import allocated_claims


def test_a_claim_is_prepared_recovered_and_unprepared(
    node_layout: layout.Layout, library: nvml.NvmlLibrary
) -> None:
    if not (node_layout.driver_root / "dev/nvidia3").is_char_device():
        pytest.skip("this user may not make device nodes")
    gpus = discovery.Discovery(library)
    gpus.refresh()
    kind = model.cdi_kind("gpu.ration.dev")
    cdi = node_layout.base / "cdi"
    specs = spec_writer.CdiSpecWriter(
        kind,
        gpus,
        driver_files.DriverFiles(
            driver_root.DriverRoot(node_layout.driver_root), node_layout.host_root
        ),
        spec_writer.ClaimFiles(
            store.SpecStore(cdi, kind), metadata_files.MetadataFiles(node_layout.base / "told")
        ),
        capabilities.Capabilities(node_layout.host_root),
    )
    records = checkpoint.Checkpoint(
        node_layout.base / "claims", boot_id.read_boot_id(node_layout.host_root)
    )
    acting = executor.Executor(records, specs)
    holding = locks.Locks(node_layout.base / "locks", clock.SystemClock())
    reader = gpunode.FakeReader()
    claim = allocated_claims.an_allocated_claim(allocated_claims.a_result("gpu-0000-86-00-0"))
    reader.claims[claim.key] = claim
    let_go = tombstones.Tombstones(clock.SystemClock())
    node_scope = claim_preparer.NodeScope(allocated_claims.NODE)
    preparer = claim_preparer.Preparer(node_scope, reader, gpus, acting, holding, let_go)

    assert isinstance(preparer.prepare(allocated_claims.a_ref(), gpunode.never), ports.Prepared)
    (path,) = cdi.iterdir()
    (device,) = json.loads(path.read_bytes())["devices"]
    (device_node,) = device["containerEdits"]["deviceNodes"]
    assert (device_node["path"], device_node["major"], device_node["minor"]) == (
        "/dev/nvidia3",
        195,
        3,
    )
    path.unlink()
    assert recovery.recover(acting, holding).restored == [allocated_claims.UID]
    assert preparer.unprepare(allocated_claims.a_ref()) is None
    assert [*cdi.iterdir(), *(node_layout.base / "claims").iterdir()] == []


def test_exactly_one_of_many_concurrent_claims_gets_a_gpu(tmp_path: Path) -> None:
    world = gpunode.GpuNode(tmp_path)
    # Two plugins, as in a rolling update: they share folders and nothing else.
    plugins = [world.process(), world.process()]
    refs = [
        world.allocate(
            allocated_claims.an_allocated_claim(uid=ids.ClaimUid(f"uid-{n}"), name=f"claim-{n}")
        )
        for n in range(8)
    ]
    answers: list[ports.Prepared | ports.Refused] = []

    def work(number: int) -> None:
        preparer = plugins[number % 2].preparer
        answers.append(preparer.prepare(refs[number], gpunode.never))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert len(answers) == 8
    assert sum(isinstance(answer, ports.Prepared) for answer in answers) == 1
    assert len(list(world.cdi.iterdir())) == len(list(world.records.iterdir())) == 1
