from typing import Any

from driver.resources.core import pods, volumes
from tests.support.builders import objects


def a_claim(**spec: Any) -> volumes.VolumeClaim:
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    return volumes.parse_claim(
        {"metadata": objects.meta("data", annotations=bound), "spec": {"volumeName": "d", **spec}}
    )


def test_a_claim_is_bound_once_its_binding_is_complete() -> None:
    raw = {"metadata": objects.meta("data"), "spec": {"volumeName": "disk"}}
    assert a_claim().bound
    assert not volumes.parse_claim(raw).bound


def test_the_class_of_the_beta_annotation_goes_first() -> None:
    notes = {"volume.beta.kubernetes.io/storage-class": "old"}
    raw = {"metadata": objects.meta("a", annotations=notes), "spec": {"storageClassName": "new"}}
    assert volumes.parse_claim(raw).storage_class == "old"


def test_a_reference_without_a_uid_names_any_claim_of_that_name() -> None:
    claim = a_claim()
    assert volumes.ClaimRef("default", "data").names(claim)
    assert volumes.ClaimRef("default", "data", claim.uid).names(claim)
    assert not volumes.ClaimRef("default", "data", "another").names(claim)


def test_an_ephemeral_volume_has_a_claim_of_its_own() -> None:
    pod = objects.pod("web", volumes=[{"name": "tmp", "ephemeral": {}}])
    assert (pod.volume_claims, pod.ephemeral_claims) == (("web-tmp",), frozenset({"web-tmp"}))


def mounting(**source: Any) -> pods.Pod:
    return objects.pod(volumes=[{"name": "disk", **source}])


def test_a_disk_that_is_written_is_mounted_once() -> None:
    (gce,) = mounting(gcePersistentDisk={"pdName": "x"}).disks
    (read,) = mounting(gcePersistentDisk={"pdName": "x", "readOnly": True}).disks
    (ebs,) = mounting(awsElasticBlockStore={"volumeID": "x", "readOnly": True}).disks
    assert gce.collides(read)
    assert not read.collides(read)
    assert ebs.collides(ebs)
    assert not ebs.collides(gce)


def test_rbd_images_are_one_where_they_share_a_monitor() -> None:
    def image(*monitors: str) -> Any:
        return mounting(rbd={"image": "x", "pool": "rbd", "monitors": list(monitors)}).disks[0]

    assert image("a", "b").collides(image("b"))
    assert not image("a").collides(image("b"))
