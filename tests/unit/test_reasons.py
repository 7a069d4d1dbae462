from pathlib import Path

import pytest

from driver import reasons
from driver.descriptions import node, scheduling


def test_every_reason_has_a_meaning_and_every_meaning_a_reason() -> None:
    assert set(reasons.MEANINGS) == {reason.value for reason in reasons.Reason}


def test_no_reason_means_two_things() -> None:
    assert not set(scheduling.MEANINGS) & set(node.MEANINGS)


@pytest.mark.parametrize("former", sorted(reasons.RENAMED))
def test_a_former_name_is_read_as_the_present_one_and_is_no_reason_itself(former: str) -> None:
    assert former not in reasons.KNOWN
    assert reasons.current_name(former) in reasons.KNOWN


def test_present_and_foreign_reasons_are_read_as_they_are() -> None:
    assert [reasons.current_name(name) for name in ("NoFit", "Unschedulable", "")] == [
        *("NoFit", "Unschedulable", "")
    ]


def test_the_upgrade_page_lists_every_renamed_reason() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "upgrade.md").read_text()
    for former, present in reasons.RENAMED.items():
        assert f"| reason | `{former}` | `{present.value}` |" in page
