"""Each row of the evidence page is decided by facts or says what it would need, and only once."""

import pytest

from hack.hardware import rows

ROWS = rows.names(rows.EVIDENCE.read_text())


def test_the_evidence_page_has_rows() -> None:
    assert len(ROWS) > 80


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_either_decided_by_facts_or_open_with_a_reason(row: str) -> None:
    decided, still_open = rows.begins(row, rows.FACTS), rows.begins(row, rows.OPEN)
    assert (decided is None) != (still_open is None), (decided, still_open)


@pytest.mark.parametrize("prefix", [*rows.FACTS, *rows.OPEN])
def test_a_beginning_names_a_row_of_the_page(prefix: str) -> None:
    tables = {**rows.FACTS, **dict.fromkeys(rows.OPEN, ())}
    assert [row for row in ROWS if rows.begins(row, tables) == prefix], prefix


def test_a_fact_decides_the_rows_whose_patterns_it_meets() -> None:
    row = next(row for row in ROWS if row.startswith("Time-slice by"))
    assert rows.decides(row, "slice.set-long")
    assert not rows.decides(row, "mps.words")
