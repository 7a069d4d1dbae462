from driver.scheduling.lifecycle import eviction_backoff


def test_evictions_start_at_once_and_back_off_up_to_five_minutes() -> None:
    paces, now, pauses = eviction_backoff.EvictionBackoff(), 0.0, []
    for _ in range(8):
        now += paces.remaining_s("owner", now)
        paces.record_eviction("owner", now)
        pauses.append(paces.remaining_s("owner", now))
    assert pauses == [10, 20, 40, 80, 160, 300, 300, 300]


def test_owners_do_not_wait_for_each_other() -> None:
    paces = eviction_backoff.EvictionBackoff()
    paces.record_eviction("one", 0.0)
    assert paces.remaining_s("two", 0.0) == 0


def test_an_owner_that_was_quiet_for_long_begins_anew_and_is_forgotten() -> None:
    paces = eviction_backoff.EvictionBackoff()
    paces.record_eviction("owner", 0.0)
    paces.record_eviction("owner", 500.0)
    assert paces.remaining_s("owner", 500.0) == 20
    paces.record_eviction("another", 2000.0)
    assert paces._pauses.keys() == {"another"}
    paces.record_eviction("owner", 2000.0)
    assert paces.remaining_s("owner", 2000.0) == 10
