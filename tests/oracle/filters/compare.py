"""Our filters beside kube-scheduler's, filter by filter and node by node, on random clusters."""

import functools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A node on which a plugin and ours say different things; "" for a node that does."""

    pod: str
    node: str
    plugin: str
    theirs: str
    ours: str

    def __str__(self) -> str:
        """Return it as text for people."""
        return f"{self.pod} on {self.node}: {self.plugin}: {self.theirs!r}, ours {self.ours!r}"


@dataclass(slots=True)
class Tally:
    """Judgements and refusals by plugin; disagreements by seed, those excused by name."""

    pods: int = 0
    judged: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)
    bad: dict[int, list[Disagreement]] = field(default_factory=dict)

    def text(self) -> str:
        """Return it as text for people."""
        lines = [f"{self.pods} pods, {self.judged} judgements of a filter about a node"]
        lines += [f"{plugin}: {self.refused[plugin]} refusals" for plugin in PLUGINS]
        lines += [f"deviation {name}: {count}" for name, count in sorted(self.excused.items())]
        lines += [
            str(disagreement)
            for disagreements in [*self.bad.values()][:5]
            for disagreement in disagreements[:5]
        ]
        lines.append(f"disagreements: {[*self.bad]}")
        return "\n".join(lines)


@contextmanager
def scheduler(emulated: str = "") -> Iterator[conversation.Conversation]:
    """The program, with the feature gates of a version, "1.36", or its own."""
    with conversation.Conversation(program.ensure(ROOM), emulated) as talking:
        yield talking


def run(seeds: Sequence[int], talking: conversation.Conversation, emulated: str = "") -> Tally:
    """Every seed compared; `emulated` is the version whose feature gates the program has."""
    tally = Tally()
    for seed in seeds:
        drawn = drawing.cluster(seed)
        document = json.loads(
            talking.ask(json.dumps(ours.raw(drawn), separators=(",", ":")) + "\n")
        )
        for raw, answer, mine in zip(drawn.incoming, document, ours.answers(drawn), strict=True):
            theirs = answer["refused"]
            tally.pods += 1
            tally.judged += len(PLUGINS) * len(drawn.nodes)
            tally.refused.update({plugin: len(nodes) for plugin, nodes in theirs.items()})
            excuse = functools.partial(_excuse, drawn, raw, emulated)
            _enter(tally, seed, _differences(raw["metadata"]["name"], theirs, mine), excuse)
    return tally


def _excuse(
    drawn: drawing.Cluster, raw: drawing.Raw, emulated: str, disagreement: Disagreement
) -> str:
    name = deviations.excuse(
        drawn, raw, disagreement.plugin, disagreement.theirs, disagreement.ours
    )
    if name or not emulated:
        return name
    return deviations.excuse_older(disagreement.plugin, disagreement.theirs, disagreement.ours)


def _enter(
    tally: Tally,
    seed: int,
    differences: Iterator[Disagreement],
    excuse: Callable[[Disagreement], str],
) -> None:
    for difference in differences:
        name = excuse(difference)
        if name:
            tally.excused[name] += 1
        else:
            tally.bad.setdefault(seed, []).append(difference)


def _differences(pod: str, theirs: ours.Refusals, mine: ours.Refusals) -> Iterator[Disagreement]:
    for plugin in sorted({*theirs, *mine}):
        document, annotations = theirs.get(plugin, {}), mine.get(plugin, {})
        for node in sorted({*document, *annotations}):
            if (node in document) != (node in annotations):
                yield Disagreement(
                    pod, node, plugin, document.get(node, ""), annotations.get(node, "")
                )
