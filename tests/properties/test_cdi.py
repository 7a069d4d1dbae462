"""Whatever values a spec is made of, what is written is right for the loader and for us."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from driver import errors
from driver.kubeletplugin.cdi import allow, model, template

ROOT = "/run/nvidia/driver"
KIND = "gpu.ration.dev/claim"
OPTIONS = ("ro", "nosuid", "nodev", "rbind")
VERSIONS = {"0.3.0", "0.5.0", "0.6.0"}

minors = st.integers(0, 253)
gpu_nodes = minors.map(
    lambda n: template.DeviceNode(f"/dev/nvidia{n}", f"{ROOT}/dev/nvidia{n}", 195, n)
)
names = st.from_regex(r"[a-z0-9](?:[a-z0-9-]{0,40}[a-z0-9])?", fullmatch=True)
devices = st.lists(
    st.builds(template.Device, names, st.tuples(gpu_nodes)),
    min_size=1,
    max_size=32,
    unique_by=lambda device: device.name,
)
libraries = st.from_regex(r"lib[a-z-]{1,12}\.so\.[0-9]{1,3}", fullmatch=True)
mounts = libraries.map(
    lambda name: template.Mount(
        f"{ROOT}/usr/lib64/{name}", f"/usr/lib/x86_64-linux-gnu/{name}", OPTIONS
    )
)
commons = st.builds(
    template.Common, st.lists(gpu_nodes, max_size=3).map(tuple), st.lists(mounts).map(tuple)
)
hostile = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "../../etc/shadow",
            f"{ROOT}/../../etc",
            f"{ROOT}//usr",
            '", "hooks": [',
            "/etc",
            "/dev/sda",
            "/dev/nvidia0/../sda",
            "",
        ]
    ),
)


@given(commons, devices)
def test_a_spec_of_good_values_is_accepted_and_always_the_same_bytes(
    common: template.Common, made: list[template.Device]
) -> None:
    spec = model.parse(template.render(KIND, common, tuple(made)), allow.Limits(ROOT))
    data = model.canonical(spec)
    assert model.canonical(model.parse(data.decode(), allow.Limits(ROOT))) == data
    written = json.loads(data)
    assert [device["name"] for device in written["devices"]] == [device.name for device in made]
    assert written["containerEdits"]["env"] == ["NVIDIA_VISIBLE_DEVICES=void"]
    assert_the_loader_takes(written)


def assert_the_loader_takes(spec: dict[str, object]) -> None:
    """The loader's own rules, written apart from the model's."""
    assert set(spec) <= {"cdiVersion", "kind", "devices", "containerEdits"}
    assert spec["cdiVersion"] in VERSIONS
    assert re.fullmatch(r"[A-Za-z][\w.-]*/[A-Za-z][\w-]*", str(spec["kind"]))
    found = spec["devices"]
    assert isinstance(found, list)
    assert len({device["name"] for device in found}) == len(found) > 0
    for device in found:
        assert re.fullmatch(r"[A-Za-z0-9]([\w.:-]*[A-Za-z0-9])?", device["name"])
        assert device["containerEdits"]
        if device["name"][0].isdigit():
            assert spec["cdiVersion"] != "0.3.0"


@given(hostile, hostile, hostile, st.lists(hostile, max_size=3).map(tuple))
def test_no_value_of_any_text_reaches_beyond_the_allow_list(
    one: str, other: str, name: str, options: tuple[str, ...]
) -> None:
    common = template.Common(
        (template.DeviceNode(one, other, 195, 0),), (template.Mount(other, one, options),)
    )
    device = template.Device(name, ())
    text = template.render(KIND, common, (device,))
    try:
        model.parse(text, allow.Limits(ROOT))
    except errors.BadInput:
        return
    raise AssertionError(text)


@given(hostile)
def test_a_hostile_mount_source_is_refused_or_lies_under_the_driver_root(source: str) -> None:
    mount = template.Mount(source, "/usr/lib/x86_64-linux-gnu/libcuda.so.1", OPTIONS)
    node = template.DeviceNode("/dev/nvidia0", f"{ROOT}/dev/nvidia0", 195, 0)
    text = template.render(KIND, template.Common((), (mount,)), (template.Device("d", (node,)),))
    try:
        spec = model.parse(text, allow.Limits(ROOT))
    except errors.BadInput:
        return
    (kept,) = spec.containerEdits.mounts
    assert kept.hostPath == source
    assert source.startswith(f"{ROOT}/")
    assert ".." not in source.split("/")
