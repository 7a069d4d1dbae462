from driver import ids
from driver.scheduling.snapshot import changelog

A, B = ids.NodeName("node-a"), ids.NodeName("node-b")


def test_only_changes_after_a_mark_are_returned() -> None:
    log = changelog.ChangeLog()
    log.add([A])
    mark = log.revision
    log.add([B, A])
    assert log.changed_since(mark) == (log.revision, [B, A])
    assert log.changed_since(log.revision) == (log.revision, [])


def test_changes_since_an_expired_mark_are_unknown() -> None:
    log = changelog.ChangeLog()
    log.add([A])
    previous = log.revision
    log.invalidate()
    assert log.changed_since(previous) is None
    assert log.changed_since(log.revision) == (log.revision, [])


def test_a_log_that_grows_too_long_is_forgotten() -> None:
    log = changelog.ChangeLog()
    previous = log.revision
    for _ in range(3):
        log.add([A] * 30_000)
    assert log.changed_since(previous) is None
