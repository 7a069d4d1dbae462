"""Tests that the proxy reads off the wire what protobuf wrote."""

import pytest

from driver.pb import dra_v1_pb2 as dra
from driver.pb import registration_v1_pb2 as registration
from tests.blackbox.proxy import wire

CLAIM = wire.Claim("ns", "a-claim", "0-1-2")


def test_claims_are_read_as_they_were_written() -> None:
    request = dra.NodePrepareResourcesRequest(
        claims=[dra.Claim(namespace="ns", uid="0-1-2", name="a-claim"), dra.Claim(uid="x" * 300)]
    )
    assert wire.claims(request.SerializeToString()) == (CLAIM, wire.Claim("", "", "x" * 300))


def test_a_request_is_written_as_protobuf_reads_it() -> None:
    request = dra.NodeUnprepareResourcesRequest.FromString(wire.request(CLAIM))
    (claim,) = request.claims
    assert (claim.namespace, claim.name, claim.uid) == ("ns", "a-claim", "0-1-2")


def test_an_endpoint_is_replaced_and_all_else_stays() -> None:
    previous = registration.PluginInfo(
        type="DRAPlugin", name="a.b", endpoint="/x/dra.sock", supported_versions=["v1.DRAPlugin"]
    )
    after = registration.PluginInfo.FromString(
        wire.with_endpoint(previous.SerializeToString(), "/y.sock")
    )
    assert after.endpoint == "/y.sock"
    previous.endpoint = "/y.sock"
    assert after == previous
    info = wire.info(after.SerializeToString())
    assert info == wire.Info("DRAPlugin", "a.b", "/y.sock", ("v1.DRAPlugin",))


def test_versions_are_left_out_and_their_order_stays() -> None:
    previous = registration.PluginInfo(endpoint="/x", supported_versions=["v1.A", "v1.B", "v2.A"])
    after = wire.with_endpoint(previous.SerializeToString(), "/x", ["v1.B", "v9.Z"])
    assert wire.info(after).versions == ("v1.A", "v2.A")


def test_the_error_of_each_claim_is_read() -> None:
    device = dra.Device(pool_name="p", device_name="d", cdi_device_ids=["v/c=1", "v/c=2"])
    prepared = dra.NodePrepareResourcesResponse(
        claims={
            "good": dra.NodePrepareResourceResponse(devices=[device]),
            "bad": dra.NodePrepareResourceResponse(error="no"),
        }
    ).SerializeToString()
    assert wire.refused(prepared, "NodePrepareResources") == {"good": "", "bad": "no"}
    assert wire.cdi_ids(prepared) == {"good": ("v/c=1", "v/c=2"), "bad": ()}
    left = dra.NodeUnprepareResourcesResponse(
        claims={"bad": dra.NodeUnprepareResourceResponse(error="no")}
    ).SerializeToString()
    assert wire.refused(left, "NodeUnprepareResources") == {"bad": "no"}


@pytest.mark.parametrize("message", [b"\x0a\x05ab", b"\x0a", b"\x80", b"\x0b", b"\xff" * 12])
def test_a_truncated_message_is_an_error(message: bytes) -> None:
    with pytest.raises(ValueError, match="byte"):
        list(wire.fields(message))
