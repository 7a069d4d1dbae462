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
class Node:
    """What is looked at. `records` raises NodeFault."""

    records: Callable[[], tuple[checkpoint.Record, ...]]
    users: ports.Users
    pods_of: ports.PodsOf
    reader: ports.ClaimReader


@dataclass(frozen=True, slots=True)
class Tools:
    """What it is told with."""

    teller: plugin_events.Teller
    conditions: ports.Conditions
    counters: metrics.Metrics


def _nothing() -> None:
    """There is nothing else to look at."""


class UsageWatch:
    """`run` is a thread's target. Without a shared GPU, NVML is not asked.

    `beside` is another look in the same rounds, which may raise NodeFault.
    """

    def __init__(
        self,
        node: Node,
        tools: Tools,
        every_s: float,
        time: clock.Clock,
        beside: Callable[[], None] = _nothing,
    ) -> None:
        self._beside = beside
        self._node = node
        self._tools = tools
        self._every_s = every_s
        self._clock = time
        self._consumers = claim_pods.Consumers(node.reader)
        self._uses: dict[usage.Key, usage.Use] = {}
        self._episodes: dict[usage.Key, usage.Episode] = {}
        self._said: dict[ids.ClaimUid, bool] = {}

    def run(self, stop: threading.Event) -> None:
        """Look until told to stop."""
        while not self._clock.wait(stop, self._every_s):
            for look in (self.look, self._beside):
                try:
                    look()
                except errors.NodeFault as e:
                    _log.warning("use of GPUs not looked at", error=str(e))

    def look(self) -> None:
        """Tell what has changed since the last look. Raises NodeFault."""
        records = self._node.records()
        shares = usage.shares(records)
        self._consumers.begin(records)
        self._forget(shares)
        for gpu, given in shares.items():
            try:
                self._look_at(gpu, given)
            except errors.DeviceFault as e:
                _log.warning("use of a shared GPU not looked at", gpu=gpu, error=str(e))
        for ref in dict.fromkeys(claim for given in shares.values() for claim in given):
            self._say(ref, [(ref.uid, gpu) for gpu in shares if shares[gpu].get(ref)])
        over = {uid for (uid, _), episode in self._episodes.items() if episode.counts}
        self._tools.counters.claims_over_share.set(len(over))

    def _forget(self, shares: usage.Shares) -> None:
        """What was known of claims that have gone."""
        there = {(claim.uid, gpu) for gpu, given in shares.items() for claim in given}
        uids = {uid for uid, _ in there}
        self._uses = {key: use for key, use in self._uses.items() if key in there}
        self._episodes = {key: one for key, one in self._episodes.items() if key in there}
        self._said = {uid: holds for uid, holds in self._said.items() if uid in uids}

    def _look_at(self, gpu: ids.GpuUuid, given: Mapping[ports.ClaimRef, int]) -> None:
        found = [(one, self._node.pods_of(one.pid)) for one in self._node.users.of(gpu)]
        if not self._consumers.settle(given, {pod for _, pods in found for pod in pods}):
            return
        pods = self._consumers.pods(given)
        names_of = {pod: name for known in pods.values() for pod, name in known.items()}
        owned = ((one, usage.owner(candidates, names_of)) for one, candidates in found)
        held = [usage.Held(one, pod) for one, pod in owned if pod is not None]
        for use in usage.uses(gpu, given, held, pods):
            self._compare(use, names_of)

    def _compare(self, use: usage.Use, names_of: messages.Names) -> None:
        before = self._episodes.get(use.key, usage.Episode())
        now, news = usage.follow(before, use, self._clock.monotonic())
        self._uses[use.key], self._episodes[use.key] = use, now
        if news is not usage.News.NOTHING:
            self._said.pop(use.claim.uid, None)
        if news is usage.News.BEGAN:
            self._tools.counters.share_overruns.inc()
        if news in {usage.News.BEGAN, usage.News.GREW}:
            text = messages.exceeded(use, names_of)
            self._tools.teller.claim_warning(use.claim, reasons.Reason.SHARE_EXCEEDED, text)
        elif news is usage.News.ENDED:
            text = messages.kept(use)
            self._tools.teller.claim_notice(use.claim, reasons.Reason.SHARE_KEPT, text)

    def _say(self, ref: ports.ClaimRef, keys: list[usage.Key]) -> None:
        """The condition of a claim's devices: also at first, as one of an earlier run may stand."""
        over = [key for key in keys if self._episodes.get(key, usage.Episode()).counts]
        known = [self._uses[key] for key in keys if key in self._uses]
        holds = not over
        if holds and (len(known) < len(keys) or any(use.over for use in known) or not keys):
            return
        if self._said.get(ref.uid) is holds:
            return
        self._said[ref.uid] = holds
        reason = reasons.Reason.SHARE_KEPT if holds else reasons.Reason.SHARE_EXCEEDED
        text = "; ".join(messages.kept(use) for use in known if holds or use.key in over)
        word = ports.Word(names.CONDITION_WITHIN_SHARE, holds, reason, text)
        self._tools.conditions.say(ref, word)
