"""What a quarantine never does, whatever a GPU goes through and whenever the plugin restarts."""

import tempfile
from pathlib import Path

import hypothesis
from hypothesis import strategies as st

from driver import ids
from driver.devices import quarantine as rules
from driver.kubeletplugin import quarantine
from driver.resources import nodes
from tests.fakes import clock as fake_clock

GPUS = [ids.GpuUuid(f"GPU-{index}") for index in range(2)]
looks = st.tuples(st.sampled_from(GPUS), st.booleans(), st.sampled_from([1.0, 3600.0, 40_000.0]))
events = st.lists(looks | st.sampled_from(["restart", "GPU-0", "all", ""]), max_size=40)


class Model:
    """The definition, taken literally: every look at one GPU, from the last clearing on."""

    def __init__(self) -> None:
        self.ill = False
        self.ends: list[float] = []
        self.out = False

    def look(self, now: float, *, ill: bool) -> None:
        if self.ill and not ill:
            self.ends.append(now)
            recent = [at for at in self.ends if now - at < rules.WINDOW_S]
            self.out = self.out or len(recent) >= rules.MOST
        self.ill = ill

    def clear(self) -> None:
        self.ends, self.out = [], False


@hypothesis.given(events)
def test_a_gpu_is_kept_out_from_its_third_failure_in_a_day_until_it_is_cleared(
    story: list[str | tuple[ids.GpuUuid, bool, float]],
) -> None:
    models = {gpu: Model() for gpu in GPUS}
    time, asked = fake_clock.FakeClock(), ""
    with tempfile.TemporaryDirectory() as base:
        file = Path(base) / "quarantine.json"
        kept = quarantine.Quarantine(file, time)
        for event in story:
            match event:
                case (gpu, ill, after_s):
                    time.advance(after_s)
                    kept.note(gpu, ill=ill)
                    models[gpu].look(time.now().timestamp(), ill=ill)
                case "restart":
                    kept = quarantine.Quarantine(file, time)
                case str():
                    kept.follow(nodes.Node(ids.NodeName("n"), "u", clear_quarantine=event))
                    if event != asked:
                        for gpu in GPUS if event == "all" else [g for g in GPUS if g == event]:
                            models[gpu].clear()
                    asked = event
            assert set(kept.all()) == {gpu for gpu, model in models.items() if model.out}
