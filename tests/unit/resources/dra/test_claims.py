from driver.resources import quantities
from driver.resources.dra import claims
from tests.support.builders import objects


def allocation(*devices: str | objects.Raw) -> claims.Allocation:
    result = objects.claim(status=objects.allocated("node-a", *devices)).allocation
    assert result is not None
    return result


def test_a_share_is_read_with_its_id_and_what_it_takes() -> None:
    (result,) = allocation(objects.a_share("ts", 7, memory="20Gi")).results
    assert result.share_id.endswith("-000000000007")
    assert result.consumed == {"memory": quantities.parse("20Gi")}


def test_an_allocation_reads_back_as_it_was_written() -> None:
    whole = {
        "device": "gpu-0",
        "request": "gpu/big",
        "adminAccess": True,
        "tolerations": [{"key": "sick", "operator": "Exists", "tolerationSeconds": 5}],
        "bindingConditions": ["Attached"],
        "bindingFailureConditions": ["Broken"],
    }
    result = allocation(whole, objects.a_share("ts", 1, memory="1536Mi"))
    shown = claims.render_allocation(result)
    assert objects.claim(status={"allocation": shown}).allocation == result
    assert (result.results[0].base_request, result.results[0].subrequest) == ("gpu", "big")


def test_share_fields_are_omitted_for_a_whole_device() -> None:
    (shown,) = claims.render_allocation(allocation("gpu-0"))["devices"]["results"]  # type: ignore[index]
    assert shown == {
        "request": "gpu",
        "driver": "gpu.ration.dev",
        "pool": "node-a",
        "device": "gpu-0",
    }


def test_an_allocation_without_a_selector_is_for_every_node() -> None:
    raw = objects.allocated("node-a", "gpu-0")
    del raw["allocation"]["nodeSelector"]
    result = objects.claim(status=raw).allocation
    assert result is not None
    assert result.selector is None
    assert "nodeSelector" not in claims.render_allocation(result)


def test_a_hold_is_told_from_a_pod() -> None:
    pod = claims.Consumer("", "pods", "p", "1")
    hold = claims.Consumer("ration.dev", "holds", "p", "1")
    assert (pod.is_pod, pod.is_hold) == (True, False)
    assert (hold.is_pod, hold.is_hold) == (False, True)


def test_a_claim_of_an_extended_resource_is_told_by_its_annotation() -> None:
    assert objects.extended_resource_claim().for_extended_resources
    assert not objects.claim().for_extended_resources
