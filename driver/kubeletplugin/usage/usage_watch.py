"""Tells the claims whose processes together use more of a GPU than the claim was given (D10).

Nobody is told on doubt: what cannot be read, or attributed, leaves things as they were known.
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
    """What is looked at. `records` raises NodeFault."""

    records: Callable[[], tuple[checkpoint.Record, ...]]
    processes: ports.ProcessLister
    process_pods: ports.ProcessPods
    reader: ports.ClaimReader


@dataclass(frozen=True, slots=True)
class Deps:
    """What it is told with."""

    reporter: plugin_events.EventReporter
    conditions: ports.Conditions
    metrics: metrics.Metrics


def _nothing() -> None:
    """There is nothing else to look at."""


class UsageWatch:
    """`run` is a thread's target. Without a shared GPU, NVML is not asked.

    `beside` is another look in the same rounds, which may raise NodeFault.
    """

    def __init__(
        self,
        node: UsageSources,
        tools: Deps,
        every_s: float,
        time: clock.Clock,
        beside: Callable[[], None] = _nothing,
    ) -> None:
        self._observe_more = beside
        self._sources = node
        self._deps = tools
        self._every_s = every_s
        self._clock = time
        self._claim_pods = claim_pods.ClaimPods(node.reader)
        self._uses: dict[usage.UseKey, usage.ClaimUse] = {}
        self._episodes: dict[usage.UseKey, usage.Episode] = {}
        self._reported: dict[ids.ClaimUid, bool] = {}

    def run(self, stop: threading.Event) -> None:
        """Look until told to stop."""
        while not self._clock.wait(stop, self._every_s):
            for look in (self.observe, self._observe_more):
                try:
                    look()
                except errors.NodeFault as e:
                    _log.warning("use of GPUs not looked at", error=str(e))

    def observe(self) -> None:
        """Tell what has changed since the last look. Raises NodeFault."""
        records = self._sources.records()
        shares = usage.shared_gpus(records)
        self._claim_pods.start_round(records)
        self._prune(shares)
        for gpu, given in shares.items():
            try:
                self._observe_gpu(gpu, given)
            except errors.DeviceFault as e:
                _log.warning("use of a shared GPU not looked at", gpu=gpu, error=str(e))
        for ref in dict.fromkeys(claim for given in shares.values() for claim in given):
            self._report_condition(ref, [(ref.uid, gpu) for gpu in shares if shares[gpu].get(ref)])
        over = {uid for (uid, _), episode in self._episodes.items() if episode.is_overuse}
        self._deps.metrics.claims_over_share.set(len(over))

    def _prune(self, shares: usage.Shares) -> None:
        """What was known of claims that have gone."""
        there = {(claim.uid, gpu) for gpu, given in shares.items() for claim in given}
        uids = {uid for uid, _ in there}
        self._uses = {key: use for key, use in self._uses.items() if key in there}
        self._episodes = {key: one for key, one in self._episodes.items() if key in there}
        self._reported = {uid: holds for uid, holds in self._reported.items() if uid in uids}

    def _observe_gpu(self, gpu: ids.GpuUuid, given: Mapping[ports.ClaimRef, int]) -> None:
        found = [
            (one, self._sources.process_pods(one.pid))
            for one in self._sources.processes.list_processes(gpu)
        ]
        if not self._claim_pods.resolve(given, {pod for _, pods in found for pod in pods}):
            return
        pods = self._claim_pods.pods(given)
        names_of = {pod: name for known in pods.values() for pod, name in known.items()}
        owned = ((one, usage.owning_pod(candidates, names_of)) for one, candidates in found)
        held = [usage.PodProcess(one, pod) for one, pod in owned if pod is not None]
        for use in usage.claim_uses(gpu, given, held, pods):
            self._update(use, names_of)

    def _update(self, use: usage.ClaimUse, names_of: messages.Names) -> None:
        before = self._episodes.get(use.key, usage.Episode())
        now, news = usage.next_episode(before, use, self._clock.monotonic())
        self._uses[use.key], self._episodes[use.key] = use, now
        if news is not usage.UsageChange.NOTHING:
            self._reported.pop(use.claim.uid, None)
        if news is usage.UsageChange.BEGAN:
            self._deps.metrics.share_overruns.inc()
        if news in {usage.UsageChange.BEGAN, usage.UsageChange.GREW}:
            text = messages.overuse_message(use, names_of)
            self._deps.reporter.warn_claim(use.claim, reasons.Reason.SHARE_EXCEEDED, text)
        elif news is usage.UsageChange.ENDED:
            text = messages.usage_message(use)
            self._deps.reporter.notify_claim(use.claim, reasons.Reason.SHARE_KEPT, text)

    def _report_condition(self, ref: ports.ClaimRef, keys: list[usage.UseKey]) -> None:
        """The condition of a claim's devices: also at first, as one of an earlier run may stand."""
        over = [key for key in keys if self._episodes.get(key, usage.Episode()).is_overuse]
        known = [self._uses[key] for key in keys if key in self._uses]
        holds = not over
        if holds and (len(known) < len(keys) or any(use.is_over for use in known) or not keys):
            return
        if self._reported.get(ref.uid) is holds:
            return
        self._reported[ref.uid] = holds
        reason = reasons.Reason.SHARE_KEPT if holds else reasons.Reason.SHARE_EXCEEDED
        text = "; ".join(messages.usage_message(use) for use in known if holds or use.key in over)
        word = ports.ConditionUpdate(names.CONDITION_WITHIN_SHARE, holds, reason, text)
        self._deps.conditions.set_condition(ref, word)
