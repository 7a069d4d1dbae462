import dataclasses
import stat
import threading
from collections.abc import MutableMapping
from typing import Any

import grpc
import prometheus_client
import pytest
import structlog

from driver import errors, reasons
from driver.kubeletplugin import metrics, ports
from driver.kubeletplugin.rpc import dra_service
from tests.fakes import conditions as fake_conditions
from tests.fakes import kubelet as fake_kubelet
from tests.fakes import plugin_shell, waiting
from tests.fakes import preparation as fakes

pytestmark = pytest.mark.usefixtures("shell")


def raising(error: Exception) -> fakes.Answer:
    raise error


def calls_begun(logs: list[MutableMapping[str, Any]]) -> int:
    return sum(entry["event"] == "call" for entry in list(logs))


def test_the_kubelet_learns_who_we_are_and_says_yes(
    kubelet: fake_kubelet.Kubelet,
    shell: plugin_shell.Shell,
    registry: prometheus_client.CollectorRegistry,
) -> None:
    assert shell.registration.problem() is not None
    info = kubelet.register().info
    assert (info.type, info.name) == ("DRAPlugin", "gpu.ration.dev")
    assert info.endpoint == str(shell.paths.service)
    assert list(info.supported_versions) == [
        "v1.DRAPlugin",
        "v1beta1.DRAPlugin",
        "v1.DRAResourceHealth",
        "v1alpha1.DRAResourceHealth",
    ]
    assert shell.registration.problem() is None
    assert registry.get_sample_value("dra_gpu_plugin_registered") == 1


def test_a_refused_registration_shows(
    kubelet: fake_kubelet.Kubelet,
    shell: plugin_shell.Shell,
    registry: prometheus_client.CollectorRegistry,
) -> None:
    kubelet.register(refusal="two plugins of that name")
    assert "two plugins of that name" in str(shell.registration.problem())
    assert registry.get_sample_value("dra_gpu_plugin_registered") == 0
    assert registry.get_sample_value("dra_gpu_plugin_registrations_refused_total") == 1


def test_sockets_are_for_root_alone(shell: plugin_shell.Shell) -> None:
    for path in (shell.paths.registration, shell.paths.service):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_prepared_claim_comes_with_its_devices(kubelet: fake_kubelet.Kubelet) -> None:
    claim_ref = fakes.ref("one")
    answer = kubelet.register().prepare(claim_ref)[claim_ref.uid]
    assert not answer.error
    device = answer.devices[0]
    assert list(device.request_names) == ["gpu"]
    assert (device.pool_name, device.device_name) == ("node-a", "gpu-0")
    assert list(device.cdi_device_ids) == [f"gpu.ration.dev/claim={claim_ref.uid}-gpu-0"]
    assert not device.HasField("share_id")


def test_a_kubelet_that_speaks_v1beta1_gets_the_same_without_share_ids(
    kubelet: fake_kubelet.Kubelet, preparation: fakes.Preparation
) -> None:
    shared = dataclasses.replace(fakes.prepared(fakes.ref("one")).devices[0], share_id="share-1")
    preparation.behave["one"] = lambda: ports.Prepared((shared,))
    newer = kubelet.register()
    older = dataclasses.replace(newer, version="v1beta1")
    claim_ref, bad = fakes.ref("one"), fakes.ref("bad")
    preparation.behave["bad"] = lambda: raising(errors.NodeFault("write", "x.json", "full"))
    answers = older.prepare(claim_ref, bad)
    (device,) = answers[claim_ref.uid].devices
    assert "share_id" not in device.DESCRIPTOR.fields_by_name
    (same,) = newer.prepare(claim_ref)[claim_ref.uid].devices
    assert same.share_id == "share-1"
    assert (device.pool_name, device.device_name) == (same.pool_name, same.device_name)
    assert list(device.cdi_device_ids) == list(same.cdi_device_ids)
    assert answers[bad.uid].error == "PrepareFailed: write x.json: full"
    assert not older.unprepare(claim_ref)[claim_ref.uid].error
    assert preparation.unprepared == ["one"]


