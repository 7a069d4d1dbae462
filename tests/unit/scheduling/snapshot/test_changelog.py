from driver import ids
from driver.scheduling.snapshot import changelog

A, B = ids.NodeName("node-a"), ids.NodeName("node-b")


def test_what_changed_after_a_mark_is_told_and_nothing_before_it() -> None:
    log = changelog.Changes()
    log.add([A])
    mark = log.mark
    log.add([B, A])
    assert log.since(mark) == (log.mark, [B, A])
    assert log.since(log.mark) == (log.mark, [])


def test_of_marks_before_something_was_forgotten_nothing_is_known() -> None:
    log = changelog.Changes()
    log.add([A])
    before = log.mark
    log.forget()
    assert log.since(before) is None
    assert log.since(log.mark) == (log.mark, [])


def test_a_log_that_grows_too_long_is_forgotten() -> None:
    log = changelog.Changes()
    before = log.mark
    for _ in range(3):
        log.add([A] * 30_000)
    assert log.since(before) is None
