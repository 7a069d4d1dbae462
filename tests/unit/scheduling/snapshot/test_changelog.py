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


def test_of_a_log_that_grows_too_long_the_oldest_changes_are_forgotten() -> None:
    log = changelog.ChangeLog()
    first, mark = log.revision, 0
    for turn in range(20):
        mark = log.revision
        log.add([A] * 4_000)
        log.add([ids.NodeName(f"node-{turn}")])
        read = log.changed_since(mark)
        assert read is not None
        assert read == (log.revision, [A] * 4_000 + [ids.NodeName(f"node-{turn}")])
    assert log.changed_since(first) is None
    assert log.revision == first + 20 * 4_001


def test_more_changes_at_once_than_a_log_holds_are_unknown() -> None:
    log = changelog.ChangeLog()
    previous = log.revision
    log.add([A] * 90_000)
    assert log.changed_since(previous) is None
    assert log.changed_since(log.revision) == (log.revision, [])
