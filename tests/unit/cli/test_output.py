import json

import pytest

from driver.cli import output

TABLE = output.Table(
    (output.Column("NODE"), output.Column("GPU", wide=True), output.Column("FOUND")),
    [("gpu-1", "gpu-0000-18-00-0", "x" * 300), ("gpu-10", "", "two\nlines")],
    empty="no GPU",
)


def test_in_a_pipe_a_row_is_one_line_however_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    output.show_table(TABLE, wide=False)
    assert capsys.readouterr().out == (
        "NODE     FOUND\n" + "gpu-1    " + "x" * 300 + "\n" + "gpu-10   two lines\n"
    )


def test_wide_adds_columns_and_an_empty_cell_stays_a_word() -> None:
    lines = output.text_of(TABLE, wide=True).splitlines()
    assert lines[0] == "NODE     GPU                FOUND"
    assert lines[2] == "gpu-10   -                  two lines"


def test_a_table_without_rows_says_so_and_without_words_says_nothing() -> None:
    assert output.text_of(output.Table(TABLE.columns, [], "no GPU"), wide=False) == "no GPU\n"
    assert output.text_of(output.Table(TABLE.columns, []), wide=False) == ""


def test_a_row_of_another_width_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cells for 3 columns"):
        output.Table(TABLE.columns, [("a",)])


@pytest.mark.parametrize("named", [{"NO_COLOR": "1"}, {}])
def test_a_terminal_is_coloured_unless_no_color_is_set(
    named: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "80", "TERM": "xterm", **named}.items():
        monkeypatch.setenv(name, value)
    column = output.Column("STATE", styles={"wrong": "red"})
    output.show_table(output.Table((column,), [("wrong",), ("[bold] ok",)]), wide=False)
    shown = capsys.readouterr().out
    assert ("\x1b[31m" in shown) == (not named)
    assert "[bold] ok" in shown


@pytest.mark.parametrize("form", [output.Format.JSON, output.Format.YAML])
def test_programs_get_the_document_and_no_table(
    form: output.Format, capsys: pytest.CaptureFixture[str]
) -> None:
    output.show_answer(output.Answer({"a": [1]}, (TABLE, "done")), form)
    shown = capsys.readouterr().out
    assert shown == (
        json.dumps({"a": [1]}, indent=2) + "\n" if form is output.Format.JSON else "a:\n- 1\n"
    )


def test_people_get_tables_and_lines_in_order(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    table = output.Table((output.Column("A"),), [("1",)])
    output.show_answer(output.Answer({}, ("first", table, "last")), output.Format.TABLE)
    assert capsys.readouterr().out == "first\nA\n1\nlast\n"
