from driver import ids
from driver.scheduling.snapshot import changelog

A, B = ids.NodeName("node-a"), ids.NodeName("node-b")


def test_what_changed_after_a_mark_is_told_and_nothing_before_it() -> None:
    log = changelog.ChangeLog()
    log.add([A])
    mark = log.revision
    log.add([B, A])
    assert log.changed_since(mark) == (log.revision, [B, A])
    assert log.changed_since(log.revision) == (log.revision, [])


def test_of_marks_before_something_was_forgotten_nothing_is_known() -> None:
    log = changelog.ChangeLog()
    log.add([A])
    before = log.revision
    log.invalidate()
    assert log.changed_since(before) is None
    assert log.changed_since(log.revision) == (log.revision, [])


def test_a_log_that_grows_too_long_is_forgotten() -> None:
    log = changelog.ChangeLog()
    before = log.revision
    for _ in range(3):
        log.add([A] * 30_000)
    assert log.changed_since(before) is None
