"""The pods: what they are told, what they may do."""

import json
from typing import Any, TypeVar

import pytest
import yaml

from driver.api import managed_drivers, offerings, workload_mix
from driver.controller.config import ControllerConfig
from driver.devices import faces
from driver.kubeletplugin.config import PluginConfig
from driver.mps.config import SupervisorConfig
from driver.resources import gpu_nodes
from driver.runtime import settings
from driver.scheduling.lifecycle import backfill_plan
from driver.webhook.config import AdmissionConfig
from hack.cluster import errors
from tests.contract.chart import rendered
from tests.contract.chart.rendered_workloads import EVERYTHING, container, workload

pytestmark = rendered.BUILDS_HELM
_Settings = TypeVar("_Settings", bound=settings.ProcessSettings)


COMPONENTS = ("controller", "kubeletplugin", "mps", "admission")


def read(model: type[_Settings], component: str, *flags: str) -> _Settings:
    return model.read(container(rendered.objects(*flags), component)["args"])


@pytest.fixture(autouse=True)
def node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_NAME", "node-a")


@pytest.mark.parametrize(
    ("model", "component", "chart_says"),
    [
        (
            ControllerConfig,
            "controller",
            {"metrics_address": "0.0.0.0:8080", "identity": "$(POD_NAME)"},
        ),
        (
            PluginConfig,
            "kubeletplugin",
            {"metrics_address": "0.0.0.0:8080", "instance": "$(POD_UID)", "host_root": "/host"},
        ),
        (SupervisorConfig, "mps", {"metrics_address": "0.0.0.0:8080", "host_root": "/host"}),
        (
            AdmissionConfig,
            "admission",
            {"metrics_address": "0.0.0.0:8080", "identity": "$(POD_NAME)"},
        ),
    ],
)
def test_default_values_equal_the_defaults_of_the_flags(
    model: type[settings.ProcessSettings], component: str, chart_says: dict[str, str]
) -> None:
    fields = read(model, component).model_dump(mode="json")
    assert fields == model.read([]).model_dump(mode="json") | chart_says


def test_the_controller_takes_every_value() -> None:
    controller_config = read(ControllerConfig, "controller", EVERYTHING)
    assert (
        controller_config.driver_name,
        controller_config.write_workers,
        controller_config.evict_over_share,
    ) == ("gpu.nvidia.com", 16, True)
    assert (controller_config.unschedulable_timeout_seconds, controller_config.relist_seconds) == (
        12.5,
        600,
    )
    assert controller_config.backfill == backfill_plan.BackfillRules(
        1800.0, 300.0, 0.25, without_queues=True
    )
    assert controller_config.label_nodes
    assert controller_config.pod_groups
    assert (controller_config.metrics_address, controller_config.log_level) == (
        "0.0.0.0:9000",
        "warning",
    )


def test_the_webhook_reads_its_certificate_where_the_secret_is_mounted() -> None:
    flags = rendered.setting("admission.tls.mode=cert-manager", "admission.port=9443")
    admission_config = read(AdmissionConfig, "admission", *flags)
    assert (admission_config.certificates, admission_config.webhook_host_port[1]) == ("files", 9443)
    created = container(rendered.objects(*flags), "admission")
    (mount,) = created["volumeMounts"]
    assert {
        str(path.parent)
        for path in (admission_config.tls_cert_file, admission_config.tls_key_file)
        if path
    } == {mount["mountPath"]}
    assert {"name": "webhook", "containerPort": 9443} in created["ports"]


