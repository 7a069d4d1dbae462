import base64
import json
import tomllib
from pathlib import Path

from hack.cluster import argv, cgroups, configs, layout, plan, state

WHERE = layout.Layout(Path("/somewhere/checkout"))
NODE = state.NodeState(
    name="node-1",
    index=1,
    machine="hgx-h100",
    allocator=state.Allocator.SCHEDULER,
    labels={"zone": "a"},
    taints=("dedicated=x:NoSchedule",),
)
FOLDERS = WHERE.node("node-1")
PORTS = {
    **{name: 21000 + number for number, name in enumerate(plan.CORE_LISTENERS)},
    "plugin.node-1": 21100,
    "controller-0": 21101,
    "controller-0-page": 21102,
}


def test_containerd_reads_its_node_s_cdi_folder_and_nothing_of_the_machine() -> None:
    text = configs.containerd(FOLDERS, WHERE.shims, Path("/r/runc"), Path("/c/cni"), "overlayfs")
    document = tomllib.loads(text)
    runtime = document["plugins"]["io.containerd.cri.v1.runtime"]
    assert document["version"] == 3
    assert runtime["cdi_spec_dirs"] == [str(FOLDERS.cdi)]
    assert runtime["restrict_oom_score_adj"] is True
    assert runtime["containerd"]["runtimes"]["runc"]["options"]["BinaryName"] == "/r/runc"
    images = document["plugins"]["io.containerd.cri.v1.images"]
    assert images["pinned_images"]["sandbox"] == configs.PAUSE_IMAGE


def test_the_kubelet_keeps_its_pods_below_the_cluster_s_own_group() -> None:
    group = cgroups.pods_group(WHERE.tag, "node-1")
    document = configs.kubelet(NODE, FOLDERS, Path("/ca.pem"), 21050, group)
    assert document["cgroupRoot"] == f"/ration-{WHERE.tag}/pods/node-1"
    assert document["address"] == plan.node_address(1)
    assert document["registerWithTaints"] == [
        {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    ]


def test_a_node_carries_its_machine_beside_its_own_labels() -> None:
    assert (
        configs.node_labels(NODE)
        == "nvidia.com/gpu.present=true,ration.dev/machine=hgx-h100,zone=a"
    )


def test_a_kubeconfig_names_the_server_and_trusts_only_its_authority() -> None:
    document = configs.kubeconfig("https://a:1", b"authority", {"tokenFile": "/t"})
    text = json.loads(configs.yaml(document))
    cluster = text["clusters"][0]["cluster"]
    assert cluster["server"] == "https://a:1"
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"authority"
    assert text["users"][0]["user"] == {"tokenFile": "/t"}


def test_the_pod_network_keeps_its_leases_in_the_node_s_folder() -> None:
    document = configs.network("n", "198.18.1.0/24", Path("/home/run"))
    text = json.loads(configs.yaml(document))
    assert text["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "198.18.1.0/24"}]]
    assert text["plugins"][0]["ipam"]["dataDir"] == "/home/run"


def test_the_plugin_is_told_every_folder_of_its_node() -> None:
    words = argv.plugin("python", FOLDERS, NODE, PORTS)
    flags = dict(zip(words[3::2], words[4::2], strict=True))
    assert words[:3] == ("python", "-m", "driver.kubeletplugin")
    assert flags["--kubelet-root"] == str(FOLDERS.kubelet)
    assert flags["--driver-root"] == f"{FOLDERS.gpu}/driver-root"
    assert flags["--allocator"] == "scheduler"
    assert flags["--metrics-address"] == "127.0.0.1:21100"


def test_a_controller_is_known_by_its_component_name() -> None:
    words = argv.controller("python", WHERE, "controller-0", PORTS)
    assert words[words.index("--identity") + 1] == "controller-0"
    assert words[words.index("--namespace") + 1] == "ration-system"
    assert words[words.index("--web-address") + 1] == "127.0.0.1:21102"


def test_a_plugin_s_token_is_bound_to_its_node() -> None:
    words = argv.plugin_token("node-1")
    assert {"--bound-object-kind=Node", "--bound-object-name=node-1"} <= set(words)


def test_the_node_of_a_proxy_is_read_back_from_its_command() -> None:
    assert argv.proxy_node(argv.kube_proxy(Path("/p"), WHERE, "node-1")) == "node-1"


def test_feature_gates_become_one_flag_and_none_without_any() -> None:
    assert argv.feature_gates({"B": False, "A": True}) == ("--feature-gates=A=true,B=false",)
    assert argv.feature_gates({}) == ()


def test_the_longest_socket_of_a_node_fits_into_107_bytes() -> None:
    folders = WHERE.node("n" * plan.LONGEST_NODE_NAME)
    socket = folders.kubelet / "plugins_registry" / "gpu.ration.dev-reg.sock"
    assert len(str(socket)) <= 107
    assert len(str(WHERE.shims)) <= 42


def test_the_api_server_writes_down_what_our_accounts_ask_and_nobody_else() -> None:
    document = json.loads(configs.yaml(configs.audit("ours")))
    first, last = document["rules"]
    assert (first["level"], first["userGroups"]) == ("Metadata", ["system:serviceaccounts:ours"])
    assert last == {"level": "None"}
    command = argv.kube_apiserver(Path("/bin/kube-apiserver"), WHERE, PORTS)
    assert f"--audit-log-path={WHERE.audit}" in command
    assert {"--audit-log-maxsize=16", "--audit-log-maxbackup=4"} <= {*command}
