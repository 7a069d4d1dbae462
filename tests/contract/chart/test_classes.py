from driver import names
from tests.contract.chart import rendered

pytestmark = rendered.BUILDS_HELM


def found(*flags: str) -> dict[str, rendered.Object]:
    return {
        x["metadata"]["name"]: x["spec"]
        for x in rendered.objects(*flags)
        if x["kind"] == "DeviceClass"
    }


def test_the_usual_classes_have_their_public_names_and_no_extended_resource() -> None:
    present = found()
    assert set(present) == {
        names.CLASS_GPU,
        "gpu-timeslice.ration.dev",
        "gpu-mps.ration.dev",
        "gpu-mig.ration.dev",
        "gpu-slice.ration.dev",
    }
    assert not [entry for entry in present.values() if "extendedResourceName" in entry]


def test_classes_are_named_by_the_driver() -> None:
    present = found("--set=driverName=gpu.example.com")
    assert set(present) == {
        "gpu.example.com",
        "gpu-timeslice.example.com",
        "gpu-mps.example.com",
        "gpu-mig.example.com",
        "gpu-slice.example.com",
    }


def test_under_nvidias_driver_name_the_classes_have_nvidias_names() -> None:
    present = found("--set=driverName=gpu.nvidia.com")
    assert {"gpu.nvidia.com", "mig.nvidia.com"} <= set(present)
    (selector,) = present["mig.nvidia.com"]["selectors"]
    assert selector["cel"]["expression"] == (
        'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "mig"'
    )


def test_a_mig_profile_may_have_a_class_and_an_extended_resource() -> None:
    present = found(f"--values={rendered.EVERYTHING}")
    assert present["gpu-mig-1g.10gb.nvidia.com"]["extendedResourceName"] == "nvidia.com/mig-1g.10gb"
    assert "gpu-mig-1g.10gb.me.nvidia.com" in present
    assert (
        '.profile == "3g.40gb"' in present["half.example.com"]["selectors"][0]["cel"]["expression"]
    )
    assert present["turns.example.com"]["extendedResourceName"] == "nvidia.com/gpu.shared"


def test_the_class_by_need_has_parts_and_what_shares_the_controller_gives() -> None:
    present = found(
        "--set=driverName=gpu.nvidia.com", "--set=deviceClasses.slice.isolation=hardware"
    )
    (selector,) = present["gpu-slice.nvidia.com"]["selectors"]
    owner = 'device.attributes["gpu.nvidia.com"]'
    assert selector["cel"]["expression"].split(" && ", 1) == [
        'device.driver == "gpu.nvidia.com"',
        (
            f'({owner}.type == "mig" || '
            f'({owner}.type == "gpu-share" && {owner}.allocator == "controller"))'
        ),
    ]
    (config,) = present["gpu-slice.nvidia.com"]["config"]
    assert config["opaque"] == {
        "driver": "gpu.nvidia.com",
        "parameters": {
            "apiVersion": names.CONFIG_VERSION,
            "kind": "SliceConfig",
            "isolation": "hardware",
        },
    }