def test_the_plugin_takes_every_value() -> None:
    plugin_config = read(PluginConfig, "kubeletplugin", EVERYTHING)
    paths = (
        plugin_config.kubelet_root,
        plugin_config.cdi_root,
        plugin_config.state_dir,
        plugin_config.mps_dir,
        plugin_config.driver_root,
    )
    assert [str(path) for path in paths] == [
        "/var/lib/k0s/kubelet",
        "/etc/cdi",
        "/opt/ration",
        "/opt/ration/mps",
        "/host/run/nvidia/driver",
    ]
    assert (plugin_config.allocator, plugin_config.share_domain, plugin_config.cdi_hook) == (
        "scheduler",
        "cluster",
        "none",
    )
    assert plugin_config.allow_device_plugin
    assert plugin_config.xid_class == ("109=application", "31=hardware")
    assert (plugin_config.evict_on_gpu_fault, plugin_config.reset_gpus) == (True, True)
    assert (
        plugin_config.health_poll_seconds,
        plugin_config.rediscover_seconds,
        plugin_config.usage_interval_seconds,
    ) == (2.5, 30, 5)


def test_the_supervisor_and_the_plugin_agree_on_their_files() -> None:
    supervisor_config = read(SupervisorConfig, "mps", EVERYTHING)
    assert supervisor_config.state_dir == read(PluginConfig, "kubeletplugin", EVERYTHING).mps_dir
    assert supervisor_config.shm_dir == supervisor_config.state_dir / "shm"
    assert (supervisor_config.desired_state_poll_seconds, supervisor_config.poll_seconds) == (
        0.1,
        3,
    )


def offered(*flags: str) -> offerings.NodeOfferings:
    objects = rendered.objects(*flags)
    (document,) = [
        x["data"]["offerings.yaml"]
        for x in objects
        if x["kind"] == "ConfigMap" and "offerings.yaml" in x["data"]
    ]
    assert "--offerings=/etc/ration/offerings.yaml" in container(objects, "kubeletplugin")["args"]
    return offerings.read(yaml.safe_load(document), "offerings.yaml")


def test_the_plugin_reads_the_offerings_of_the_values() -> None:
    rules = offered(EVERYTHING).rules
    assert [rule.timeSlices for rule in rules] == [10, None]
    assert rules[1].faces == frozenset({faces.Kind.WHOLE, faces.Kind.MIG})


def test_without_the_supervisor_no_face_for_mps_is_offered() -> None:
    flags = rendered.setting("mps.enabled=false", "deviceClasses.mps.enabled=false")
    (rule,) = offered(*flags).rules
    assert rule.faces == frozenset({faces.Kind.WHOLE, faces.Kind.MIG, faces.Kind.TIME_SLICING})


def test_changed_offerings_replace_the_plugins_pods() -> None:
    def sums(rule: str) -> str:
        objects = rendered.objects(*rendered.setting(f"kubeletPlugin.offerings[0].{rule}"))
        metadata = workload(objects, "kubeletplugin")["spec"]["template"]["metadata"]
        return str(metadata["annotations"]["checksum/offerings"])

    assert sums("timeSlices=3") != sums("timeSlices=4")


def expected(*flags: str) -> workload_mix.WorkloadMix:
    objects = rendered.objects(*flags)
    named = [x for x in objects if x["kind"] == "ConfigMap" and "workload-mix.yaml" in x["data"]]
    spec = workload(objects, "controller")["spec"]["template"]["spec"]
    (volume,) = [volume for volume in spec["volumes"] if volume["name"] == "workload-mix"]
    assert volume["configMap"]["name"] == named[0]["metadata"]["name"]
    assert (
        "--workload-mix=/etc/ration/workload-mix.yaml" in container(objects, "controller")["args"]
    )
    return workload_mix.read(
        yaml.safe_load(named[0]["data"]["workload-mix.yaml"]), "workload-mix.yaml"
    )


def test_the_controller_reads_what_is_usual_by_the_values() -> None:
    assert expected(EVERYTHING).workloads == (
        workload_mix.Workload(gpus=8, cpu="64", weight=3),
        workload_mix.Workload(
            face=faces.Kind.MIG, percent=12, products=("NVIDIA H100 80GB HBM3",), weight=1
        ),
    )


