"""Tests of how the example driver is installed and started on a node."""

from pathlib import Path

from hack.cluster import example_driver, foreign_plugins, guests, layout

FOLDERS = layout.NodeLayout(Path("/lab/n/node-0"))
KUBECONFIG = Path("/lab/n/node-0/config/a.kubeconfig")


def flags(installation: example_driver.Installation) -> dict[str, str]:
    program = Path("/bin/plugin")
    words = example_driver.command(program, FOLDERS, "node-0", installation, KUBECONFIG)
    assert words[0] == str(program)
    pairs = (word.partition("=") for word in words[1:])
    return {flag: value for flag, _, value in pairs}


def test_the_plugin_serves_its_nodes_own_kubelet_and_cdi_folder() -> None:
    result = flags(example_driver.Installation())
    assert result["--node-name"] == "node-0"
    assert result["--kubeconfig"] == str(KUBECONFIG)
    assert result["--cdi-root"] == "/lab/n/node-0/cdi"
    registrar = result["--kubelet-registrar-directory-path"]
    assert registrar == "/lab/n/node-0/kubelet/plugins_registry"
    assert result["--kubelet-plugins-directory-path"] == "/lab/n/node-0/kubelet/plugins"


def test_a_driver_is_called_after_its_profile_unless_it_has_a_name() -> None:
    assert example_driver.Installation().name == "gpu.example.com"
    net = example_driver.Installation(example_driver.Profile.NET)
    assert (net.name, flags(net)["--device-profile"]) == ("net.example.com", "net")
    fabric = example_driver.Installation(example_driver.Profile.NET, "fabric.example.com")
    assert flags(fabric)["--driver-name"] == fabric.name == "fabric.example.com"


def test_devices_partitions_and_further_flags_reach_the_plugin() -> None:
    plain = flags(example_driver.Installation())
    assert plain["--num-devices"] == "8"
    assert plain["--gpu-partitions"] == "0"
    assert plain["--gpu-allow-multiple-allocations"] == "false"
    parts = example_driver.Installation(
        devices=2, partitions=4, shared=True, flags=("--gpu-device-status=true",)
    )
    cut = flags(parts)
    assert cut["--num-devices"] == "2"
    assert cut["--gpu-partitions"] == "4"
    assert cut["--gpu-allow-multiple-allocations"] == "true"
    assert cut["--gpu-device-status"] == "true"


def test_a_plugin_is_registered_once_the_kubelets_metrics_count_it_as_actual() -> None:
    line = 'plugin_manager_total_plugins{socket_path="/lab/gpu.example.com-reg.sock",state="%s"} %d'
    wanted_alone = line % ("desired_state_of_world", 1)
    assert not foreign_plugins.is_registered(wanted_alone, "gpu.example.com")
    both = f"{wanted_alone}\n{line % ('actual_state_of_world', 1)}\n"
    assert foreign_plugins.is_registered(both, "gpu.example.com")
    assert not foreign_plugins.is_registered(both, "net.example.com")
    assert not foreign_plugins.is_registered(line % ("actual_state_of_world", 0), "gpu.example.com")


def test_the_chart_is_rendered_for_the_profile_and_the_drivers_name() -> None:
    cpu = example_driver.Installation(example_driver.Profile.CPU, "cores.example.com")
    assert example_driver.values(cpu) == (
        "--namespace=dra-example-driver",
        "--set=deviceProfile=cpu",
        "--set=driverName=cores.example.com",
    )


def test_all_of_the_chart_but_its_pods_is_applied_in_its_namespace() -> None:
    kinds = ("ServiceAccount", "ClusterRole", "Service", "DaemonSet", "DeviceClass")
    chart: list[guests.Object] = [{"kind": kind, "metadata": {"name": "any"}} for kind in kinds]
    objects = example_driver.installed(chart)
    assert [entry["kind"] for entry in objects] == [
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "DeviceClass",
    ]
    assert objects[0]["metadata"]["name"] == example_driver.NAMESPACE
    assert foreign_plugins.service_account(objects) == "any"
