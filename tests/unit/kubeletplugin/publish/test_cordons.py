import pytest

from driver import ids
from driver.devices import cordon, faces
from driver.kube import backoff
from driver.kubeletplugin.publish import cordons, handover, pool_builder
from driver.resources.core import nodes
from driver.resources.publish import cordon_taints as rendering
from tests.fakes import clock as fake_clock
from tests.fakes import plugin_shell

NODE = ids.NodeName("node-a")
FIRST, SECOND = plugin_shell.inventory(2).all_gpus
NAME = faces.device_name(FIRST.pci)


def tainted(annotation: str) -> set[str]:
    """The devices that are published with the cordon's taint."""
    created = cordons.Cordons()
    created.update(nodes.Node(NODE, "uid", cordon=annotation))
    looking = backoff.Backoff(backoff.Pace(2.0, 20.0), lambda: 0.0)
    gpus = plugin_shell.Gpus(plugin_shell.inventory(2))
    sources = pool_builder.Sources(gpus.look, cordon_taints=created.taints)
    devices = pool_builder.PoolBuilder(sources, 60.0, looking, fake_clock.FakeClock())
    devices.refresh()
    publish_options = pool_builder.PublishOptions(
        "gpu.ration.dev", NODE, handover.AllocatorState("controller")
    )
    pool = devices.build(publish_options, ()).pool
    assert pool is not None
    return {
        device.name
        for device in pool.devices
        if any(taint.key == "ration.dev/cordoned" for taint in device.taints)
    }


@pytest.mark.parametrize("how", [NAME, FIRST.uuid, FIRST.pci, f" {NAME} , GPU-elsewhere"])
def test_every_face_of_a_gpu_that_is_named_is_tainted_and_none_of_another(how: str) -> None:
    names = tainted(how)
    assert {faces.gpu_name(name) for name in names} == {NAME}
    assert {NAME, f"{NAME}-mps", f"{NAME}-ts"} <= names


def test_all_is_every_gpu_and_nothing_is_none() -> None:
    both = {NAME, faces.device_name(SECOND.pci)}
    assert {faces.gpu_name(name) for name in tainted("all")} == both
    assert tainted("") == set()
    assert tainted("gpu-0000-ff-00-0") == set()


def test_the_annotation_is_read_from_the_node() -> None:
    meta = {"name": "n", "annotations": {"ration.dev/cordon": "all"}}
    assert nodes.parse({"metadata": meta}).cordon == "all"


def test_written_cordons_are_read_again() -> None:
    assert cordon.render_names({"gpu-b", "all"}) == "all,gpu-b"
    assert cordon.parse_names(cordon.render_names({"gpu-b", "all"})) == {"gpu-b", "all"}
    assert cordon.parse_names(cordon.render_names(())) == frozenset()


def test_the_monitor_of_a_cordoned_gpu_is_no_exception() -> None:
    monitor = faces.monitor_name(NAME)
    assert rendering.taints([FIRST], {NAME})[monitor] == (rendering.TAINT,)