def test_claims_that_fail_leave_the_others_of_the_batch_prepared(
    kubelet: fake_kubelet.Kubelet,
    preparation: fakes.Preparation,
    events: plugin_shell.Events,
    registry: prometheus_client.CollectorRegistry,
) -> None:
    overlap = ports.Refused(reasons.Reason.DEVICE_OVERLAP, "GPU-1 is held by claim x")
    preparation.behave = {
        "refused": lambda: overlap,
        "away": lambda: raising(errors.Unreachable(0, "Unreachable", "no answer")),
        "broken": lambda: raising(ValueError("out of luck")),
    }
    claim_refs = [fakes.ref(name) for name in ("good", "refused", "away", "broken", "fine")]
    answers = kubelet.register().prepare(*claim_refs)
    assert {uid: answer.error for uid, answer in answers.items()} == {
        "uid-good": "",
        "uid-refused": "DeviceOverlap: GPU-1 is held by claim x",
        "uid-away": "PrepareFailed: no answer",
        "uid-broken": "PrepareFailed: ValueError: out of luck",
        "uid-fine": "",
    }
    assert {(name, reason) for _, name, reason, _ in events.told} == {
        ("refused", "DeviceOverlap"),
        ("away", "PrepareFailed"),
        ("broken", "PrepareFailed"),
    }
    counted = {
        result: registry.get_sample_value(
            "dra_gpu_plugin_prepare_seconds_count", {"result": result}
        )
        for result in metrics.RESULTS
    }
    assert counted == {"done": 2, "refused": 1, "failed": 2, "cancelled": 0}


def test_a_claim_asked_twice_in_a_batch_is_prepared_once(
    kubelet: fake_kubelet.Kubelet, preparation: fakes.Preparation
) -> None:
    claim_ref = fakes.ref("one")
    assert list(kubelet.register().prepare(claim_ref, claim_ref)) == [claim_ref.uid]
    assert preparation.begun == ["one"]


def test_an_empty_batch_is_answered_empty(kubelet: fake_kubelet.Kubelet) -> None:
    plugin = kubelet.register()
    assert plugin.prepare() == {}
    assert plugin.unprepare() == {}


def test_a_second_call_joins_the_running_one(
    kubelet: fake_kubelet.Kubelet, preparation: fakes.Preparation
) -> None:
    plugin, claim_ref = kubelet.register(), fakes.ref("one")
    released = preparation.hold("one")
    with structlog.testing.capture_logs() as logs:
        first, second = plugin.start_prepare(claim_ref), plugin.start_prepare(claim_ref)
        waiting.until(lambda: calls_begun(logs) == 2)
    released.set()
    assert first.result().claims[claim_ref.uid] == second.result().claims[claim_ref.uid]
    assert preparation.begun == ["one"]


def test_claims_of_one_batch_and_of_several_calls_run_side_by_side(
    kubelet: fake_kubelet.Kubelet, preparation: fakes.Preparation
) -> None:
    plugin = kubelet.register()
    released = [preparation.hold(name) for name in ("a", "b", "c")]
    calls = [plugin.start_prepare(fakes.ref("a"), fakes.ref("b"))]
    calls.append(plugin.start_prepare(fakes.ref("c")))
    waiting.until(lambda: sorted(preparation.begun) == ["a", "b", "c"])
    for event in released:
        event.set()
    assert sum(len(call.result().claims) for call in calls) == 3


def test_a_slow_prepare_holds_up_neither_registration_nor_other_claims(
    kubelet: fake_kubelet.Kubelet, preparation: fakes.Preparation
) -> None:
    plugin = kubelet.register()
    released = preparation.hold("slow")
    slow = plugin.start_prepare(fakes.ref("slow"))
    waiting.until(lambda: preparation.begun)
    assert kubelet.get_info().name == "gpu.ration.dev"
    assert not plugin.prepare(fakes.ref("quick"))["uid-quick"].error
    assert not plugin.unprepare(fakes.ref("other"))["uid-other"].error
    assert not slow.done()
    released.set()
    assert not slow.result().claims["uid-slow"].error


@pytest.mark.parametrize("deadline_s", [0.2])
def test_a_call_is_answered_in_time_and_the_next_one_gets_the_result(
    kubelet: fake_kubelet.Kubelet, preparation: fakes.Preparation, events: plugin_shell.Events
) -> None:
    plugin, claim_ref = kubelet.register(), fakes.ref("one")
    released = preparation.hold("one")
    assert plugin.prepare(claim_ref)[claim_ref.uid].error.startswith("StillRunning: ")
    assert not preparation.gone
    released.set()
    assert not plugin.prepare(claim_ref)[claim_ref.uid].error
    assert not events.told


