import pytest

from driver.kubeletplugin.cdi import allow

ROOT = "/run/nvidia/driver"
HOOK = "/usr/bin/nvidia-cdi-hook"
LIMITS = allow.Limits(ROOT, "", HOOK)
NAME = "nvidia-cdi-hook"
FOLDER = "/usr/lib/x86_64-linux-gnu"
LINK = f"libcuda.so.1::{FOLDER}/libcuda.so"


def refused(*words: str, path: str = HOOK, env: tuple[str, ...] = allow.HOOK_ENVIRONMENT) -> bool:
    return bool([*LIMITS.check_hook(path, words, env)])


@pytest.mark.parametrize(
    "words",
    [
        ("create-symlinks", "--link", LINK),
        (
            "create-symlinks",
            "--link",
            LINK,
            "--link",
            f"../lib-a.so.1::{FOLDER}/gbm/nvidia-drm_gbm.so",
        ),
        ("enable-cuda-compat", "--host-driver-version=580.105.08"),
        ("update-ldcache", "--folder", FOLDER, "--folder", f"{FOLDER}/vdpau"),
        ("disable-device-node-modification",),
    ],
)
def test_the_hooks_that_we_know_are_allowed(words: tuple[str, ...]) -> None:
    assert not refused(NAME, *words)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("chmod", "--mode", "755", "--path", "/dev/dri"),
        ("create-symlinks",),
        ("create-symlinks", "--link", "/etc/shadow::/usr/lib64/libcuda.so"),
        ("create-symlinks", "--link", f"../../libcuda.so.1::{FOLDER}/libcuda.so"),
        ("create-symlinks", "--link", "libcuda.so.1::/etc/ld.so.preload"),
        ("create-symlinks", "--link", f"libcuda.so.1::{FOLDER}/../../../etc/libx.so"),
        ("create-symlinks", "--link", f"{LINK}\n"),
        ("create-symlinks", "--link", LINK, "--container-spec", "/x"),
        ("enable-cuda-compat", "--host-driver-version=1.2;id"),
        ("update-ldcache", "--folder", "/"),
        ("update-ldcache", "--folder", f"{FOLDER}/.."),
        ("update-ldcache", "--ldconfig-path", "/tmp/evil", "--folder", FOLDER),
        ("disable-device-node-modification", "x"),
    ],
)
def test_no_other_hook_and_no_other_argument_is(words: tuple[str, ...]) -> None:
    assert refused(NAME, *words)


def test_a_hook_must_run_the_toolkit_program_under_its_name_with_our_environment() -> None:
    known_name = "disable-device-node-modification"
    assert refused("sh", known_name)
    assert refused("sh", known_name, path="/bin/sh")
    assert refused(NAME, known_name, env=("LD_PRELOAD=/x",))
    assert refused(NAME, known_name, env=())
    assert [*allow.Limits(ROOT).check_hook("", ("", known_name), allow.HOOK_ENVIRONMENT)]


@pytest.mark.parametrize(
    "location",
    [
        f"{FOLDER}/libcuda.so.1",
        "/usr/lib64/libnvidia-ml.so.580.105.08",
        "/lib64/vdpau/libvdpau_nvidia.so.1",
        f"{FOLDER}/nvidia/current/libcuda.so.1",
        "/usr/lib/xorg/modules/drivers/nvidia_drv.so",
        "/usr/lib64/xorg/modules/extensions/libglxserver_nvidia.so.580.105.08",
        "/usr/share/X11/xorg.conf.d/10-nvidia.conf",
        "/etc/vulkan/implicit_layer.d/nvidia_layers.json",
        "/lib/firmware/nvidia/580.105.08/gsp_tu10x.bin",
    ],
)
def test_the_drivers_places_are_known(location: str) -> None:
    assert allow.is_driver_path(location)


@pytest.mark.parametrize(
    "location",
    [
        "/etc/ld.so.preload",
        "/etc/vulkan/../passwd",
        "/usr/lib/../../etc/libx.so",
        "/lib/firmware/nvidia/580.1/../../x.bin",
        "/usr/share/X11/other.d/../x.conf",
        f"{FOLDER}/libcuda.so.1/x",
        f"{FOLDER}/libcuda.so.1\n",
        f"{FOLDER}/ld-linux-x86-64.so.2",
        "/usr/bin/sh",
        "/usr/bin/nvidia-cuda-mps-control",
        "/run/nvidia-fabricmanager",
        "/run/nvidia-fabricmanager/fm_sm_ipc.socket",
        "/tmp/nvidia-mps",
    ],
)
def test_no_other_place_is(location: str) -> None:
    assert not allow.is_driver_path(location)
