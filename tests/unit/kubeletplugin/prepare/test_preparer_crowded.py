import json
from pathlib import Path

from driver.kubeletplugin import ports
from tests.fakes import crowded, gpunode
from tests.support.builders import allocated_claims


def test_the_largest_claim_is_prepared_and_each_request_gets_its_own_device(
    tmp_path: Path,
) -> None:
    node = crowded.node(tmp_path)
    process, ref = node.process(), allocated_claims.a_ref()
    answer = process.preparer.prepare(ref, gpunode.never)
    assert isinstance(answer, ports.Prepared), answer
    claim = crowded.claim([device.device for device in answer.devices])
    expected = claim["status"]["allocation"]["devices"]["results"]
    assert [device.request for device in answer.devices] == [entry["request"] for entry in expected]
    assert len({device.device for device in answer.devices}) == crowded.RESULTS
    record = process.executor.records.read(ref.uid)
    assert record is not None
    assert record.steps == ()
    spec = json.loads(node.spec_path().read_bytes())
    opened = {
        device["name"]: tuple(node["path"] for node in device["containerEdits"]["deviceNodes"])
        for device in spec["devices"]
    }
    assert len(opened) == len(set(opened.values())) == crowded.RESULTS
    assert all(len(paths) == 3 for paths in opened.values())
    assert process.preparer.prepare(ref, gpunode.never) == answer
    assert process.preparer.unprepare(ref) is None
    assert node.files() == {}


def test_a_mistake_in_the_last_of_so_many_documents_is_named(tmp_path: Path) -> None:
    node = crowded.node(tmp_path)
    body = crowded.claim(["gpu-0000-53-00-0-mig-1g10gb-0"])
    body["status"]["allocation"]["devices"]["config"][-1]["opaque"]["parameters"]["sharin"] = {}
    node.reader = crowded.Reader(json.dumps(body).encode())
    answer = node.process().preparer.prepare(allocated_claims.a_ref(), gpunode.never)
    assert isinstance(answer, ports.Refused)
    assert "config[31].opaque.parameters.sharin: is not a field" in answer.message
