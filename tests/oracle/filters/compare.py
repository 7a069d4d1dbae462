"""Our filters beside kube-scheduler's, filter by filter and node by node, on random clusters."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.oracle import conversation, program
from tests.oracle.filters import deviations, drawing, ours

ROOM = Path(__file__).resolve().parent
PLUGINS = (
    *("NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts"),
    *("NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"),
    *("PodTopologySpread", "InterPodAffinity"),
)


@dataclass(slots=True)
class Tally:
    """Judgements and refusals by plugin; disagreements by seed, those excused by name."""

    pods: int = 0
    judged: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)
    bad: dict[int, list[deviations.Difference]] = field(default_factory=dict)

    def text(self) -> str:
        """For people."""
        lines = [f"{self.pods} pods, {self.judged} judgements of a filter about a node"]
        lines += [f"{plugin}: {self.refused[plugin]} refusals" for plugin in PLUGINS]
        lines += [f"deviation {name}: {count}" for name, count in sorted(self.excused.items())]
        lines += [str(one) for found in [*self.bad.values()][:5] for one in found[:5]]
        lines.append(f"disagreements: {[*self.bad]}")
        return "\n".join(lines)


@contextmanager
def scheduler(emulated: str = "") -> Iterator[conversation.Conversation]:
    """The program, with the feature gates of a version, "1.36", or its own."""
    with conversation.Conversation(program.ensure(ROOM), emulated) as talking:
        yield talking


def run(seeds: Sequence[int], talking: conversation.Conversation) -> Tally:
    """Every seed compared."""
    tally = Tally()
    for seed in seeds:
        drawn = drawing.cluster(seed)
        told = json.loads(talking.ask(json.dumps(ours.raw(drawn), separators=(",", ":")) + "\n"))
        for raw, theirs, mine in zip(drawn.incoming, told, ours.answers(drawn), strict=True):
            tally.pods += 1
            tally.judged += len(PLUGINS) * len(drawn.nodes)
            tally.refused.update({plugin: len(nodes) for plugin, nodes in theirs.items()})
            for difference in _differences(raw["metadata"]["name"], theirs, mine):
                _judge(tally, seed, difference, deviations.excuse(drawn, raw, difference))
    return tally


def _judge(tally: Tally, seed: int, difference: deviations.Difference, excuse: str) -> None:
    if excuse:
        tally.excused[excuse] += 1
    else:
        tally.bad.setdefault(seed, []).append(difference)


def _differences(
    pod: str, theirs: ours.Refusals, mine: ours.Refusals
) -> Iterator[deviations.Difference]:
    for plugin in sorted({*theirs, *mine}):
        told, said = theirs.get(plugin, {}), mine.get(plugin, {})
        for node in sorted({*told, *said}):
            if (node in told) != (node in said):
                yield deviations.Difference(
                    pod, node, plugin, told.get(node, ""), said.get(node, "")
                )