def test_a_call_that_was_broken_off_cancels_its_work_and_the_next_begins_anew(
    kubelet: fake_kubelet.Kubelet, preparation: fakes.Preparation, events: plugin_shell.Events
) -> None:
    plugin, claim_ref = kubelet.register(), fakes.ref("one")
    preparation.hold("one")
    call = plugin.start_prepare(claim_ref)
    waiting.until(lambda: preparation.begun)
    call.cancel()
    waiting.until(lambda: preparation.gone == ["one"])
    with pytest.raises(grpc.FutureCancelledError):
        call.result()
    preparation.held.clear()
    assert not plugin.prepare(claim_ref)[claim_ref.uid].error
    assert not events.told


def test_work_that_another_call_waits_for_goes_on(
    kubelet: fake_kubelet.Kubelet, preparation: fakes.Preparation
) -> None:
    plugin, claim_ref = kubelet.register(), fakes.ref("one")
    released = preparation.hold("one")
    with structlog.testing.capture_logs() as logs:
        first, second = plugin.start_prepare(claim_ref), plugin.start_prepare(claim_ref)
        waiting.until(lambda: calls_begun(logs) == 2)
    first.cancel()
    plugin.prepare(fakes.ref("last"))
    released.set()
    assert not second.result().claims[claim_ref.uid].error
    assert preparation.begun.count("one") == 1
    assert not preparation.gone


def test_unprepare_stops_what_is_still_being_prepared(
    kubelet: fake_kubelet.Kubelet, preparation: fakes.Preparation
) -> None:
    plugin, claim_ref = kubelet.register(), fakes.ref("one")
    preparation.hold("one")
    call = plugin.start_prepare(claim_ref)
    waiting.until(lambda: preparation.begun)
    assert not plugin.unprepare(claim_ref)[claim_ref.uid].error
    waiting.until(lambda: preparation.gone == ["one"])
    call.result()


def test_an_unprepare_that_fails_says_so_for_its_own_claim(
    kubelet: fake_kubelet.Kubelet, preparation: fakes.Preparation
) -> None:
    preparation.behave["bad"] = lambda: raising(errors.NodeFault("remove", "x.json", "busy"))
    answers = kubelet.register().unprepare(fakes.ref("bad"), fakes.ref("good"))
    assert answers["uid-bad"].error == "UnprepareFailed: remove x.json: busy"
    assert not answers["uid-good"].error


def test_the_result_of_prepare_is_reported_on_the_claim(
    kubelet: fake_kubelet.Kubelet,
    preparation: fakes.Preparation,
    conditions: fake_conditions.Conditions,
    tools: dra_service.Deps,
) -> None:
    never = ports.Refused(reasons.Reason.CONFIG_INVALID, "shape: is not a field", permanent=True)
    overlap = ports.Refused(reasons.Reason.DEVICE_OVERLAP, "GPU-1 is held by claim x")
    preparation.behave = {
        "refused": lambda: overlap,
        "never": lambda: never,
        "broken": lambda: raising(errors.NodeFault("write", "x.json", "full")),
    }
    plugin = kubelet.register()
    plugin.prepare(*(fakes.ref(name) for name in ("good", "refused", "never", "broken")))
    tools.readiness.check_due(threading.Event())
    plugin.unprepare(fakes.ref("good"))
    annotations = {name: conditions.of(name) for name in ("good", "refused", "never", "broken")}
    assert annotations == {
        "good": [(True, "Prepared", False)],
        "refused": [(False, "DeviceOverlap", False)],
        "never": [(False, "ConfigInvalid", True)],
        "broken": [(False, "PrepareFailed", False)],
    }


def test_a_cancelled_prepare_reports_nothing(
    kubelet: fake_kubelet.Kubelet,
    preparation: fakes.Preparation,
    conditions: fake_conditions.Conditions,
) -> None:
    preparation.hold("one")
    preparation.behave["one"] = lambda: ports.Refused(reasons.Reason.PREPARE_FAILED, "gone")
    call = kubelet.register().start_prepare(fakes.ref("one"))
    waiting.until(lambda: preparation.begun == ["one"])
    call.cancel()
    waiting.until(lambda: preparation.gone == ["one"])
    preparation.behave.clear()
    preparation.held.clear()
    kubelet.register().prepare(fakes.ref("two"))
    assert conditions.of("one") == []
