"""Our preferences beside the scores of kube-scheduler's plugins, node by node."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from driver import ids
from driver.resources.core import pods
from driver.scheduling.allocator import node_score
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.snapshot import snapshot
from tests.oracle import conversation
from tests.oracle.filters import ours, wishes

PLUGINS = ("TaintToleration", "NodeAffinity", "PodTopologySpread", "InterPodAffinity")
Scores = Mapping[ids.NodeName, int]
"""By node."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Nodes that are scored differently; `plugins` has kube-scheduler's scores by plugin."""

    pod: str
    theirs: Scores
    ours: Scores
    plugins: Mapping[str, Scores]

    def __str__(self) -> str:
        """Return it as text for people."""
        return f"{self.pod}: {self.theirs}, ours {self.ours}, by plugin {self.plugins}"


@dataclass(slots=True)
class Tally:
    """Pods with a choice and nodes compared; how often a plugin told nodes apart; differences."""

    pods: int = 0
    nodes: int = 0
    telling: Counter[str] = field(default_factory=Counter)
    bad: dict[int, list[Disagreement]] = field(default_factory=dict)

    def text(self) -> str:
        """Return it as text for people."""
        lines = [f"{self.pods} pods with a choice, {self.nodes} scores of nodes"]
        lines += [f"{plugin}: tells nodes apart for {self.telling[plugin]}" for plugin in PLUGINS]
        lines += [str(entry) for several in [*self.bad.values()][:5] for entry in several[:5]]
        lines.append(f"disagreements: {[*self.bad]}")
        return "\n".join(lines)


def run(seeds: Sequence[int], talking: conversation.Conversation) -> Tally:
    """Compare every seed: by how much a pod prefers each node that fits."""
    tally = Tally()
    for seed in seeds:
        drawn = wishes.cluster(seed)
        text = json.dumps(ours.raw(drawn), separators=(",", ":"))
        view = ours.shown(drawn)
        for raw, answer in zip(drawn.incoming, json.loads(talking.ask(f"{text}\n")), strict=True):
            refused = {node for reasons in answer["refused"].values() for node in reasons}
            names = [name for name in view.nodes if name not in refused]
            if len(names) > 1:
                _compare(tally, seed, pods.parse(raw), view, names, answer["scores"])
    return tally


def _compare(
    tally: Tally,
    seed: int,
    pod: pods.Pod,
    view: snapshot.Snapshot,
    names: Sequence[ids.NodeName],
    plugins: Mapping[str, Scores],
) -> None:
    theirs = {name: sum(scores[name] for scores in plugins.values()) for name in names}
    pod_preferences = node_score.pod_preferences(view, allocator_types.Workload(pod, ()))
    mine = dict.fromkeys(names, 0) if pod_preferences is None else pod_preferences.scores(names)
    tally.pods += 1
    tally.nodes += len(names)
    telling = (name for name, scores in plugins.items() if len({*scores.values()}) > 1)
    tally.telling.update(telling)
    if _relative(theirs) == _relative(mine):
        return
    tally.bad.setdefault(seed, []).append(Disagreement(pod.name, theirs, mine, plugins))


def _relative(scores: Scores) -> Scores:
    """Scores below the highest: a plugin that gives all nodes the same may be left out."""
    most = max(scores.values())
    return {name: score - most for name, score in scores.items()}
