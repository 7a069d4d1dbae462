import gc
import json
import sys

import pytest

from driver import errors
from driver.kubeletplugin.cdi import allow, model, template
from driver.kubeletplugin.host import device_node

ROOT = "/run/nvidia/driver"
NODE = device_node.DeviceNode("/dev/nvidia0", f"{ROOT}/dev/nvidia0", 195, 0)


def a_spec(**changes: object) -> str:
    common = template.Common((), ())
    text = template.render("gpu.ration.dev/claim", common, (template.Device("d", (NODE,)),))
    return json.dumps({**json.loads(text), **changes})


@pytest.mark.parametrize(
    ("changes", "location"),
    [
        ({"devices": []}, "devices"),
        ({"kind": "nokind"}, "kind"),
        ({"kind": "a/b\n"}, "kind"),
        ({"hooks": []}, "hooks"),
        ({"containerEdits": {"env": ["LD_PRELOAD=/x"]}}, "env"),
        ({"containerEdits": {"env": ["noequals"]}}, "env"),
        ({"containerEdits": {"hooks": [{"hookName": "prestart", "path": "/x"}]}}, "hooks"),
        ({"devices": [{"name": "d", "containerEdits": {}}]}, "devices"),
        ({"devices": [{"name": "../x y", "containerEdits": {}}]}, "name"),
    ],
)
def test_forbidden_spec_fields_are_refused(changes: dict[str, object], location: str) -> None:
    with pytest.raises(errors.BadInput, match=location):
        model.parse(a_spec(**changes), allow.Limits(ROOT))


def test_capability_nodes_are_allowed_for_their_mig_instance() -> None:
    def with_node(name: str, host: str) -> str:
        node = device_node.DeviceNode(f"/dev/{name}", host, 237, 67)
        device = template.Device("d", (NODE, node))
        return template.render("gpu.ration.dev/claim", template.Common((), ()), (device,))

    cap = "nvidia-caps/nvidia-cap67"
    (device,) = model.parse(with_node(cap, f"{ROOT}/dev/{cap}"), allow.Limits(ROOT)).devices
    assert device.containerEdits.deviceNodes[1].minor == 67
    for name, host in (
        (cap, f"{ROOT}/dev/nvidia-cap67"),
        (cap, f"/dev/{cap}"),
        (cap, f"{ROOT}/dev/nvidia-caps/../sda"),
        ("nvidia-caps/config", f"{ROOT}/dev/nvidia-caps/config"),
        ("nvidia-caps/nvidia-cap1/x", f"{ROOT}/dev/nvidia-caps/nvidia-cap1/x"),
        ("nvidia-cap67", f"{ROOT}/dev/nvidia-cap67"),
    ):
        with pytest.raises(errors.BadInput, match="deviceNodes"):
            model.parse(with_node(name, host), allow.Limits(ROOT))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("path", "/dev/sda"),
        ("path", "/dev/nvidia0/../sda"),
        ("hostPath", "/dev/nvidia0"),
        ("hostPath", f"{ROOT}/dev/nvidia1"),
        ("hostPath", f"{ROOT}/dev/../dev/nvidia0"),
        ("major", 0),
        ("major", "195"),
        ("permissions", "x"),
        ("type", "b"),
    ],
)
def test_device_nodes_are_nvidias_and_from_the_driver_root(field: str, value: object) -> None:
    spec = json.loads(a_spec())
    spec["devices"][0]["containerEdits"]["deviceNodes"][0][field] = value
    with pytest.raises(errors.BadInput, match="deviceNodes"):
        model.parse(json.dumps(spec), allow.Limits(ROOT))


@pytest.mark.parametrize(
    ("source", "target", "options"),
    [
        ("/etc", "/usr/bin/nvidia-smi", ["ro", "nosuid", "nodev"]),
        (f"{ROOT}/../etc", "/usr/bin/nvidia-smi", ["ro", "nosuid", "nodev"]),
        (f"{ROOT}/usr/bin/nvidia-smi", "/etc/passwd", ["ro", "nosuid", "nodev"]),
        (f"{ROOT}/usr/bin/nvidia-smi", "/usr/bin/nvidia-smi", ["nosuid", "nodev"]),
        (ROOT, "/usr/bin/nvidia-smi", ["ro", "nosuid", "nodev"]),
    ],
)
def test_mounts_are_read_only_and_from_the_driver_root(
    source: str, target: str, options: list[str]
) -> None:
    mount = {"hostPath": source, "containerPath": target, "options": options}
    with pytest.raises(errors.BadInput, match="mounts"):
        model.parse(a_spec(containerEdits={"mounts": [mount]}), allow.Limits(ROOT))


def test_the_version_is_the_least_that_has_what_is_used() -> None:
    def version(name: str, host: str, root: str) -> str:
        node = device_node.DeviceNode("/dev/nvidia0", host, 195, 0)
        text = template.render(
            "gpu.ration.dev/claim", template.Common((), ()), (template.Device(name, (node,)),)
        )
        return str(
            json.loads(model.render_canonical(model.parse(text, allow.Limits(root))))["cdiVersion"]
        )

    assert version("d", "/dev/nvidia0", "/") == "0.3.0"
    assert version("d", f"{ROOT}/dev/nvidia0", ROOT) == "0.5.0"
    assert version("5d", "/dev/nvidia0", "/") == "0.5.0"


def test_a_driver_name_that_is_no_vendor_is_refused() -> None:
    assert model.cdi_kind("gpu.nvidia.com") == "gpu.nvidia.com/claim"
    with pytest.raises(errors.BadInput, match="driver name"):
        model.cdi_kind("0gpu.example.com")


def test_the_canonical_bytes_hold_no_empty_field() -> None:
    data = json.loads(model.render_canonical(model.parse(a_spec(), allow.Limits(ROOT))))
    assert data["containerEdits"] == {"env": ["NVIDIA_VISIBLE_DEVICES=void"]}


def test_nothing_of_a_spec_is_kept_once_it_is_gone() -> None:
    def specs(first: int, count: int) -> int:
        for number in range(first, first + count):
            text = a_spec().replace('"d"', f'"of-claim-{number}"')
            model.parse(text, allow.Limits(ROOT))
        gc.collect()
        return sys.getallocatedblocks()

    previous = specs(0, 100)
    assert specs(100, 1000) < previous + 500
