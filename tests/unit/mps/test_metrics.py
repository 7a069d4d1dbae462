import prometheus_client

from driver.devices import mps_files
from driver.mps import metrics


def test_daemons_are_counted_by_state_and_every_state_is_there() -> None:
    registry = prometheus_client.CollectorRegistry()
    counters = metrics.Metrics(registry)

    def counted(state: mps_files.State) -> float | None:
        return registry.get_sample_value("dra_gpu_mps_daemons", {"state": state.value})

    assert {counted(state) for state in mps_files.State} == {0.0}
    counters.set_daemon("a", (mps_files.State.STARTING, 0))
    counters.set_daemon("b", (mps_files.State.READY, 3))
    counters.set_daemon("a", (mps_files.State.READY, 2))
    assert (counted(mps_files.State.READY), counted(mps_files.State.STARTING)) == (2.0, 0.0)
    assert registry.get_sample_value("dra_gpu_mps_clients") == 5.0
    counters.set_daemon("b", None)
    assert registry.get_sample_value("dra_gpu_mps_clients") == 2.0