def test_a_changed_workload_mix_rolls_the_controllers_pods() -> None:
    def sums(gpus: int) -> str:
        objects = rendered.objects(*rendered.setting(f"controller.workloadMix[0].gpus={gpus}"))
        metadata = workload(objects, "controller")["spec"]["template"]["metadata"]
        return str(metadata["annotations"]["checksum/workload-mix"])

    assert sums(1) != sums(8)


def test_the_controller_reads_managed_drivers_by_the_values() -> None:
    objects = rendered.objects(EVERYTHING)
    config = ControllerConfig.read(container(objects, "controller")["args"])
    assert config.managed_drivers is not None
    spec = workload(objects, "controller")["spec"]["template"]["spec"]
    (volume,) = [volume for volume in spec["volumes"] if volume["name"] == "managed-drivers"]
    (mount,) = [
        mount
        for mount in container(objects, "controller")["volumeMounts"]
        if mount["name"] == "managed-drivers"
    ]
    assert str(config.managed_drivers.parent) == mount["mountPath"]
    config_map = rendered.one(objects, "ConfigMap", volume["configMap"]["name"])
    document = yaml.safe_load(config_map["data"][config.managed_drivers.name])
    assert managed_drivers.read(document, "managed-drivers.yaml").drivers == (
        managed_drivers.ManagedDriver(name="gpu.example.com", nodeSelector="team in (gpu, ml)"),
        managed_drivers.ManagedDriver(name="nic.example.com", pools=("rack-1", "rack-2")),
    )


def test_a_changed_list_of_managed_drivers_rolls_the_controllers_pods() -> None:
    def sums(name: str) -> str:
        objects = rendered.objects(*rendered.setting(f"controller.managedDrivers[0].name={name}"))
        metadata = workload(objects, "controller")["spec"]["template"]["metadata"]
        return str(metadata["annotations"]["checksum/managed-drivers"])

    assert sums("gpu.example.com") != sums("nic.example.com")


