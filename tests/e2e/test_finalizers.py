"""The finalizer of new claims, by the API server's admission: which get it, and that it goes."""

import contextlib
from typing import Any

import pytest

from driver import errors, names
from driver.kube import gvr
from tests.e2e import playground

Raw = dict[str, Any]


def requesting(**request: Any) -> Raw:
    """A ResourceClaim of one request."""
    claim = playground.a_claim("claim")
    claim["spec"]["devices"]["requests"] = [{"name": "gpu", **request}]
    return claim


OURS: dict[str, Raw] = {
    "a class": {"exactly": {"deviceClassName": "gpu-slice.ration.dev"}},
    "an alternative": {
        "firstAvailable": [
            {"name": "theirs", "deviceClassName": "gpu.example.com"},
            {"name": "ours", "deviceClassName": "gpu-mig.ration.dev"},
        ]
    },
}
FOREIGN: dict[str, Raw] = {
    "a class": {"exactly": {"deviceClassName": "gpu.example.com"}},
    "alternatives": {"firstAvailable": [{"name": "one", "deviceClassName": "nic.example.com"}]},
}


def created(field: playground.Playground, claim: Raw) -> list[str]:
    """The finalizers of a claim as the API server answers its creation."""
    answer = field.kube.create(gvr.RESOURCE_CLAIMS, claim, field.namespace)
    return list(answer["metadata"].get("finalizers", ()))


def is_gone(field: playground.Playground) -> bool:
    with contextlib.suppress(errors.NotFound):
        field.kube.get(gvr.RESOURCE_CLAIMS, "claim", field.namespace)
        return False
    return True


@pytest.mark.parametrize("request_kind", OURS)
def test_a_claim_of_our_classes_has_the_finalizer_and_can_be_deleted(
    field: playground.Playground, request_kind: str
) -> None:
    assert created(field, requesting(**OURS[request_kind])) == [names.CLAIM_FINALIZER]
    field.kube.delete(gvr.RESOURCE_CLAIMS, "claim", field.namespace)
    playground.until(lambda: is_gone(field), 20, "the claim is gone")


@pytest.mark.parametrize("request_kind", FOREIGN)
def test_a_claim_of_other_classes_has_none(field: playground.Playground, request_kind: str) -> None:
    assert created(field, requesting(**FOREIGN[request_kind])) == []


def test_other_finalizers_of_a_claim_and_its_parameters_stay(field: playground.Playground) -> None:
    parameters = {
        "apiVersion": "gpu.ration.dev/v1alpha1",
        "kind": "TimeSlicingConfig",
        "interval": "Short",
    }
    claim = playground.a_claim("claim")
    claim["spec"]["devices"]["config"] = [
        {"opaque": {"driver": "other.example.com", "parameters": parameters}}
    ]
    claim["metadata"]["finalizers"] = ["example.com/mine"]
    finalizers = created(field, claim)
    assert sorted(finalizers) == ["example.com/mine", names.CLAIM_FINALIZER]
    present = field.kube.get(gvr.RESOURCE_CLAIMS, "claim", field.namespace)
    (config,) = present["spec"]["devices"]["config"]
    assert config["opaque"]["parameters"] == parameters
    body = {"metadata": {"finalizers": None}}
    field.kube.patch(gvr.RESOURCE_CLAIMS, "claim", body, namespace=field.namespace)
