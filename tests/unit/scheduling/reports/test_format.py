import datetime as dt

import pytest

from driver.controller.web.render import paths
from driver.scheduling.reports import format as render_format

NOON = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (512 << 20, "512 MiB"),
        (80 << 30, "80 GiB"),
        (int(79.6 * (1 << 30)), "79.6 GiB"),
        (299 << 30, "299 GiB"),
        (1945 << 30, "1.9 TiB"),
    ],
)
def test_memory_is_told_in_the_largest_unit_that_does(size: int, text: str) -> None:
    assert render_format.memory(size) == text


@pytest.mark.parametrize(
    ("stamp", "text"),
    [
        ("2026-11-22T11:59:58Z", "2 s"),
        ("2026-11-22T11:15:00.500000Z", "44 min"),
        ("2026-11-22T09:00:00+00:00", "3 h"),
        ("2026-11-01T12:00:00Z", "21 d"),
        ("2026-11-22T12:00:05Z", "0 s"),
        ("3h", ""),
        ("", ""),
    ],
)
def test_an_age_is_told_in_the_largest_unit_and_never_of_the_future(stamp: str, text: str) -> None:
    assert render_format.age(stamp, NOON) == text


def test_a_time_is_told_in_utc_and_what_is_none_as_it_is() -> None:
    assert render_format.at("2026-11-22T13:00:05+01:00") == "2026-11-22 12:00:05"
    assert render_format.at("3h") == "3h"


def test_nothing_of_nothing_is_no_percent() -> None:
    assert (render_format.percent(0, 0), render_format.percent(5, 8)) == ("0%", "62%")


def test_every_path_escapes_what_it_is_given() -> None:
    assert paths.claim("a/b") == "/claims/a/b"
    assert paths.gpu("n/../x", "g?y") == "/nodes/n%2F..%2Fx/gpus/g%3Fy"
    assert paths.object_page("ResourceClaim", "a", "b") == "/claims/a/b"
    assert paths.object_page("Node", "", "n") == "/nodes/n"
    assert paths.object_page("Secret", "a", "b") == ""


def test_the_twin_of_a_page_is_below_the_api_with_the_same_question() -> None:
    assert paths.twin("/", "mode=mig") == "/api/v1/nodes?mode=mig"
    assert paths.twin("/claims/a/b") == "/api/v1/claims/a/b"
