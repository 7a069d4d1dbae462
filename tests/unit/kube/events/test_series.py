from driver.kube.events import series
from tests.fakes import clock

POD = series.ObjectRef("Pod", "v1", "ns", "trainer", "uid-1")


class Teller:
    def __init__(self) -> None:
        self.time = clock.FakeClock()
        self.series = series.EventSeries("ration-controller", "controller-0")

    def tell(
        self,
        message: str = "no GPU is free",
        about: series.ObjectRef = POD,
        *,
        warning: bool = True,
    ) -> series.Create | series.Increment | None:
        moment, at_s = self.time.now(), self.time.monotonic()
        return self.series.next_write(
            series.Occurrence(about, "NoFit", message, warning, None, moment, at_s)
        )


def test_the_first_event_has_all_that_the_api_requires() -> None:
    written = Teller().tell()
    assert isinstance(written, series.Create)
    body = written.body
    assert written.namespace == body["metadata"]["namespace"] == "ns"
    assert body["metadata"]["name"].startswith("trainer.")
    assert body["eventTime"] == "2026-11-21T09:00:00.000000Z"
    assert (body["reportingController"], body["reportingInstance"]) == (
        "ration-controller",
        "controller-0",
    )
    assert (body["reason"], body["action"], body["type"]) == ("NoFit", "NoFit", "Warning")
    assert body["regarding"]["uid"] == "uid-1"


def test_the_same_event_again_raises_the_count() -> None:
    teller = Teller()
    first = teller.tell()
    teller.time.advance(30)
    teller.tell()
    third = teller.tell()
    assert isinstance(first, series.Create)
    assert isinstance(third, series.Increment)
    assert third.name == first.body["metadata"]["name"]
    assert third.body["series"] == {"count": 3, "lastObservedTime": "2026-11-21T09:00:30.000000Z"}


def test_after_ten_quiet_minutes_it_is_a_new_event() -> None:
    teller = Teller()
    teller.tell()
    teller.time.advance(601)
    assert isinstance(teller.tell(), series.Create)


def test_other_words_or_another_object_are_another_event() -> None:
    teller = Teller()
    teller.tell()
    other = series.ObjectRef("Pod", "v1", "ns", "server", "uid-2")
    assert isinstance(teller.tell("node-a is cordoned"), series.Create)
    assert isinstance(teller.tell(about=other), series.Create)


def test_a_noisy_object_is_silenced_and_the_others_are_not() -> None:
    teller = Teller()
    written = [teller.tell(f"try {n}") for n in range(30)]
    assert sum(w is not None for w in written) == series.BURST
    other = series.ObjectRef("Pod", "v1", "ns", "server", "uid-2")
    assert teller.tell(about=other) is not None
    teller.time.advance(series.REFILL_S)
    assert teller.tell("later") is not None


def test_a_long_message_is_cut_at_the_bytes_the_server_counts() -> None:
    written = Teller().tell("ü" * 1000)
    assert isinstance(written, series.Create)
    note = written.body["note"]
    assert len(note.encode()) <= 1024
    assert note.endswith("...")


def test_an_object_without_a_namespace_has_its_events_in_default() -> None:
    node = series.ObjectRef("Node", "v1", "", "node-a", "uid-3")
    written = Teller().tell(about=node)
    assert isinstance(written, series.Create)
    assert written.namespace == "default"
    assert "namespace" not in written.body["regarding"]


def test_an_event_series_ends_after_ten_minutes() -> None:
    teller = Teller()
    for number in range(100):
        gone = series.ObjectRef("Pod", "v1", "ns", f"pod-{number}", f"uid-{number}")
        teller.tell(about=gone)
        teller.time.advance(30)
    teller.tell()
    assert teller.series.entry_count == 2 * (series.WINDOW_S / 30 + 1)
