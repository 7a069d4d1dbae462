from driver import reasons
from driver.descriptions import node, scheduling


def test_every_reason_has_a_meaning_and_every_meaning_a_reason() -> None:
    assert set(reasons.MEANINGS) == {reason.value for reason in reasons.Reason}


def test_no_reason_means_two_things() -> None:
    assert not set(scheduling.MEANINGS) & set(node.MEANINGS)