def test_the_controller_has_no_rights_on_its_node() -> None:
    spec = workload(rendered.objects(), "controller")["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (item,) = spec["containers"]
    assert item["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "volumes" not in spec


def test_a_nodes_pods_see_the_hosts_processes_and_files() -> None:
    objects = rendered.objects()
    for component in ("kubeletplugin", "mps"):
        spec = workload(objects, component)["spec"]["template"]["spec"]
        assert spec["hostPID"] is True
        (host,) = [x for x in spec["containers"][0]["volumeMounts"] if x["mountPath"] == "/host"]
        assert host["readOnly"] is True
        assert host["mountPropagation"] == "HostToContainer"
    assert "hostPID" not in workload(objects, "controller")["spec"]["template"]["spec"]


def test_every_host_path_is_mounted_at_the_same_path_in_the_pod() -> None:
    objects = rendered.objects(EVERYTHING)
    for component in ("kubeletplugin", "mps"):
        spec = workload(objects, component)["spec"]["template"]["spec"]
        hosts = {x["name"]: x["hostPath"]["path"] for x in spec["volumes"] if "hostPath" in x}
        mounts = {x["name"]: x["mountPath"] for x in spec["containers"][0]["volumeMounts"]}
        assert {name: mounts[name] for name in hosts} == hosts | {"host": "/host"}
        assert hosts["host"] == "/"


def test_only_those_that_talk_to_the_api_server_have_a_token() -> None:
    objects = rendered.objects()
    with_token = {
        component: workload(objects, component)["spec"]["template"]["spec"][
            "automountServiceAccountToken"
        ]
        for component in COMPONENTS
    }
    assert with_token == {name: name != "mps" for name in COMPONENTS}
    accounts = [x for x in objects if x["kind"] == "ServiceAccount"]
    assert {x["automountServiceAccountToken"] for x in accounts} == {False}
    assert len(accounts) == len(COMPONENTS) + 2  # those of uninstalling


def test_an_update_brings_the_new_plugin_first_and_leaves_mps_daemons_alone() -> None:
    objects = rendered.objects()
    assert workload(objects, "kubeletplugin")["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
    }
    assert workload(objects, "mps")["spec"]["updateStrategy"] == {"type": "OnDelete"}


def test_a_new_chart_alone_replaces_no_pod() -> None:
    objects = rendered.objects()
    for component in COMPONENTS:
        labels = workload(objects, component)["spec"]["template"]["metadata"]["labels"]
        assert not {"helm.sh/chart", "app.kubernetes.io/version"} & set(labels)


def test_a_components_image_is_the_common_one_field_by_field() -> None:
    objects = rendered.objects(EVERYTHING)
    repository = "registry.example.com/ration"
    assert container(objects, "kubeletplugin")["image"] == f"{repository}:v9"
    assert container(objects, "controller")["image"].startswith(f"{repository}@sha256:0123")
    pod = rendered.one(objects, "Pod", "gpus-test")
    assert pod["spec"]["containers"][0]["image"] == "registry.example.com/python:v9"


def test_scheduling_and_metadata_of_pods_are_values() -> None:
    objects = rendered.objects(EVERYTHING)
    template = workload(objects, "controller")["spec"]["template"]
    spec = template["spec"]
    assert set(template["metadata"]["annotations"]) == {
        "note",
        "checksum/workload-mix",
        "checksum/managed-drivers",
        "checksum/node-shapes",
    }
    assert template["metadata"]["annotations"]["note"] == "here"
    assert {"tier": "one", "team": "platform"}.items() <= template["metadata"]["labels"].items()
    assert spec["priorityClassName"] == "high"
    assert spec["nodeSelector"] == {"node-role.kubernetes.io/control-plane": ""}
    assert "topologySpreadConstraints" not in spec
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert spec["containers"][0]["resources"]["limits"] == {"memory": "1Gi"}
    assert spec["containers"][0]["env"][-1]["name"] == "HTTPS_PROXY"


def affinity(component: str, *flags: str) -> Any:
    pod = workload(rendered.objects(*flags), component)["spec"]["template"]["spec"]
    return pod.get("affinity")


def said_by(terms: list[Any], labels: dict[str, str]) -> bool:
    """Return whether a node with these labels meets a term, as the API defines both operators."""
    expressions = [term["matchExpressions"] for term in terms]
    return any(
        all(
            each["key"] in labels
            and (each["operator"] == "Exists" or labels[each["key"]] in each["values"])
            for each in term
        )
        for term in expressions
    )


@pytest.mark.parametrize("component", ["kubeletplugin", "mps"])
def test_a_nodes_pods_are_where_its_labels_say_gpu(component: str) -> None:
    terms = affinity(component)["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    for label in gpu_nodes.LABELS:
        key, _, value = label.partition("=")
        assert said_by(terms["nodeSelectorTerms"], {key: value or "a"})
    assert not said_by(terms["nodeSelectorTerms"], {"nvidia.com/gpu.present": "false"})


@pytest.mark.parametrize("component", ["kubeletplugin", "mps"])
@pytest.mark.parametrize(
    "flag", ["--set-json=gpuNodeLabels=[]", "--set={values}.nodeSelector.pool=gpus"]
)
def test_a_nodes_pods_are_everywhere_or_where_their_selector_says(
    component: str, flag: str
) -> None:
    values = {"kubeletplugin": "kubeletPlugin", "mps": "mps"}[component]
    assert affinity(component, flag.format(values=values)) is None


def test_an_affinity_of_ones_own_counts_alone() -> None:
    own: dict[str, Any] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    assert affinity("mps", f"--set-json=mps.affinity={json.dumps(own)}") == own


def test_a_label_that_is_none_is_refused_with_its_place() -> None:
    with pytest.raises(errors.CommandFailedError, match="gpuNodeLabels"):
        rendered.objects('--set-json=gpuNodeLabels=["a b"]')
