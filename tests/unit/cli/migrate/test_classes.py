"""Tests of what the classes of a plan choose, and what the webhook makes of pods by its flags."""

from typing import Any

import pytest

from driver.cli.migrate import classes, config_files, plan, render
from driver.cli.migrate.offerings import Target
from driver.devices import faces
from driver.resources import extended_resources
from driver.resources.cel import selector
from driver.scheduling.allocator import types as allocator_types
from tests.support import migrate_cases, snapshots
from tests.support.allocation import decide, devices
from tests.support.builders import objects, shared_claims

DOMAIN = "gpu.ration.dev"
WHOLE = selector.Device(DOMAIN, {"type": "gpu"}, {})
TURNS = selector.Device(DOMAIN, {"type": "gpu-share", "sharing": "time-slicing"}, {})
MPS = selector.Device(DOMAIN, {"type": "gpu-share", "sharing": "mps"}, {})
SEVENTH = selector.Device(DOMAIN, {"type": "mig", "profile": "1g.10gb"}, {})
HALF = selector.Device(DOMAIN, {"type": "mig", "profile": "3g.40gb"}, {})
FOREIGN = selector.Device("gpu.nvidia.com", {"type": "gpu"}, {})
EVERY = (WHOLE, TURNS, MPS, SEVENTH, HALF, FOREIGN)


def chosen(*targets: Target) -> list[selector.Device]:
    (replacement,) = classes.replacements({"nvidia.com/gpu": frozenset(targets)}, scheduler=True)
    assert replacement.manifest is not None
    spec: Any = replacement.manifest["spec"]
    compiled = selector.compile_selector(spec["selectors"][0]["cel"]["expression"])
    assert isinstance(compiled, selector.Selector), compiled
    return [device for device in EVERY if compiled.matches(device) is True]


@pytest.mark.parametrize(
    ("targets", "devices"),
    [
        ((Target(faces.Kind.WHOLE), Target(faces.Kind.TIME_SLICING)), [WHOLE, TURNS]),
        ((Target(faces.Kind.WHOLE), Target(faces.Kind.MIG)), [WHOLE, SEVENTH, HALF]),
        ((Target(faces.Kind.MPS), Target(faces.Kind.TIME_SLICING)), [TURNS, MPS]),
        ((Target(faces.Kind.MPS), Target(faces.Kind.MIG, "1g.10gb")), [MPS, SEVENTH]),
    ],
)
def test_a_resource_of_several_meanings_gets_a_class_of_all_of_them(
    targets: tuple[Target, ...], devices: list[selector.Device]
) -> None:
    assert chosen(*targets) == devices


def test_the_webhook_with_the_plans_flags_converts_to_the_plans_classes() -> None:
    for case in migrate_cases.CASES:
        created = case.plan(scheduler=False)
        extra: Any = created.values.get("admission", {})
        flags = dict(entry.removeprefix("--").split("=") for entry in extra.get("extraArgs", ()))
        reported = extended_resources.Classes(
            whole=flags.get("whole-class", extended_resources.Classes().whole),
            shared=flags.get("shared-class", extended_resources.Classes().shared),
        )
        for replacement in created.replacements:
            if replacement.left:
                continue
            limits = {"limits": {replacement.resource: "1"}}
            pod = {"spec": {"containers": [{"name": "main", "resources": limits}]}}
            (template,) = extended_resources.convert(pod, reported).templates
            text = str(template.spec)
            assert f"'deviceClassName': '{replacement.name}'" in text


def test_quota_keys_are_those_of_kubernetes() -> None:
    (replacement,) = classes.replacements(
        {"nvidia.com/gpu": frozenset({Target(faces.Kind.WHOLE)})}, scheduler=False
    )
    assert replacement.old_key == "requests.nvidia.com/gpu"
    assert replacement.new_key == "gpu.ration.dev.deviceclass.resource.k8s.io/devices"


def test_under_kube_scheduler_shared_mig_names_have_a_class() -> None:
    shared = {"nvidia.com/mig-1g.10gb": ".shared", "nvidia.com/mig-1g.10gb.me": ""}
    resources = {
        f"{name}{suffix}": frozenset(
            {Target(faces.Kind.MIG, extended_resources.mig_profile(name) or "")}
        )
        for name, suffix in shared.items()
    }
    replacements = classes.replacements(resources, scheduler=True)
    assert classes.values(replacements) == {
        "mig": {
            "profiles": [
                {
                    "profile": "1g.10gb+me",
                    "extendedResourceName": "nvidia.com/mig-1g.10gb.me",
                },
                {
                    "profile": "1g.10gb",
                    "name": "nvidia-mig-1g.10gb-shared.ration.dev",
                    "extendedResourceName": "nvidia.com/mig-1g.10gb.shared",
                },
            ]
        }
    }


def test_the_way_back_undoes_every_label_of_the_takeover() -> None:
    for operator in (False, True):
        created = plan.build_plan(
            config_files.read_configs({"c": "version: v1"}),
            None,
            plan.PlanOptions(operator=operator),
        )
        text = render.plan_text(created)
        assert "ration.dev/taken-over=true" in text
        assert "ration.dev/taken-over-" in text
        away = (
            "nvidia.com/gpu.deploy.device-plugin" if operator else "ration.dev/device-plugin-left"
        )
        assert f"{away}={'false' if operator else 'true'}" in text
        assert (f"{away}=true" if operator else f"{away}-") in text
        assert ("device-plugin-values.yaml" in render.plan_files(created)) is not operator


def one_of(kind: faces.Kind, resource: str, *, scheduler: bool) -> classes.Replacement:
    (replacement,) = classes.replacements(
        {resource: frozenset({Target(kind)})}, scheduler=scheduler
    )
    return replacement


def test_the_note_on_several_shares_matches_the_controller() -> None:
    for kind, words in (("mps", "refused"), ("time-slicing", "as many GPUs")):
        assert words in one_of(faces.Kind(kind), "nvidia.com/gpu", scheduler=True).several
        used = shared_claims.containers(("two",))
        two = objects.claim("two", shared_claims.part(count=2))
        alone = snapshots.view(objects.a_slice("node-a", [objects.a_share_device("a", kind)]))
        assert isinstance(decide(alone, two, containers=used), allocator_types.Unschedulable)
        pair = [objects.a_share_device(name, kind) for name in "ab"]
        answer = decide(snapshots.view(objects.a_slice("node-a", pair)), two, containers=used)
        fits = isinstance(answer, allocator_types.Placement)
        assert fits is (kind == "time-slicing")
        if fits:
            assert devices(answer) == ["a", "b"]
    shared = one_of(faces.Kind.MPS, "nvidia.com/gpu.shared", scheduler=False)
    assert "shares of one GPU" in shared.several
