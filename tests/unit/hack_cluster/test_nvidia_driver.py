"""Tests of how NVIDIA's driver is started on a node, and of which objects of its chart apply."""

from pathlib import Path

from hack.cluster import foreign_plugins, guests, layout, nvidia_driver

FOLDERS = layout.NodeLayout(Path("/lab/n/node-0"))
KUBECONFIG = Path("/lab/n/node-0/config/gpu.nvidia.com.kubeconfig")
FOLDER = Path("/opt/nvidia")
PROGRAM = FOLDER / "gpu-kubelet-plugin"


def command() -> tuple[str, ...]:
    return nvidia_driver.command(FOLDER, FOLDERS, "node-0", KUBECONFIG)


def flags() -> dict[str, str]:
    words = command()
    pairs = (word.partition("=") for word in words[words.index(str(PROGRAM)) + 1 :])
    return {flag: value for flag, _, value in pairs}


def test_the_plugin_serves_its_nodes_own_kubelet_machine_and_cdi_folder() -> None:
    result = flags()
    assert result["--node-name"] == "node-0"
    assert result["--kubeconfig"] == str(KUBECONFIG)
    assert result["--cdi-root"] == "/lab/n/node-0/cdi"
    assert result["--container-driver-root"] == "/lab/n/node-0/gpu/driver-root"
    assert result["--nvidia-driver-root"] == result["--container-driver-root"]
    registrar = result["--kubelet-registrar-directory-path"]
    assert registrar == "/lab/n/node-0/kubelet/plugins_registry"
    assert result["--kubelet-plugins-directory-path"] == "/lab/n/node-0/kubelet/plugins"


def test_the_process_sees_the_simulated_machines_proc_and_sys() -> None:
    words = command()
    assert words[:3] == ("unshare", "--mount", "--propagation=private")
    start = words.index("/lab/n/node-0/gpu/host-root")
    assert words[start + 1] == "/lab/n/node-0/gpu/driver-root/usr/bin/nvidia-smi"
    assert words[start + 2] == "/opt/nvidia/templates"
    views = words[start + 3 : words.index("--", start)]
    assert set(views) == {"proc/driver", "proc/devices", "proc/sys/kernel/random/boot_id", "sys"}


def test_feature_gates_reach_the_plugin_by_its_variable() -> None:
    assert nvidia_driver.environment(()) == {}
    both = nvidia_driver.environment(("DynamicMIG", "TimeSlicingSettings"))
    assert both["FEATURE_GATES"] == "DynamicMIG=true,TimeSlicingSettings=true"


def test_control_daemons_of_its_mps_are_of_an_image_that_no_kubelet_pulls() -> None:
    assert flags()["--image-name"] == "ration.local/workload:mps"
    assert nvidia_driver.environment(("MPSSupport",))["IMAGE_PULL_POLICY"] == "Never"


def test_all_of_the_chart_but_its_pods_is_applied_with_the_plugins_account() -> None:
    accounts = ("compute-domain-daemon", "nvidia-controller", "nvidia-kubeletplugin")
    chart: list[guests.Object] = [
        *({"kind": "ServiceAccount", "metadata": {"name": name}} for name in accounts),
        {"kind": "DaemonSet", "metadata": {"name": "plugin"}},
        {"kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"}},
    ]
    objects = nvidia_driver.installed(chart)
    kinds = [entry["kind"] for entry in objects]
    assert kinds == ["Namespace", *["ServiceAccount"] * 3, "DeviceClass"]
    account = foreign_plugins.service_account(objects, "-kubeletplugin")
    assert account == "nvidia-kubeletplugin"
