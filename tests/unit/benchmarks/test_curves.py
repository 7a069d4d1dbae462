"""Tests of the cost curves that are drawn from stored figures."""

import re

from benchmarks import curves, machine, record

HERE = machine.Machine(2, "a processor", 24, 1.0)
LINE = curves.Line("ours", "1 GPU, SIZE nodes", per_second=True)
OTHER = curves.Line("theirs", "1 GPU, SIZE nodes", reference=True, per_second=True)
PICTURE = curves.Picture("allocator", "A decision", "nodes", "ms", (LINE, OTHER))


def rate(nodes: str, ours: float, theirs: float | None = None) -> record.Figure:
    name = f"1 GPU, {nodes} nodes"
    return record.Figure(name, "decisions/s", ours, theirs, commit="abc1234")


def run(*figures: record.Figure, suite: str = "allocator") -> record.Run:
    return record.Run(suite, "2026-11-22", HERE, {}, figures)


MEASURED = run(rate("1,000", 500, 100), rate("10", 2000, 1000), rate("100", 1000))


def test_points_are_sorted_by_the_size_in_the_name() -> None:
    assert LINE.points(MEASURED) == [(10, 0.5), (100, 1.0), (1000, 2.0)]


def test_a_size_without_a_reference_has_no_point_of_it() -> None:
    assert OTHER.points(MEASURED) == [(10, 1.0), (1000, 10.0)]


def test_figures_under_other_names_have_their_size_named() -> None:
    line = curves.Line("x", "SIZE at once", others={"alone": 1})
    figures = record.Figure("8 at once", "ms", 9.0), record.Figure("alone", "ms", 2.0)
    assert line.points(run(*figures)) == [(1, 2.0), (8, 9.0)]


def test_the_same_figures_make_the_same_picture() -> None:
    first, second = (curves.svg(PICTURE, MEASURED, "#000000") for _ in range(2))
    assert first == second


def test_no_name_in_a_picture_is_a_hash_of_its_layout() -> None:
    picture = curves.svg(PICTURE, MEASURED, "#000000")
    assert set(re.findall(r'clipPath id="(.+?)"', picture)) == {"clip1"}
    assert set(re.findall(r"url\(#(.+?)\)", picture)) == {"clip1"}


def test_a_picture_has_its_lines_its_machine_and_its_commit_as_text() -> None:
    picture = curves.svg(PICTURE, MEASURED, "#123456")
    for text in ("ours", "theirs", "A decision", "1,000", "2 x a processor", "commit abc1234"):
        assert text in picture
    assert "#123456" in picture


def test_a_size_of_zero_has_a_place_on_the_axis() -> None:
    figures = (record.Figure(f"{size} live", "ms", 1.0 + size) for size in (0, 16, 256))
    picture = curves.Picture("hold", "", "", "", (curves.Line("wall", "SIZE live"),))
    assert ">0<" in curves.svg(picture, run(*figures, suite="hold"), "#000000")


def test_a_suite_without_enough_sizes_has_no_picture() -> None:
    assert curves.pictures([run(rate("10", 1), rate("30", 1))]) == {}


def test_stored_results_have_every_picture_for_light_and_dark() -> None:
    schemes = ("light", "dark")
    names = {f"{name}-{scheme}.svg" for name in curves.PICTURES for scheme in schemes}
    assert curves.pictures(record.load()).keys() == names
