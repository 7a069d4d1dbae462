from driver import names, reasons, remediation


def test_every_reason_says_what_to_do() -> None:
    assert set(remediation.REASONS) == set(reasons.Reason)


def test_every_condition_of_ours_says_what_it_means_and_what_to_do() -> None:
    ours = {value for key, value in vars(names).items() if key.startswith("CONDITION_")}
    ours |= {names.GANG_READY, names.GANG_FAILED, names.NODE_CONDITION, "Accepted", "Borrowing"}
    assert set(remediation.CONDITIONS) == ours
