import pytest

from driver import errors
from driver.resources import quantities


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("0", 0),
        ("1", 10**9),
        ("1500m", 1_500_000_000),
        ("80Gi", 80 * 2**30 * 10**9),
        ("1e3", 10**12),
        ("1E3", 10**12),
        ("1E", 10**27),
        (".5", 5 * 10**8),
        ("1.", 10**9),
        ("-1k", -(10**12)),
        ("+2", 2 * 10**9),
        ("0.1n", 1),
        (7, 7 * 10**9),
    ],
)
def test_a_quantity_is_read_exactly(text: object, nanos: int) -> None:
    assert quantities.parse(text).nanos == nanos


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 Gi",
        "1_000",
        "NaN",
        "Infinity",
        "5e3Ki",
        "٣",
        "1gi",
        "--1",
        "1e",
        True,
        None,
        1.5,
    ],
)
def test_quantities_refused_by_the_api_server_are_refused(text: object) -> None:
    with pytest.raises(errors.BadInput, match="is not a quantity"):
        quantities.parse(text)


def test_an_exponent_that_would_fill_memory_is_refused() -> None:
    with pytest.raises(errors.BadInput, match="out of range"):
        quantities.parse("1e999999")


def test_quantities_compare_by_amount_not_by_text() -> None:
    assert quantities.parse("1Gi") == quantities.parse("1024Mi")
    assert quantities.parse("1G") < quantities.parse("1Gi")


def test_bytes_are_written_in_the_largest_suffix_that_divides_them() -> None:
    assert quantities.from_bytes(80 * 2**30).text == "80Gi"
    assert quantities.from_bytes(81559 * 2**20).text == "81559Mi"
    assert quantities.from_bytes(0).text == "0"


def test_parts_of_a_unit_round_up() -> None:
    assert quantities.parse("1m").units == 1
    assert quantities.parse("1u").millis == 1


@pytest.mark.parametrize(
    ("nanos", "form", "text"),
    [
        (5 * 2**30 * 10**9, "1Gi", "5Gi"),
        (1536 * 2**20 * 10**9, "1Gi", "1536Mi"),
        (1000 * 10**9, "1Gi", "1000"),
        (5 * 10**8, "1Gi", "500m"),
        (1500 * 10**6, "1", "1500m"),
        (10**12, "1", "1k"),
        (3 * 10**9, "1k", "3"),
        (1, "1", "1n"),
        (0, "1", "0"),
        (0, "1Gi", "0"),
    ],
)
def test_an_amount_is_written_in_the_form_of_another(nanos: int, form: str, text: str) -> None:
    quantity = quantities.format_like(nanos, quantities.parse(form))
    assert (quantity.text, quantity.nanos) == (text, nanos)
    assert quantities.parse(quantity.text).nanos == nanos


@pytest.mark.parametrize("count", [15 * 10**18, 2**63, -(2**64), 2**63 - 1, -(2**62), 3 << 30])
def test_an_amount_of_bytes_that_is_written_reads_the_same(count: int) -> None:
    """Binary suffixes end at 2**63 - 1, as the API server reads them."""
    assert quantities.parse(quantities.from_bytes(count).text) == quantities.from_bytes(count)
    assert quantities.from_bytes(count).units == count
