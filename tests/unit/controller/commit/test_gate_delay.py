"""In a burst kube-scheduler gets a claim's allocation a moment ahead of its pod."""

from driver.controller.commit import gate_delay
from tests.fakes import clock


def remove_gate(delay: gate_delay.GateDelay) -> None:
    delay.wait(delay.begin())


def test_the_gate_of_a_pod_alone_is_removed_at_once() -> None:
    time = clock.FakeClock()
    remove_gate(gate_delay.GateDelay(time))
    assert time.waits == []


def test_a_gate_soon_after_another_is_removed_later() -> None:
    time = clock.FakeClock()
    delay = gate_delay.GateDelay(time)
    remove_gate(delay)
    time.advance(gate_delay.BURST_S / 2)
    remove_gate(delay)
    assert time.waits == [gate_delay.LEAD_S]


def test_pods_that_come_evenly_do_not_wait() -> None:
    time = clock.FakeClock()
    delay = gate_delay.GateDelay(time)
    for _ in range(5):
        remove_gate(delay)
        time.advance(2 * gate_delay.BURST_S)
    assert time.waits == []


def test_every_pod_of_a_burst_waits_the_first_too() -> None:
    time = clock.FakeClock()
    delay = gate_delay.GateDelay(time)
    burst = [delay.begin() for _ in range(4)]
    for turn in burst:
        delay.wait(turn)
    assert time.waits == [gate_delay.LEAD_S] * 4


def test_the_first_pod_of_a_burst_does_not_wait_for_the_next_to_come() -> None:
    time = clock.FakeClock()
    delay = gate_delay.GateDelay(time)
    remove_gate(delay)
    remove_gate(delay)
    assert time.waits == [gate_delay.LEAD_S]
