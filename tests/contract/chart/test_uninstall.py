"""The hooks of `helm uninstall`: when each runs, what it may do, what it is told."""

import json
from typing import Any

import pytest
import typer.main

from driver.kubeletplugin.config import PluginConfig
from driver.kubeletplugin.recovery import cleanup
from driver.uninstall import __main__ as leaving
from tests.contract.chart import rendered

pytestmark = rendered.BUILDS_HELM
EVERYTHING = f"--values={rendered.EVERYTHING}"
HOOK, WEIGHT = "helm.sh/hook", "helm.sh/hook-weight"
POLICY = "helm.sh/hook-delete-policy"


def hooks(*flags: str, event: str = "") -> list[rendered.Object]:
    """Return what is there only while it is uninstalled, in the order in which Helm makes it."""
    entries = [
        x
        for x in rendered.objects(*flags)
        if "delete" in x["metadata"].get("annotations", {}).get(HOOK, "")
        and event in ["", *x["metadata"]["annotations"][HOOK].split(",")]
    ]
    return sorted(entries, key=lambda x: int(x["metadata"]["annotations"][WEIGHT]))


def jobs(*flags: str) -> dict[str, list[str]]:
    """The flags of each Job, by its command."""
    result = {}
    for x in hooks(*flags):
        if x["kind"] == "Job":
            (container,) = x["spec"]["template"]["spec"]["containers"]
            assert container["command"] == ["python", "-m", "driver.uninstall"]
            result[container["args"][0]] = container["args"][1:]
    return result


def told(*flags: str) -> dict[str, dict[str, Any]]:
    """Return what each command makes of its flags."""
    commands = typer.main.get_command(leaving.app).commands  # type: ignore[attr-defined]
    return {
        name: commands[name].make_context(name, list(job)).params
        for name, job in jobs(*flags).items()
    }


def daemon_set(*flags: str) -> Any:
    (entries,) = [x for x in hooks(*flags) if x["kind"] == "DaemonSet"]
    return entries


@pytest.mark.parametrize("flags", [(), (EVERYTHING,)])
def test_no_hook_outlives_its_event_and_jobs_are_heard(flags: tuple[str, ...]) -> None:
    results = hooks(*flags)
    assert len(results) > 8
    for x in results:
        annotations = x["metadata"]["annotations"]
        assert annotations[POLICY] == "before-hook-creation,hook-succeeded,hook-failed"
        if x["kind"] == "Job":
            statement = annotations["helm.sh/hook-output-log-policy"]
            assert statement == "hook-succeeded,hook-failed"
            assert x["spec"]["backoffLimit"] == 0


@pytest.mark.parametrize(
    ("event", "names"),
    [
        ("pre-delete", ["ration-leave-stop"]),
        ("post-delete", ["ration-leave-sweep", "ration-clearing", "ration-leave-nodes"]),
    ],
)
def test_each_step_comes_after_the_one_it_needs_and_after_its_rights(
    event: str, names: list[str]
) -> None:
    results = [(x["kind"], x["metadata"]["name"]) for x in hooks(event=event)]
    steps = [name for kind, name in results if kind in {"Job", "DaemonSet"}]
    assert steps == names
    rights = [index for index, (kind, _) in enumerate(results) if kind not in {"Job", "DaemonSet"}]
    assert max(rights) < min(
        results.index((k, n)) for k, n in results if n in names and k != "ServiceAccount"
    )


@pytest.mark.parametrize(
    "flags", [(), (EVERYTHING,), ("--set=controller.enabled=false", "--set=allocator=scheduler")]
)
def test_the_jobs_speak_of_what_the_chart_installs(flags: tuple[str, ...]) -> None:
    objects = rendered.objects(*flags)
    existing = {(x["kind"], x["metadata"]["name"]) for x in objects}
    annotations = told(*flags)
    assert ("DaemonSet", annotations["stop"]["plugin"]) in existing
    assert ("DaemonSet", annotations["nodes"]["daemon_set"]) in existing
    controller = annotations["stop"]["controller"]
    assert bool(controller) == any(
        "-controller" in name for kind, name in existing if kind == "Deployment"
    )
    assert not controller or ("Deployment", controller) in existing
    expected = dict(word.split("=") for word in annotations["stop"]["selector"].split(","))
    for x in objects:
        if x["kind"] in {"Deployment", "DaemonSet"}:
            assert expected.items() <= x["spec"]["template"]["metadata"]["labels"].items()


def test_the_secret_is_deleted_only_where_the_webhook_made_it() -> None:
    def deleted(*flags: str) -> tuple[str, str]:
        sweep = told(*rendered.setting(*flags))["sweep"]
        return sweep["secret"], sweep["lease"]

    assert deleted() == ("ration-admission-tls", "ration-admission")
    assert deleted("admission.tls.mode=cert-manager") == ("", "ration-admission")
    assert deleted("admission.enabled=false") == ("", "")


@pytest.mark.parametrize("flags", [(), (EVERYTHING,)])
def test_a_nodes_clearing_is_told_the_plugins_folders_and_sees_no_more(
    flags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE_NAME", "node-a")
    spec = daemon_set(*flags)["spec"]["template"]["spec"]
    (init_container,) = spec["initContainers"]
    assert init_container["command"] == ["python", "-m", cleanup.__name__]
    (plugin,) = [
        x["spec"]["template"]["spec"]
        for x in rendered.objects(*flags)
        if x["kind"] == "DaemonSet" and x["metadata"]["name"].endswith("-kubeletplugin")
    ]
    plugin_config = PluginConfig.read(plugin["containers"][0]["args"])
    assert init_container["args"] == [
        f"--driver-name={plugin_config.driver_name}",
        f"--kubelet-root={plugin_config.kubelet_root}",
        f"--cdi-root={plugin_config.cdi_root}",
        f"--state-dir={plugin_config.state_dir}",
    ]
    hosts = {x["name"]: x["hostPath"]["path"] for x in spec["volumes"]}
    assert {x["name"]: x["mountPath"] for x in init_container["volumeMounts"]} == hosts
    assert (
        hosts.items()
        <= {x["name"]: x["hostPath"]["path"] for x in plugin["volumes"] if "hostPath" in x}.items()
    )
    assert init_container["image"] == plugin["containers"][0]["image"]
    for key in ("nodeSelector", "tolerations", "affinity"):
        assert spec.get(key) == plugin.get(key)
    assert spec["automountServiceAccountToken"] is False
    assert "priorityClassName" not in spec


def test_no_account_can_create_pods_or_change_more_than_statuses() -> None:
    rules = [rule for x in hooks() if x["kind"] in {"Role", "ClusterRole"} for rule in x["rules"]]
    assert "create" not in json.dumps(rules)
    changed = {
        resource
        for rule in rules
        for resource in rule["resources"]
        if {"patch", "update"} & set(rule["verbs"])
    }
    assert changed == {
        "nodes/status",
        "pods/status",
        "resourceclaims/status",
        "resourceclaims/binding",
        "deployments/scale",
    }


def test_switched_off_nothing_of_it_is_there() -> None:
    assert hooks("--set=uninstall.enabled=false") == []
