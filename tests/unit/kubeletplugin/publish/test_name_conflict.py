import threading

from driver import errors, reasons
from driver.kubeletplugin.publish import name_conflict, pool_builder
from tests.fakes import clock as fake_clock

TAKEN = pool_builder.Problem(reasons.Reason.OTHER_DRIVER, "it is another's")


class Ends(threading.Event):
    """Comes as soon as somebody waits for nothing else."""

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        self.set()
        return True


class Looks:
    """Results of each check; `stop` is set when there is nothing more to find."""

    def __init__(self, *results: pool_builder.Problem | errors.RationError | None) -> None:
        self.found = list(results)
        self.told: list[pool_builder.Problem] = []
        self.stop = Ends()
        self.holds = False
        self.synced = threading.Event()
        self.synced.set()

    def look(self) -> pool_builder.Problem | None:
        now = self.found.pop(0)
        if not self.found:
            self.stop.set()
        if isinstance(now, errors.RationError):
            raise now
        return now

    def gate(self) -> name_conflict.NameGate:
        return name_conflict.NameGate(
            self.look, lambda: self.holds, self.told.append, self.synced, fake_clock.FakeClock()
        )


def test_a_name_that_nobody_has_is_free_at_once() -> None:
    looks = Looks(None, None)
    gate = looks.gate()
    gate.run(looks.stop)
    assert gate.name_free.is_set()
    assert gate.problem() is None
    assert len(looks.found) == 1


def test_while_another_has_the_name_it_is_not_free_and_that_is_told() -> None:
    looks = Looks(TAKEN, TAKEN)
    gate = looks.gate()
    gate.run(looks.stop)
    assert not gate.name_free.is_set()
    assert looks.told == [TAKEN, TAKEN]
    assert gate.problem() == "OtherDriver: it is another's"


def test_a_claim_that_is_prepared_here_opens_the_gate_and_the_rest_is_told() -> None:
    looks = Looks(TAKEN, None)
    looks.holds = True
    gate = looks.gate()
    gate.run(looks.stop)
    assert gate.name_free.is_set()
    assert looks.told == [TAKEN]


def test_a_look_that_fails_is_no_leave_to_register() -> None:
    looks = Looks(errors.NodeFault("list", "plugins_registry", "denied"), TAKEN)
    gate = looks.gate()
    gate.run(looks.stop)
    assert not gate.name_free.is_set()
    assert looks.told == [TAKEN]


def test_a_server_that_is_away_keeps_nobody_from_his_prepared_claims() -> None:
    looks = Looks(TAKEN, None)
    looks.holds = True
    down = errors.Unreachable(0, "", "connection refused")

    def tell(_: pool_builder.Problem) -> None:
        raise down

    gate = name_conflict.NameGate(
        looks.look, lambda: looks.holds, tell, looks.synced, fake_clock.FakeClock()
    )
    gate.run(looks.stop)
    assert gate.name_free.is_set()


def test_slices_that_are_not_known_yet_are_waited_for_a_little() -> None:
    looks = Looks(None, None)
    looks.synced.clear()
    time = fake_clock.FakeClock()
    gate = name_conflict.NameGate(
        looks.look, lambda: looks.holds, looks.told.append, looks.synced, time
    )
    gate.run(looks.stop)
    assert gate.name_free.is_set()
    assert time.waits == [5.0]
