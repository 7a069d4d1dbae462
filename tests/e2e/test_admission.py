"""Tests of what the API server refuses for us."""

import pytest

from driver import errors
from tests.e2e import grounds, playground

pytestmark = pytest.mark.smoke
OURS = {"key": "ration.dev/allocator", "operator": "Exists"}


@pytest.mark.parametrize(
    "toleration",
    [
        OURS,
        {"operator": "Exists"},
        {"key": "ration.dev/allocator", "value": "controller", "effect": "NoSchedule"},
    ],
)
def test_a_claim_that_tolerates_our_taint_is_refused(
    field: playground.Playground, toleration: playground.Raw
) -> None:
    for built in (playground.a_claim, playground.a_template):
        with pytest.raises(errors.Invalid, match="may not tolerate the device taint"):
            field.create(built("sly", tolerations=[toleration]))


def test_a_first_available_request_is_refused_too(field: playground.Playground) -> None:
    claim = playground.a_claim("sly")
    replaced = {"name": "a", "deviceClassName": "gpu.ration.dev", "tolerations": [OURS]}
    claim["spec"]["devices"]["requests"] = [{"name": "gpu", "firstAvailable": [replaced]}]
    with pytest.raises(errors.Invalid, match="may not tolerate the device taint"):
        field.create(claim)


def test_other_tolerations_are_allowed(field: playground.Playground) -> None:
    field.create(
        playground.a_claim("fine", tolerations=[{"key": "ration.dev/xid", "operator": "Exists"}]),
        playground.a_claim("never", tolerations=[{"operator": "Exists", "effect": "NoExecute"}]),
    )


def test_a_selector_that_does_not_compile_is_refused_by_the_api_server(
    field: playground.Playground,
) -> None:
    with pytest.raises(errors.Invalid, match="Syntax error"):
        field.create(
            playground.a_claim("bad", selectors=[{"cel": {"expression": "device.driver =="}}])
        )


def test_an_expression_that_we_do_not_provide_is_told_and_nothing_is_allocated(
    field: playground.Playground,
) -> None:
    expression = "device == device"
    field.create(
        playground.a_claim("later", selectors=[{"cel": {"expression": expression}}]),
        playground.a_pod("pod", claims=("later",)),
    )
    (note,) = field.told("later", "NoFit")
    assert "SelectorUnusable" in note
    assert "as a value" in note
    assert field.device_of("later") is None


@pytest.mark.skipif(grounds.IS_KIND, reason="the chart's webhook refuses it: test_webhook.py")
def test_an_unknown_field_of_opaque_configuration_is_told_and_nothing_is_allocated(
    field: playground.Playground,
) -> None:
    claim = playground.a_claim("odd")
    parameters = {"apiVersion": "resource.ration.dev/v1alpha1", "kind": "GpuConfig", "shape": 1}
    claim["spec"]["devices"]["config"] = [
        {"opaque": {"driver": "gpu.ration.dev", "parameters": parameters}}
    ]
    field.create(claim, playground.a_pod("pod", claims=("odd",)))
    (note,) = field.told("odd", "NoFit")
    assert "shape: is not a field" in note
    assert field.device_of("odd") is None
