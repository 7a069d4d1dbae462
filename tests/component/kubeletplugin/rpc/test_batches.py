"""Whatever one call names, and however each claim ends, each is answered once, for itself."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from driver import errors, reasons
from driver.kubeletplugin import ports
from tests.fakes import kubelet as fake_kubelet
from tests.fakes import preparation as fakes

pytestmark = pytest.mark.usefixtures("shell")


def _broken() -> fakes.Answer:
    raise ValueError("out of luck \ud800")


def _away() -> fakes.Answer:
    raise errors.Unreachable(0, "Unreachable", "no answer")


ENDS = {
    "good": None,
    "refused": lambda: ports.Refused(reasons.Reason.DEVICE_OVERLAP, "GPU-1 is held by x"),
    "surrogate": lambda: ports.Refused(reasons.Reason.DEVICE_OVERLAP, "held by \ud800"),
    "broken": _broken,
    "away": _away,
}
NAMES = st.tuples(st.sampled_from(sorted(ENDS)), st.integers(0, 3)).map(
    lambda drawn: f"{drawn[0]}-{drawn[1]}"
)


@pytest.fixture
def plugin(kubelet: fake_kubelet.Kubelet) -> fake_kubelet.Plugin:
    return kubelet.register()


@given(st.lists(st.tuples(st.sampled_from(("prepare", "unprepare")), st.lists(NAMES, max_size=8))))
@settings(
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_each_claim_of_a_batch_is_answered_once_and_for_itself(
    plugin: fake_kubelet.Plugin, preparation: fakes.Preparation, calls: list[tuple[str, list[str]]]
) -> None:
    preparation.behave = {
        f"{kind}-{number}": end
        for kind, end in ENDS.items()
        if end is not None
        for number in range(4)
    }
    for call, requested in calls:
        refs = [fakes.ref(name) for name in requested]
        if call == "unprepare":
            answers = plugin.unprepare(*refs)
            assert set(answers) == {ref.uid for ref in refs}
            continue
        answers = plugin.prepare(*refs)
        assert set(answers) == {ref.uid for ref in refs}
        for claim_ref in refs:
            good = claim_ref.name.startswith("good")
            assert (answers[claim_ref.uid].error == "") is good
            assert bool(answers[claim_ref.uid].devices) is good
        assert {uid: entry.error for uid, entry in plugin.prepare(*refs).items()} == {
            uid: answer.error for uid, answer in answers.items()
        }
