"""A finalizer is added and nothing else of the object changes.

The sample is what a 1.37.1 API server answered for a claim that Python's `json.dumps` wrote.
"""

from pathlib import Path

import pytest

from driver import names
from driver.kube import finalizers
from driver.pb import finalizers_pb2 as wire

CLAIM = (Path(__file__).parents[2] / "data/kube/claim-with-spaces.pb").read_bytes()
PARAMETERS = b'{"apiVersion": "other.example.com/v1", "kind": "Any", "b": 1, "a": [1, 2]}'


def read(raw: bytes) -> wire.Kept:
    return wire.Kept.FromString(wire.Envelope.FromString(raw[4:]).raw)


def rest(raw: bytes) -> bytes:
    """All of an object but its finalizers and version, unread fields too."""
    retained = read(raw)
    retained.metadata.ClearField("finalizers")
    retained.metadata.ClearField("resource_version")
    return retained.SerializeToString()


def test_the_finalizer_is_there_once_and_the_version_is_the_one_asked_for() -> None:
    once = finalizers.add_finalizer(CLAIM, names.CLAIM_FINALIZER, "41")
    twice = finalizers.add_finalizer(once, names.CLAIM_FINALIZER, "42")
    assert list(read(twice).metadata.finalizers) == [names.CLAIM_FINALIZER]
    assert read(once).metadata.resource_version == "41"
    assert read(twice).metadata.resource_version == "42"


def test_other_finalizers_stay_in_front() -> None:
    both = finalizers.add_finalizer(
        finalizers.add_finalizer(CLAIM, "a.example.com/x", "1"), "b.example.com/y", "1"
    )
    assert list(read(both).metadata.finalizers) == ["a.example.com/x", "b.example.com/y"]


def test_every_other_byte_stays() -> None:
    changed = finalizers.add_finalizer(CLAIM, names.CLAIM_FINALIZER, "42")
    assert rest(changed) == rest(CLAIM)
    assert PARAMETERS in CLAIM
    assert PARAMETERS in changed
    assert b'{"f:metadata":{"f:annotations":' in changed
    assert len(rest(CLAIM)) > len(CLAIM) - 60


@pytest.mark.parametrize("raw", [b"", b'{"kind": "ResourceClaim"}', b"k8s\x00\xff\xff", CLAIM[:-9]])
def test_bytes_without_an_object_are_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"application/vnd\.kubernetes\.protobuf"):
        finalizers.add_finalizer(raw, names.CLAIM_FINALIZER, "42")
