import pytest

from simulator import mps_limits

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("10G", 10 * GIB),
        ("512M", GIB // 2),
        ("1GB", GIB),
        ("0M", 0),
        ("10", None),
        ("1.5G", None),
        ("10g", None),
        ("-1G", None),
        ("G", None),
        ("", None),
    ],
)
def test_a_size_is_a_whole_number_and_a_unit(text: str, size: int | None) -> None:
    assert mps_limits.parse_size(text) == size


@pytest.mark.parametrize(
    ("mebibytes", "shown"), [(512, "512M"), (1023, "1023M"), (1024, "1G"), (4606, "4G")]
)
def test_a_limit_is_shown_in_whole_gibibytes_from_one_on(mebibytes: int, shown: str) -> None:
    assert mps_limits.render_size(mebibytes << 20) == shown


@pytest.mark.parametrize(
    ("text", "value"),
    [("50", 50.0), ("12.5", 12.5), ("100", 100.0), ("0", None), ("101", None), ("ten", None)],
)
def test_a_percentage_is_above_zero_and_up_to_a_hundred(text: str, value: float | None) -> None:
    assert mps_limits.parse_percentage(text) == value


def test_malformed_limits_of_a_client_are_ignored() -> None:
    read = mps_limits.parse_pinned("0=1G, 1=512MB,2=lots,3,=")
    assert read == {"0": GIB, "1": GIB // 2}


def test_the_smaller_limit_binds_each_by_the_number_its_side_knows_the_device_by() -> None:
    server = {"0": 8 * GIB, "1": 2 * GIB}
    assert mps_limits.bound_memory(server, {}, [(1, "GPU-b")]) == [2 * GIB]
    assert mps_limits.bound_memory(server, {"0": GIB}, [(0, "GPU-a")]) == [GIB]
    assert mps_limits.bound_memory(server, {"0": 4 * GIB}, [(1, "GPU-b")]) == [2 * GIB]
    both = [(0, "GPU-a"), (1, "GPU-b")]
    assert mps_limits.bound_memory(server, {"1": GIB}, both) == [8 * GIB, GIB]


def test_limits_may_go_by_uuid_and_a_servers_by_index_comes_first() -> None:
    assert mps_limits.bound_memory({}, {"GPU-a": GIB}, [(0, "GPU-a")]) == [GIB]
    assert mps_limits.bound_memory({"GPU-a": GIB}, {}, [(0, "GPU-a")]) == [GIB]
    both = {"0": 4 * GIB, "GPU-a": 2 * GIB}
    assert mps_limits.bound_memory(both, {}, [(0, "GPU-a")]) == [4 * GIB]


@pytest.mark.parametrize("unseen", ["1", "GPU-b"])
def test_a_limit_for_an_invisible_device_lifts_every_limit(
    unseen: str,
) -> None:
    server = {"0": 8 * GIB}
    request = {"0": GIB, unseen: GIB}
    assert mps_limits.bound_memory(server, request, [(0, "GPU-a")]) == [None]


def test_a_client_only_lowers_its_share_of_threads() -> None:
    assert mps_limits.percentage_of(50.0, "20") == 20.0
    assert mps_limits.percentage_of(50.0, "80") == 50.0
    assert mps_limits.percentage_of(50.0, "much") == 50.0


def test_a_client_has_the_servers_priority_unless_it_names_one() -> None:
    assert [mps_limits.priority_of(1, entry) for entry in ("", "0", "1", "7")] == [1, 0, 1, 1]


def test_a_device_has_48_clients_and_60_from_driver_590_on() -> None:
    assert [mps_limits.most_clients(major) for major in (535, 580, 590, 615)] == [48, 48, 60, 60]


def test_a_mig_device_has_its_part_of_the_clients() -> None:
    assert [mps_limits.most_clients(580, slices, 7) for slices in (1, 2, 3, 7)] == [6, 13, 20, 48]


def test_a_client_counts_for_two_connections_unless_it_asks_for_more() -> None:
    values = ("", "8", "32", "33", "0", "few")
    assert [mps_limits.connections_of(text) for text in values] == [2, 8, 32, 2, 2, 2]
