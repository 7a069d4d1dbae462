import dataclasses

import pytest

from driver.devices import faces, model
from tests.support.builders.gpus import EIGHTH, HALF, NAME, PLAIN, a_gpu, an_instance

FREE = [f"{NAME}-mig-1g10gb-0", f"{NAME}-mig-1g10gb-1", f"{NAME}-mig-3g40gb-0"]
SHARES = [f"{NAME}-mps", f"{NAME}-ts"]


def names_of(gpu: model.Gpu, offering: faces.Offering | None = None) -> list[str]:
    return [face.name for face in faces.offered_faces(gpu, offering or faces.Offering())]


def test_a_gpu_without_mig_is_whole_and_shared() -> None:
    assert names_of(PLAIN) == [NAME, *SHARES]


def test_mig_placements_stand_between_by_size() -> None:
    assert names_of(a_gpu()) == [NAME, *FREE, f"{NAME}-mig-3g40gb-4", *SHARES]


def test_only_the_faces_of_the_present_mode_where_a_change_needs_a_reset() -> None:
    assert names_of(a_gpu(resetless=False)) == [NAME, *SHARES]
    assert names_of(a_gpu(enabled=True, resetless=False)) == [*FREE, f"{NAME}-mig-3g40gb-4"]


def test_a_mode_that_can_be_turned_off_hides_nothing() -> None:
    assert names_of(a_gpu(enabled=True)) == names_of(a_gpu())


def test_an_instance_we_did_not_make_takes_its_place_and_what_overlaps_it() -> None:
    offered_faces = faces.offered_faces(a_gpu(an_instance(HALF, 0), enabled=True), faces.Offering())
    assert [face.name for face in offered_faces] == [f"{NAME}-mig-3g40gb-0", f"{NAME}-mig-3g40gb-4"]
    first = offered_faces[0]
    assert isinstance(first, faces.MigFace)
    assert first.instance is not None
    assert first.instance.uuid == "MIG-1"


def test_an_instance_that_is_no_device_takes_its_place_and_is_not_shown() -> None:
    gpu = a_gpu(an_instance(HALF, 0, uuid=None), enabled=True)
    assert names_of(gpu) == [f"{NAME}-mig-3g40gb-4"]


def test_an_instance_of_ours_hides_nothing_and_is_shown_as_its_place() -> None:
    ours = dataclasses.replace(an_instance(HALF, 0), ours=True)
    assert names_of(a_gpu(ours, enabled=True)) == names_of(a_gpu())
    shown = faces.offered_faces(a_gpu(ours, enabled=True), faces.Offering())
    assert all(face.instance is None for face in shown if isinstance(face, faces.MigFace))
    fixed = a_gpu(ours, enabled=True, resetless=False)
    assert names_of(fixed) == [*FREE, f"{NAME}-mig-3g40gb-4"]


def test_beside_an_instance_of_ours_one_of_somebody_else_hides_what_it_meets() -> None:
    ours = dataclasses.replace(an_instance(HALF, 4, "MIG-2"), ours=True)
    gpu = a_gpu(ours, an_instance(EIGHTH, 1), enabled=True)
    assert names_of(gpu) == [FREE[0], FREE[1], f"{NAME}-mig-3g40gb-4"]


def test_static_mig_does_not_show_what_we_have_made() -> None:
    ours = dataclasses.replace(an_instance(EIGHTH, 1), ours=True)
    static = faces.Offering(mig=faces.MigMode.STATIC)
    assert names_of(a_gpu(ours, enabled=True), static) == []


def test_a_part_knows_what_lies_at_its_place_whoever_made_it() -> None:
    ours = dataclasses.replace(an_instance(HALF, 0), ours=True)
    shown = faces.offered_faces(a_gpu(ours, enabled=True), faces.Offering())
    instances = {face.name: face.existing for face in shown if isinstance(face, faces.MigFace)}
    assert instances == {**dict.fromkeys([*FREE, f"{NAME}-mig-3g40gb-4"]), FREE[2]: ours}


def test_a_face_is_found_by_its_name_and_no_other_is() -> None:
    gpu = a_gpu()
    shown = list(faces.all_faces(gpu))
    assert {face.name: faces.find_face(gpu, face.name) for face in shown} == {
        face.name: face for face in shown
    }
    assert faces.find_face(gpu, f"{NAME}-mig-9g90gb-0") is None


def test_static_mig_is_the_instances_that_exist() -> None:
    static = faces.Offering(mig=faces.MigMode.STATIC)
    gpu = a_gpu(an_instance(EIGHTH, 1), enabled=True)
    assert names_of(gpu, static) == [f"{NAME}-mig-1g10gb-1"]
    assert names_of(a_gpu(enabled=True), static) == []
    assert names_of(a_gpu(), static) == [NAME, *SHARES]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("whole", NAME),
        ("mps", SHARES[0]),
        ("time-slicing", SHARES[1]),
        ("monitor", f"{NAME}-monitor"),
    ],
)
def test_a_gpu_is_offered_as_what_is_asked_for(kind: str, expected: str) -> None:
    offering = faces.Offering(kinds=frozenset({faces.Kind(kind)}))
    assert names_of(a_gpu(), offering) == [expected]


def test_a_monitor_takes_nothing_and_stays_beside_anything() -> None:
    offering = faces.Offering(kinds=frozenset(faces.Kind))
    *_, last = faces.offered_faces(a_gpu(an_instance(HALF, 0), enabled=True), offering)
    assert isinstance(last, faces.MonitorFace)
    assert not last.consumes


@pytest.mark.parametrize("suffix", ["", "-mig-1g10gb-me-4", "-mps", "-ts", "-monitor"])
def test_every_face_tells_its_gpu_by_its_name(suffix: str) -> None:
    assert faces.gpu_name(f"{NAME}{suffix}") == NAME


def test_another_drivers_device_is_of_no_gpu() -> None:
    assert faces.gpu_name("nic-0") is None
