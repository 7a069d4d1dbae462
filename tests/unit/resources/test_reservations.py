"""Reservations: read, and their status as it is written."""

from typing import Any

import pytest

from driver import errors
from driver.api import reservations as api
from driver.resources import quantities, reservations
from driver.resources.dra import claims
from tests.support.builders import objects

HELD = reservations.HeldDevice(
    0,
    objects.node("node-a").name,
    claims.DeviceId("gpu.ration.dev", "node-a", "gpu-0-mps"),
    {"memory": quantities.parse("20Gi")},
)


def a_reservation(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": objects.meta("kept", creationTimestamp="2026-11-21T09:00:00Z"),
        "spec": {"for": {"gang": "train"}, **spec},
    }


def test_held_devices_read_back_as_written() -> None:
    reservation = reservations.parse(a_reservation())
    accepted = reservations.render_accepted(reservation, "", "", "2026-11-21T09:00:00Z")
    status = reservations.render_status(reservation, "Held", [HELD], accepted, "")
    again = reservations.parse({**a_reservation(), "status": status})
    assert again.held == (HELD,)
    assert (again.phase, status["count"], status["nodes"]) == ("Held", 1, "node-a")
    assert reservations.is_same_status(again.status, status)


def test_a_condition_keeps_its_time_as_long_as_it_stands() -> None:
    reservation = reservations.parse(a_reservation())
    first = reservations.render_accepted(reservation, "", "", "2026-11-21T09:00:00Z")
    later = reservations.parse({**a_reservation(), "status": {"conditions": [first]}})
    assert reservations.render_accepted(later, "", "", "2026-11-21T10:00:00Z") == first
    refused = reservations.render_accepted(later, "spec.start: late", "Odd", "2026-11-21T10:00:00Z")
    assert (refused["status"], refused["lastTransitionTime"]) == ("False", "2026-11-21T10:00:00Z")


@pytest.mark.parametrize("field", ["start", "since"])
def test_a_time_that_is_none_is_refused_with_its_field(field: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        reservations.parse(a_reservation(**{field: "2026-13-45T25:61:61Z"}))
    assert caught.value.location == f"spec.{field}"


def test_a_preemption_reservation_names_its_victims_and_ends_with_its_pod() -> None:
    reservation = reservations.Reservation(
        "default",
        "preempt-1",
        "",
        "",
        "2026-11-21T09:00:00Z",
        api.Holder(pod="high", uid="u"),
        evicting=(reservations.Victim("other", "low", objects.pod("low").uid),),
    )
    body = reservations.render(reservation)
    assert body["spec"] == {
        "for": {"pod": "high", "uid": "u"},
        "ttl": "3600s",
        "evicting": [{"namespace": "other", "name": "low", "uid": objects.uid_of("low")}],
    }
    meta = body["metadata"]
    assert isinstance(meta, dict)
    assert meta["ownerReferences"][0]["uid"] == "u"


@pytest.mark.parametrize(
    ("holder", "words"),
    [
        (api.Holder(gang="train"), "gang train"),
        (api.Holder(pod="a"), "pod a"),
        (api.Holder(queue="vision"), "queue vision"),
        (api.Holder(labels={"b": "2", "a": "1"}), "a=1,b=2"),
    ],
)
def test_the_holder_is_described_in_words(holder: api.Holder, words: str) -> None:
    assert reservations.describe_holder(holder) == words
