import itertools

from tests.soak import draw, ledger


def a_ledger(cycles: int = 10, rate: float = 0.0) -> ledger.Ledger:
    return ledger.Ledger(ledger.Pace(cycles, rate), lambda: 0.0)


def test_cycles_are_promised_until_there_are_enough() -> None:
    book = a_ledger(cycles=3)
    assert [book.promise(2) for _ in range(3)] == [0.0, 0.0, None]


def test_a_rate_has_cycles_wait_for_their_turn() -> None:
    book = a_ledger(rate=5.0)
    assert [book.promise(1) for _ in range(3)] == [0.0, 0.2, 0.4]


def test_created_claims_that_remain_are_lost() -> None:
    book = a_ledger()
    for stage in ledger.STAGES:
        book.reach(stage, 4)
    assert book.lost() == 0
    book.reach("made", 1)
    assert book.lost() == 1


def test_refusals_of_one_cause_are_counted_as_one() -> None:
    book = a_ledger()
    book.refuse("prepare: GPU-0f7af3f5-4e6c-5a43 of claim 12 is lost (NVML error 15)")
    book.refuse("prepare: GPU-1316f601-9a54-5181 of claim 7 is lost (NVML error 15)")
    assert list(book.refused.values()) == [2]


def test_the_same_seed_draws_the_same() -> None:
    first, second, other = (
        list(itertools.islice(draw.pods(seed, 0), 50)) for seed in (1, 1, 2)
    )  # fmt: skip
    assert first == second != other
    breaks = [draw.Breaks(1, tuple(draw.Trouble)) for _ in range(2)]
    draws = [[breaks.draw(killing=number < 20) for number in range(40)] for breaks in breaks]
    assert draws[0] == draws[1]


def test_there_are_kills_first_and_none_once_they_are_over() -> None:
    breaks = draw.Breaks(1, tuple(draw.Trouble))
    early = [breaks.draw(killing=True).trouble for _ in range(40)]
    late = [breaks.draw(killing=False).trouble for _ in range(40)]
    assert early[:2] == list(draw.KILLS)
    assert late[0] is draw.Trouble.RUSH
    assert not set(late) & set(draw.KILLS)
    assert set(draw.Trouble) - set(draw.KILLS) == set(late)


def test_a_run_whose_first_cycles_saw_no_trouble_is_killed_all_the_same() -> None:
    breaks = draw.Breaks(1, tuple(draw.Trouble))
    assert [breaks.draw(killing=False).trouble for _ in range(2)] == list(draw.KILLS)
