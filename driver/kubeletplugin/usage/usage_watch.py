"""Reports claims whose processes together exceed their share of a GPU (D10).

In doubt nothing is reported: what cannot be read, or attributed, leaves the known state unchanged.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from driver import clock, errors, ids, names, reasons
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import metrics, ports
from driver.kubeletplugin.records import checkpoint
from driver.kubeletplugin.usage import claim_pods, messages, usage

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class UsageSources:
    """Inputs of the watch. `records` raises NodeFault."""

    records: Callable[[], tuple[checkpoint.Record, ...]]
    processes: ports.ProcessLister
    process_pods: ports.ProcessPods
    reader: ports.ClaimReader


@dataclass(frozen=True, slots=True)
class Deps:
    """Reporting dependencies."""

    reporter: plugin_events.EventReporter
    conditions: ports.Conditions
    metrics: metrics.Metrics


def _nothing() -> None:
    """Observe nothing else."""


class UsageWatch:
    """`run` is a thread's target. NVML is called only for shared GPUs.

    `observe_more` is another observer run in the same rounds, which may raise NodeFault.
    """

    def __init__(
        self,
        sources: UsageSources,
        deps: Deps,
        every_s: float,
        time: clock.Clock,
        observe_more: Callable[[], None] = _nothing,
    ) -> None:
        self._observe_more = observe_more
        self._sources = sources
        self._deps = deps
        self._every_s = every_s
        self._clock = time
        self._claim_pods = claim_pods.ClaimPods(sources.reader)
        self._uses: dict[usage.UseKey, usage.ClaimUse] = {}
        self._episodes: dict[usage.UseKey, usage.Episode] = {}
        self._reported: dict[ids.ClaimUid, bool] = {}

    def run(self, stop: threading.Event) -> None:
        """Observe until stopped."""
        while not self._clock.wait(stop, self._every_s):
            for observe in (self.observe, self._observe_more):
                try:
                    observe()
                except errors.NodeFault as e:
                    _log.warning("use of GPUs not looked at", error=str(e))

    def observe(self) -> None:
        """Report changes since the last observation. Raises NodeFault."""
        records = self._sources.records()
        shares = usage.shared_gpus(records)
        self._claim_pods.start_round(records)
        self._prune(shares)
        for gpu, allocated in shares.items():
            try:
                self._observe_gpu(gpu, allocated)
            except errors.DeviceFault as e:
                _log.warning("use of a shared GPU not looked at", gpu=gpu, error=str(e))
        for ref in dict.fromkeys(claim for allocated in shares.values() for claim in allocated):
            self._report_condition(ref, [(ref.uid, gpu) for gpu in shares if shares[gpu].get(ref)])
        over_uids = {uid for (uid, _), episode in self._episodes.items() if episode.is_overuse}
        self._deps.metrics.claims_over_share.set(len(over_uids))

    def _prune(self, shares: usage.Shares) -> None:
        """Drop the state of claims that are gone."""
        present = {(claim.uid, gpu) for gpu, allocated in shares.items() for claim in allocated}
        uids = {uid for uid, _ in present}
        self._uses = {key: use for key, use in self._uses.items() if key in present}
        self._episodes = {key: episode for key, episode in self._episodes.items() if key in present}
        self._reported = {uid: holds for uid, holds in self._reported.items() if uid in uids}

    def _observe_gpu(self, gpu: ids.GpuUuid, allocated: Mapping[ports.ClaimRef, int]) -> None:
        candidates_by_process = [
            (process, self._sources.process_pods(process.pid))
            for process in self._sources.processes.list_processes(gpu)
        ]
        if not self._claim_pods.resolve(
            allocated, {pod for _, pods in candidates_by_process for pod in pods}
        ):
            return
        pods = self._claim_pods.pods(allocated)
        names_of = {pod: name for by_uid in pods.values() for pod, name in by_uid.items()}
        owned = (
            (process, usage.owning_pod(candidates, names_of))
            for process, candidates in candidates_by_process
        )
        pod_processes = [
            usage.PodProcess(process, pod) for process, pod in owned if pod is not None
        ]
        for use in usage.claim_uses(gpu, allocated, pod_processes, pods):
            self._update(use, names_of)

    def _update(self, use: usage.ClaimUse, names_of: messages.Names) -> None:
        previous = self._episodes.get(use.key, usage.Episode())
        episode, change = usage.next_episode(previous, use, self._clock.monotonic())
        self._uses[use.key], self._episodes[use.key] = use, episode
        if change is not usage.UsageChange.NOTHING:
            self._reported.pop(use.claim.uid, None)
        if change is usage.UsageChange.BEGAN:
            self._deps.metrics.share_overruns.inc()
        if change in {usage.UsageChange.BEGAN, usage.UsageChange.GREW}:
            text = messages.overuse_message(use, names_of)
            self._deps.reporter.warn_claim(use.claim, reasons.Reason.SHARE_EXCEEDED, text)
        elif change is usage.UsageChange.ENDED:
            text = messages.usage_message(use)
            self._deps.reporter.notify_claim(use.claim, reasons.Reason.USAGE_WITHIN_SHARE, text)

    def _report_condition(self, ref: ports.ClaimRef, keys: list[usage.UseKey]) -> None:
        """Set the claim's condition; also initially, as one of an earlier run may remain."""
        over = [key for key in keys if self._episodes.get(key, usage.Episode()).is_overuse]
        uses = [self._uses[key] for key in keys if key in self._uses]
        holds = not over
        if holds and (len(uses) < len(keys) or any(use.is_over for use in uses) or not keys):
            return
        if self._reported.get(ref.uid) is holds:
            return
        self._reported[ref.uid] = holds
        reason = reasons.Reason.USAGE_WITHIN_SHARE if holds else reasons.Reason.SHARE_EXCEEDED
        text = "; ".join(messages.usage_message(use) for use in uses if holds or use.key in over)
        update = ports.ConditionUpdate(names.CONDITION_WITHIN_SHARE, holds, reason, text)
        self._deps.conditions.set_condition(ref, update)
