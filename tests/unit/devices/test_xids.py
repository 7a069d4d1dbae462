import pytest

from driver import errors
from driver.devices import xids
from driver.devices.xids import XidClass


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (13, XidClass.APPLICATION),
        (31, XidClass.APPLICATION),
        (63, XidClass.INFORMATIONAL),
        (94, XidClass.INFORMATIONAL),
        (145, XidClass.INFORMATIONAL),
        (48, XidClass.RESET),
        (74, XidClass.RESET),
        (109, XidClass.INFORMATIONAL),
        (119, XidClass.RESET),
        (79, XidClass.NODE),
    ],
)
def test_codes_are_classed_by_who_must_act(code: int, expected: XidClass) -> None:
    assert xids.lookup(xids.TABLE, code).xid_class is expected


def test_an_unknown_code_is_told_and_taints_nothing_by_itself() -> None:
    row = xids.lookup(xids.TABLE, 998)
    assert (row.code, row.xid_class) == (998, XidClass.INFORMATIONAL)


def test_an_override_changes_one_code_and_keeps_its_meaning() -> None:
    changed = xids.build_table({109: XidClass.APPLICATION, 998: XidClass.NODE})
    assert changed[109].xid_class is XidClass.APPLICATION
    assert changed[109].meaning == xids.TABLE[109].meaning
    assert xids.lookup(changed, 998).xid_class is XidClass.NODE
    assert changed[79] == xids.TABLE[79]
    assert xids.TABLE[109].xid_class is XidClass.INFORMATIONAL


def test_overrides_are_read_from_their_text() -> None:
    read = xids.parse_overrides(["109=application", "998=hardware"])
    assert read == {109: XidClass.APPLICATION, 998: XidClass.HARDWARE}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("109", "'109' is no CODE=CLASS; expected one like 109=application"),
        ("ten=reset", "'ten' is no Xid; expected a number from 1 to 999"),
        ("0=reset", "'0' is no Xid; expected a number from 1 to 999"),
        ("1000=reset", "'1000' is no Xid; expected a number from 1 to 999"),
        ("²=reset", "'²' is no Xid; expected a number from 1 to 999"),
        (
            "109=harmless",
            (
                "'harmless' is no class of Xids; expected one of application, informational, "
                "reset, node, hardware"
            ),
        ),
    ],
)
def test_an_override_that_makes_no_sense_is_refused_with_words(text: str, problem: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        xids.parse_override(text)
    assert str(refused.value) == f"--xid-class: {problem}"


def test_a_code_is_not_classed_twice() -> None:
    with pytest.raises(errors.BadInput, match="Xid 109 is given twice"):
        xids.parse_overrides(["109=application", "109=reset"])


def test_meanings_are_there_and_short() -> None:
    assert all(0 < len(row.meaning) <= 90 for row in xids.TABLE.values())
    assert all(row.code == code for code, row in xids.TABLE.items())
