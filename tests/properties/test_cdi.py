"""Whatever values a spec is made of, what is written is right for the loader and for us."""

import contextlib
import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver import errors
from driver.kubeletplugin.cdi import allow, model, template
from driver.kubeletplugin.cdi.driver import files as driver_files
from driver.kubeletplugin.host import device_node
from tests.fakes import gpunode, toolkits

ROOT = "/run/nvidia/driver"
KIND = "gpu.ration.dev/claim"
HOOK = "/usr/bin/nvidia-cdi-hook"
KNOWN_HOOKS = (
    "create-symlinks",
    "enable-cuda-compat",
    "update-ldcache",
    "disable-device-node-modification",
)
OPTIONS = ("ro", "nosuid", "nodev", "rbind")
VERSIONS = {"0.3.0", "0.5.0", "0.6.0"}

minors = st.integers(0, 253)
gpu_nodes = minors.map(
    lambda n: device_node.DeviceNode(f"/dev/nvidia{n}", f"{ROOT}/dev/nvidia{n}", 195, n)
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
    common: template.Common, devices: list[template.Device]
) -> None:
    spec = model.parse(template.render(KIND, common, tuple(devices)), allow.Limits(ROOT))
    data = model.render_canonical(spec)
    assert model.render_canonical(model.parse(data.decode(), allow.Limits(ROOT))) == data
    written = json.loads(data)
    assert [device["name"] for device in written["devices"]] == [device.name for device in devices]
    assert written["containerEdits"]["env"] == ["NVIDIA_VISIBLE_DEVICES=void"]
    assert_the_loader_takes(written)


def assert_the_loader_takes(spec: dict[str, object]) -> None:
    """The loader's own rules, written apart from the model's."""
    assert set(spec) <= {"cdiVersion", "kind", "devices", "containerEdits"}
    assert spec["cdiVersion"] in VERSIONS
    assert re.fullmatch(r"[A-Za-z][\w.-]*/[A-Za-z][\w-]*", str(spec["kind"]))
    result = spec["devices"]
    assert isinstance(result, list)
    assert len({device["name"] for device in result}) == len(result) > 0
    for device in result:
        assert re.fullmatch(r"[A-Za-z0-9]([\w.:-]*[A-Za-z0-9])?", device["name"])
        assert device["containerEdits"]
        if device["name"][0].isdigit():
            assert spec["cdiVersion"] != "0.3.0"


@given(hostile, hostile, hostile, st.lists(hostile, max_size=3).map(tuple))
def test_no_value_of_any_text_reaches_beyond_the_allow_list(
    text: str, other: str, name: str, options: tuple[str, ...]
) -> None:
    common = template.Common(
        (device_node.DeviceNode(text, other, 195, 0),), (template.Mount(other, text, options),)
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
    node = device_node.DeviceNode("/dev/nvidia0", f"{ROOT}/dev/nvidia0", 195, 0)
    text = template.render(KIND, template.Common((), (mount,)), (template.Device("d", (node,)),))
    try:
        spec = model.parse(text, allow.Limits(ROOT))
    except errors.BadInput:
        return
    (retained,) = spec.containerEdits.mounts
    assert retained.hostPath == source
    assert source.startswith(f"{ROOT}/")
    assert ".." not in source.split("/")


file_names = st.one_of(
    st.text(st.characters(exclude_characters="/\0", codec="utf-8"), max_size=30),
    st.sampled_from(
        [
            "libx.so.1::/etc/passwd",
            'libx","hooks":[{"path":"/bin/sh"}],"y.so',
            "--link",
            "lib..so",
            "lib;id.so",
            "lib\n.so",
        ]
    ),
)


@given(given_names=st.lists(file_names, max_size=6), with_hook=st.booleans())
def test_no_file_name_reaches_a_hook_variable_or_path_it_should_not(
    given_names: list[str], *, with_hook: bool
) -> None:
    with tempfile.TemporaryDirectory() as temporary_directory:
        root, host = Path(temporary_directory) / "root", Path(temporary_directory) / "host"
        gpunode.a_driver_root(root)
        if with_hook:
            gpunode.write(host / HOOK.lstrip("/"), "")
        endings = ("", f".so.{gpunode.VERSION}")
        for name in (
            f"{start}{given_name}{end}"
            for given_name in given_names
            for end in endings
            for start in ("", "lib")
        ):
            with contextlib.suppress(OSError):  # no file can have every name
                (root / gpunode.LIBRARIES / name).touch()
        files = driver_files.DriverFiles(
            gpunode.with_control_nodes(root), host, run_version=toolkits.ask
        )
        common = files.read()
        node = device_node.DeviceNode("/dev/nvidia0", f"{root}/dev/nvidia0", 195, 0)
        text = template.render(KIND, common, (template.Device("d", (node,)),))
        spec = model.parse(text, allow.Limits(str(root), "", HOOK if with_hook else ""))
    assert len(spec.containerEdits.hooks) == (4 if with_hook else 0)
    for hook in spec.containerEdits.hooks:
        assert hook.path == HOOK
        assert hook.args[1] in KNOWN_HOOKS
        assert hook.env == ["NVIDIA_CTK_DEBUG=false"]
        for word in hook.args[2:]:
            assert re.fullmatch(r"--[a-z=-]+[0-9.]*|[A-Za-z0-9_+./:-]+", word)
            assert "/../" not in word
            assert re.search(r"::(?!/usr/lib/)", word) is None
    places = [mount.containerPath for mount in spec.containerEdits.mounts]
    assert all(
        re.fullmatch(
            r"/(usr/lib|usr/lib64|usr/local/nvidia/lib64|usr/bin|run)/[A-Za-z0-9_+./-]+", name
        )
        for name in places
    )
    assert f"/usr/lib/x86_64-linux-gnu/libcuda.so.{gpunode.VERSION}" in places


@given(hostile, hostile, st.lists(hostile, max_size=3))
def test_no_text_becomes_a_hook(path: str, name: str, words: list[str]) -> None:
    common = template.Common(hooks=(template.Hook(path, (name, *words)),))
    device = template.Device("d", (), ("CUDA_MPS_CLIENT_PRIORITY=0",))
    with pytest.raises(errors.BadInput):
        model.parse(template.render(KIND, common, (device,)), allow.Limits(ROOT, "", HOOK))
