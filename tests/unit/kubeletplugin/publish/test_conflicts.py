from driver import ids, reasons
from driver.kubeletplugin.publish import conflicts
from driver.resources.core import nodes
from tests.fakes import strangers

DRIVER = "gpu.ration.dev"


def a_node(resources: dict[str, int] | None = None, **labels: str) -> nodes.Node:
    named = {key.replace("__", "/").replace("_", "."): value for key, value in labels.items()}
    return nodes.Node(ids.NodeName("node-1"), "uid", named, allocatable=resources or {})


def test_alone_on_the_node_nothing_stands_in_the_way() -> None:
    alone = conflicts.ConflictDetector(DRIVER)
    assert alone.node_conflicts(a_node({"cpu": 64000})) == ()
    assert alone.check_name([]) is None


def test_a_device_plugin_is_told_with_what_it_serves_and_what_to_do() -> None:
    served = {"nvidia.com/gpu": 6, "nvidia.com/mig-1g.10gb": 7}
    (problem,) = conflicts.ConflictDetector(DRIVER).node_conflicts(a_node(served))
    assert problem.reason is reasons.Reason.DEVICE_PLUGIN_BESIDE
    assert "(nvidia.com/gpu: 6, nvidia.com/mig-1g.10gb: 7)" in problem.message
    assert "kubectl label node node-1 nvidia.com/gpu.deploy.device-plugin=false" in problem.message
    assert "--beside=device-plugin" in problem.message


def test_a_device_plugin_that_is_allowed_for_is_no_obstacle() -> None:
    allowing = conflicts.ConflictDetector(DRIVER, "device-plugin")
    assert allowing.node_conflicts(a_node({"nvidia.com/gpu": 6})) == ()


def test_a_mig_manager_at_work_is_waited_for_whoever_is_allowed() -> None:
    node = a_node({"nvidia.com/gpu": 6}, nvidia_com__mig_config_state="pending")
    allowing = conflicts.ConflictDetector(DRIVER, "device-plugin")
    (problem,) = allowing.node_conflicts(node)
    assert problem.reason is reasons.Reason.MIG_CONFIG_PENDING
    assert "nvidia.com/mig.config.state is pending" in problem.message
    both = conflicts.ConflictDetector(DRIVER).node_conflicts(node)
    assert [problem.reason.value for problem in both] == ["DevicePluginBeside", "MigConfigPending"]


def test_a_plugin_registered_under_our_name_is_told_by_its_socket() -> None:
    problem = conflicts.ConflictDetector(
        DRIVER, foreign_sockets=lambda: ("/reg/a.sock",)
    ).check_name([])
    assert problem is not None
    assert problem.reason is reasons.Reason.OTHER_DRIVER
    assert "it is registered at /reg/a.sock. Nothing is published; uninstall it" in problem.message


def test_foreign_slices_under_our_driver_name_are_reported_with_a_remedy() -> None:
    slices = [strangers.a_slice(DRIVER, name=f"s-{index}") for index in range(5)]
    problem = conflicts.ConflictDetector(DRIVER).check_name(slices)
    assert problem is not None
    assert "ResourceSlices s-0, s-1, s-2 and 2 more are its own" in problem.message
    assert problem.message.endswith("kubectl delete resourceslices s-0 s-1 s-2")
