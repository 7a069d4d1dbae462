import pytest

from driver import names
from driver.resources.dra import device_classes
from driver.resources.dra import requests as dra_requests
from driver.webhook.validation import selectors as validation_selectors
from driver.webhook.validation.selectors import Face
from hack.chart import helm

TYPE = 'device.attributes["gpu.ration.dev"].type'
SHARING = 'device.attributes["gpu.ration.dev"].sharing'


def shipped() -> dict[str, device_classes.DeviceClass]:
    return {
        device_class.name: device_class
        for device_class in map(device_classes.parse, helm.usual("DeviceClass"))
    }


def face(*selectors: str, device_class: str = "any", driver: str = names.DRIVER) -> Face:
    request = dra_requests.Request("gpu", device_class, selectors)
    (way,) = validation_selectors.candidate_ways(request, shipped(), driver)
    return way.face


def test_the_classes_that_are_installed_say_which_face_they_are_for() -> None:
    assert {name: face(device_class=name) for name in shipped()} == {
        "gpu.ration.dev": Face.WHOLE,
        "gpu-timeslice.ration.dev": Face.TIME_SLICED,
        "gpu-mps.ration.dev": Face.MPS,
        "gpu-mig.ration.dev": Face.MIG,
        "gpu-slice.ration.dev": Face.UNKNOWN,
    }


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (f'{TYPE} == "mig"', Face.MIG),
        (f'"mig" == {TYPE}', Face.MIG),
        (f'({TYPE} == "gpu-share") && ({SHARING} == "mps" && true)', Face.MPS),
        (f'{SHARING} == "time-slicing"', Face.TIME_SLICED),
        (f'{TYPE} == "gpu-monitor"', Face.MONITOR),
        (f'{TYPE} == "gpu-share"', Face.UNKNOWN),
        (f'{TYPE} == "mig" || true', Face.UNKNOWN),
        (f'!({TYPE} == "mig")', Face.UNKNOWN),
        (f'{TYPE} != "mig"', Face.UNKNOWN),
        (f'{TYPE} in ["mig"]', Face.UNKNOWN),
        (f'has({TYPE}) && {TYPE} == "mig"', Face.MIG),
        (f'{TYPE} == "mig" ? true : false', Face.UNKNOWN),
        (f'{TYPE} == "mig" && {TYPE} == "gpu"', Face.NONE),
        ('device.driver == "other.dev"', Face.FOREIGN),
        ('device.attributes["other.dev"].type == "mig"', Face.UNKNOWN),
        ('"a text with && device.driver == b" != ""', Face.UNKNOWN),
        ("device.", Face.UNKNOWN),
        ("x" * 20_000, Face.UNKNOWN),
        ("(" * 5_000, Face.UNKNOWN),
        ("\ud800", Face.UNKNOWN),
    ],
)
def test_only_what_a_selector_demands_is_known(selector: str, expected: Face) -> None:
    assert face(selector) is expected


def test_the_class_and_the_request_count_together() -> None:
    assert face(f'{TYPE} == "gpu"', device_class="gpu-mig.ration.dev") is Face.NONE


def test_under_another_name_the_classes_of_that_name_count() -> None:
    selector = "device.attributes['gpu.nvidia.com'].type == 'mig'"
    assert face(selector, driver="gpu.nvidia.com") is Face.MIG
    assert face(device_class="gpu.ration.dev", driver="gpu.nvidia.com") is Face.FOREIGN


def test_each_alternative_has_its_own_face() -> None:
    several = dra_requests.Request(
        "gpu",
        "",
        alternatives=(
            dra_requests.Request("gpu/a", "gpu.ration.dev"),
            dra_requests.Request("gpu/b", "gpu-mps.ration.dev", count=2),
        ),
    )
    candidate_ways = validation_selectors.candidate_ways(several, shipped(), names.DRIVER)
    assert [
        (candidate_way.name, candidate_way.face, candidate_way.count)
        for candidate_way in candidate_ways
    ] == [
        ("gpu/a", Face.WHOLE, 1),
        ("gpu/b", Face.MPS, 2),
    ]
