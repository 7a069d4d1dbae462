import pytest

from driver import ids
from driver.devices import health, xids
from driver.devices.health import Ailment, Instance, XidEvent
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import ports
from driver.kubeletplugin.health import events as health_events
from tests.fakes import clock as fake_clock
from tests.fakes import plugin_shell

GPU, OTHER = ids.GpuUuid("GPU-0"), ids.GpuUuid("GPU-1")
ON_GPU = ports.ClaimRef("ml", "train", ids.ClaimUid("uid-1"))
ON_INSTANCE = ports.ClaimRef("ml", "infer", ids.ClaimUid("uid-2"))
XID_48 = Ailment("ration.dev/xid", "48", "NoSchedule", "Xid 48: bad; cleared by a reset")
UNWATCHED = Ailment("ration.dev/unmonitored", "events", "None", "its events cannot be had")


def holders(gpu: ids.GpuUuid, instance: Instance | None) -> tuple[ports.ClaimRef, ...]:
    if gpu != GPU:
        return ()
    return (ON_INSTANCE,) if instance == Instance(7, 0) else (ON_GPU, ON_INSTANCE)


@pytest.fixture
def events() -> plugin_shell.Events:
    return plugin_shell.Events()


@pytest.fixture
def time() -> fake_clock.FakeClock:
    return fake_clock.FakeClock()


@pytest.fixture
def news(events: plugin_shell.Events, time: fake_clock.FakeClock) -> health_events.HealthEvents:
    audience = health_events.EventTargets(ids.NodeName("node-a"), lambda: "node-uid", holders)
    return health_events.HealthEvents(plugin_events.EventReporter(events), audience, time)


def test_the_node_and_the_claims_on_the_gpu_are_told_what_ails_it(
    news: health_events.HealthEvents, events: plugin_shell.Events
) -> None:
    news.report_change(GPU, (), (XID_48,))
    text = "GPU-0: Xid 48: bad; cleared by a reset"
    assert events.told == [
        ("Node", "node-a", "GpuUnhealthy", text),
        ("ResourceClaim", "train", "GpuUnhealthy", text),
        ("ResourceClaim", "infer", "GpuUnhealthy", text),
    ]


def test_a_mig_instances_fault_is_reported_only_to_its_claims(
    news: health_events.HealthEvents, events: plugin_shell.Events
) -> None:
    own = Ailment("ration.dev/xid", "48", "NoSchedule", "Xid 48", Instance(7, 0))
    news.report_change(GPU, (), (own,))
    assert [name for _, name, _, _ in events.told] == ["node-a", "infer"]
    assert events.told[0][3] == "GPU-0 GPU instance 7 compute instance 0: Xid 48"


def test_only_what_is_new_is_told(
    news: health_events.HealthEvents, events: plugin_shell.Events
) -> None:
    news.report_change(OTHER, (XID_48,), (XID_48, UNWATCHED))
    assert events.told == [("Node", "node-a", "GpuNotice", "GPU-1: its events cannot be had")]


def test_recovery_is_told_once_nothing_taints_any_more(
    news: health_events.HealthEvents, events: plugin_shell.Events
) -> None:
    pending = Ailment("ration.dev/row-remap", "pending", "NoSchedule", "waits")
    news.report_change(GPU, (XID_48, pending), (pending,))
    assert not events.good_news
    news.report_change(GPU, (pending,), (UNWATCHED,))
    assert [(name, reason) for _, name, reason, _ in events.good_news] == [
        ("node-a", "GpuRecovered"),
        ("train", "GpuRecovered"),
        ("infer", "GpuRecovered"),
    ]
    news.report_change(GPU, (UNWATCHED,), ())
    assert len(events.good_news) == 3


@pytest.mark.parametrize(("code", "reason"), [(13, "GpuApplicationError"), (63, "GpuNotice")])
def test_an_xid_that_taints_nothing_is_told_by_its_class(
    news: health_events.HealthEvents, events: plugin_shell.Events, code: int, reason: str
) -> None:
    row = xids.lookup(xids.TABLE, code)
    assert news.report_xid(XidEvent(OTHER, code), row, ails=False)
    assert events.told == [("Node", "node-a", reason, f"GPU-1: Xid {code}: {row.meaning}")]


def test_an_xid_that_ails_the_gpu_is_left_to_the_ailment(
    news: health_events.HealthEvents, events: plugin_shell.Events
) -> None:
    event, row = XidEvent(OTHER, 79), xids.lookup(xids.TABLE, 79)
    assert news.report_xid(event, row, ails=True)
    assert not news.report_xid(event, row, ails=True)
    assert events.told == []


def test_the_same_xid_is_told_once_in_a_while_and_another_one_at_once(
    news: health_events.HealthEvents, events: plugin_shell.Events, time: fake_clock.FakeClock
) -> None:
    def happens(event: health.XidEvent) -> None:
        news.report_xid(event, xids.lookup(xids.TABLE, event.code), ails=False)

    for _ in range(1000):
        happens(XidEvent(OTHER, 13))
    assert len(events.told) == 1
    happens(XidEvent(OTHER, 31))
    happens(XidEvent(OTHER, 13, Instance(7, 0)))
    assert len(events.told) == 3
    time.advance(health_events.REPEAT_S)
    happens(XidEvent(OTHER, 13))
    assert len(events.told) == 4


def test_a_quarantine_is_reported_instead_of_a_recovery_and_when_it_is_cleared(
    news: health_events.HealthEvents, events: plugin_shell.Events
) -> None:
    ailment = Ailment("ration.dev/quarantine", "3", "NoSchedule", "it has failed 3 times")
    more = Ailment("ration.dev/quarantine", "4", "NoSchedule", "it has failed 4 times")
    news.report_change(GPU, (XID_48,), (ailment,))
    assert [(name, reason) for _, name, reason, _ in events.told] == [
        (name, "GpuQuarantined") for name in ("node-a", "train", "infer")
    ]
    news.report_change(GPU, (ailment, XID_48), (more,))
    assert events.told[-1][3] == "GPU-0: it has failed 4 times"
    assert events.good_news == []
    news.report_change(GPU, (more,), ())
    assert [reason for _, _, reason, _ in events.good_news] == ["GpuQuarantineCleared"] * 3
