from collections.abc import Iterable
from typing import Any

import pytest

from driver import errors, ids
from driver.kube import store

Change = tuple[str, str | None, str | None]


def obj(name: str, version: int, value: str = "") -> dict[str, Any]:
    return {
        "metadata": {"namespace": "ns", "name": name, "resourceVersion": str(version)},
        "value": value or f"{name}@{version}",
    }


def parse(raw: dict[str, Any]) -> str:
    if raw["value"] == "bad":
        raise errors.BadInput("value", "is bad")
    return str(raw["value"])


class Watched:
    """A store, what was heard of it, and what could not be read."""

    def __init__(self) -> None:
        self.store: store.Store[str] = store.Store()
        self.heard: list[Change] = []
        self.bad: list[str] = []
        self.store.set_parser(parse, lambda key, _: self.bad.append(key))
        self.store.subscribe(lambda *change: self.heard.append(change))

    def values(self) -> Iterable[str]:
        return sorted(self.store.snapshot().values())


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_listing_replaces_what_it_lacks(watched: Watched) -> None:
    watched.store.replace([obj("a", 1), obj("b", 2)], 2)
    watched.heard.clear()
    watched.store.replace([obj("b", 2), obj("c", 3)], 4)
    assert watched.values() == ["b@2", "c@3"]
    assert watched.heard == [("ns/a", "a@1", None), ("ns/c", None, "c@3")]


def test_events_change_one_object_each(watched: Watched) -> None:
    watched.store.apply(obj("a", 1))
    watched.store.apply(obj("a", 2))
    watched.store.apply(obj("a", 3), deleted=True)
    assert watched.heard == [
        ("ns/a", None, "a@1"),
        ("ns/a", "a@1", "a@2"),
        ("ns/a", "a@2", None),
    ]


def test_versions_are_compared_as_numbers(watched: Watched) -> None:
    watched.store.apply(obj("a", 9))
    watched.store.apply(obj("a", 10))
    assert watched.store.get(ids.Key("ns/a")) == "a@10"


def test_our_write_is_visible_at_once_and_older_events_do_not_undo_it(
    watched: Watched,
) -> None:
    watched.store.apply(obj("a", 5))
    watched.store.observe(obj("a", 8, "ours"))
    watched.store.apply(obj("a", 7))
    assert watched.values() == ["ours"]
    watched.store.apply(obj("a", 8))
    assert watched.heard == [("ns/a", None, "a@5"), ("ns/a", "a@5", "ours")]


def test_a_late_answer_does_not_bring_back_what_the_watch_saw_deleted(watched: Watched) -> None:
    watched.store.apply(obj("a", 5))
    watched.store.apply(obj("a", 9), deleted=True)
    watched.store.observe(obj("a", 7))
    assert watched.values() == []


def test_a_late_answer_does_not_bring_back_what_is_gone_since_a_bookmark(watched: Watched) -> None:
    watched.store.bookmark(9)
    watched.store.observe(obj("a", 7))
    assert watched.values() == []


def test_an_event_told_twice_does_not_bring_back_what_was_deleted_between(
    watched: Watched,
) -> None:
    watched.store.apply(obj("a", 5))
    watched.store.apply(obj("a", 6), deleted=True)
    watched.store.apply(obj("a", 5))
    assert watched.values() == []


def test_a_listing_counts_what_the_watch_should_have_told(watched: Watched) -> None:
    assert watched.store.replace([obj("a", 3), obj("b", 4)], 10) == 0
    watched.store.apply(obj("b", 20))
    news = [obj("a", 15), obj("b", 20), obj("c", 18), obj("d", 25)]
    assert watched.store.replace(news, 30) == 2  # "d" may have come after the watch's last word
    assert watched.values() == ["a@15", "b@20", "c@18", "d@25"]


def test_an_object_made_after_the_listing_survives_it(watched: Watched) -> None:
    watched.store.replace([], 5)
    watched.store.observe(obj("a", 8))
    watched.store.replace([], 7)
    assert watched.values() == ["a@8"]
    watched.store.replace([], 9)
    assert watched.values() == []


def test_a_restored_server_is_believed_although_its_versions_are_older(watched: Watched) -> None:
    watched.store.replace([obj("a", 100), obj("b", 90)], 100)
    watched.store.replace([obj("a", 40)], 50)
    assert watched.values() == ["a@40"]


def test_an_object_that_cannot_be_read_is_kept_out_and_reported(watched: Watched) -> None:
    watched.store.replace([obj("a", 1, "bad"), obj("b", 2)], 2)
    assert watched.values() == ["b@2"]
    assert watched.bad == ["ns/a"]


def test_an_object_that_becomes_unreadable_leaves(watched: Watched) -> None:
    watched.store.apply(obj("a", 1))
    watched.store.apply(obj("a", 2, "bad"))
    assert watched.values() == []
    assert watched.heard[-1] == ("ns/a", "a@1", None)


def test_a_snapshot_never_changes_and_is_shared_until_something_does(watched: Watched) -> None:
    watched.store.apply(obj("a", 1))
    first = watched.store.snapshot()
    assert watched.store.snapshot() is first
    watched.store.apply(obj("b", 2))
    assert list(first) == ["ns/a"]
    assert sorted(watched.store.snapshot()) == ["ns/a", "ns/b"]


def test_a_handler_may_write_to_the_store_and_order_is_kept(watched: Watched) -> None:
    def follow(key: ids.Key, _old: str | None, new: str | None) -> None:
        if new == "a@1":
            watched.store.observe(obj("a", 2))
            assert watched.store.get(key) == "a@2"

    watched.store.subscribe(follow)
    watched.store.apply(obj("a", 1))
    assert watched.heard == [("ns/a", None, "a@1"), ("ns/a", "a@1", "a@2")]


def test_a_store_without_a_parser_says_so() -> None:
    empty: store.Store[str] = store.Store()
    with pytest.raises(LookupError, match="no parser"):
        empty.apply(obj("a", 1))


def test_the_watch_event_of_our_own_write_is_not_parsed_again() -> None:
    result: store.Store[str] = store.Store()
    read: list[str] = []

    def noting(raw: dict[str, Any]) -> str:
        read.append(raw["value"])
        return parse(raw)

    result.set_parser(noting, lambda _key, _error: None)
    result.observe(obj("a", 8, "ours"))
    result.apply(obj("a", 8))
    result.apply(obj("a", 9))
    assert read == ["ours", "a@9"]
