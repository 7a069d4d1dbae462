from tests.fakes.faultproxy import proxy


def test_a_watch_on_which_nothing_happens_for_minutes_is_not_cut() -> None:
    assert proxy.PATIENCE.read_timeout == 600
    assert proxy.PATIENCE.connect_timeout == 5
