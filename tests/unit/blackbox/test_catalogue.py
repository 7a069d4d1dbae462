"""Every case has a number of its own and says where it comes from."""

import re
from collections import Counter

import pytest

from tests.blackbox import __main__ as program
from tests.blackbox import catalogue

CASES = catalogue.load()


def test_numbers_are_unique_and_without_gaps() -> None:
    numbers = [case.number for case in CASES]
    assert not [key for key, count in Counter(numbers).items() if count > 1]
    groups = Counter(case.group for case in CASES)
    assert set(groups) == {f"BB-{number}" for number in range(1, 12)}
    for group, count in groups.items():
        counts = {case.order()[1] for case in CASES if case.group == group}
        assert counts == set(range(1, count + 1)), group


def test_every_test_is_a_case() -> None:
    tests = sum(
        len(re.findall(r"^def test_", path.read_text(), re.MULTILINE))
        for path in catalogue.CASES.glob("test_*.py")
    )
    assert len(CASES) == tests


@pytest.mark.parametrize("case", CASES, ids=lambda item: item.number)
def test_a_case_names_its_origin_and_stands_in_its_groups_file(case: catalogue.Case) -> None:
    assert re.match(r"(e2e|e2e_node): \S|F-\d+: ours$", case.origin)
    assert case.file.name.startswith(f"test_bb{case.order()[0]:02}_")


def test_cases_are_chosen_by_group_and_by_number() -> None:
    chosen = [case.number for case in catalogue.chosen(CASES, ["bb-5", "BB-1.2"])]
    assert chosen[0] == "BB-1.2"
    assert {name.partition(".")[0] for name in chosen[1:]} == {"BB-5"}


def test_an_unknown_case_is_refused_with_the_known_groups(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert program.main(["--list", "--cases", "BB-99"]) == 2
    assert "--cases BB-99: no such case; expected one of BB-1, BB-2," in capsys.readouterr().err


def test_a_subject_that_is_not_there_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--subject", "nowhere.toml"]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_missing_subject_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main([])
    assert ended.value.code == 2
    assert "--subject is missing" in capsys.readouterr().err
