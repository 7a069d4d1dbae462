"""Measure the whole control plane on the cluster that is up: `python -m benchmarks.control_plane`.

Nodes of 8 GPUs that are API objects; pods with one named claim of one GPU each: first in a burst
by 16 threads, or several, then so many a second. In one round kube-scheduler allocates (plain
devices, our controllers stopped), in the next ours does (tainted devices), and with --gate in a
third behind the scheduling gate; the side that ended one round begins the next. With --kwok the
nodes beat and their pods run. Everything shares the machine, our controllers' CPU and the client's
included. kube-scheduler and kube-controller-manager run with their client limits raised to
2,000/s and without the node lifecycle controller, and are put back afterwards. Each number of
nodes is a suite of its own.
"""

import argparse
from contextlib import ExitStack
from pathlib import Path

from benchmarks import record
from benchmarks.allocator import fixtures
from benchmarks.control_plane import fixture, rounds
from driver.kube import client
from hack.cluster import api

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Measure, print, store."""
    parameters = _asked()
    start = record.Start()
    cluster = api.Cluster.load(ROOT)
    kube = client.KubeClient.connect(cluster.kubeconfig, "ration-bench")
    with ExitStack() as meanwhile:
        for component, flags in rounds.QUICKER.items():
            meanwhile.enter_context(cluster.with_flags(component, *flags))
        if parameters.keep:
            fixture.make_namespace(kube)
        else:
            meanwhile.callback(fixture.empty, kube, parameters.nodes)
            meanwhile.enter_context(fixture.namespace(kube))
        measured = _measure(cluster, kube, parameters)
        # Ahead of what follows: the calibrators are for a machine at rest.
        record.write(parameters.suite, _figures(parameters, measured), start)


def _measure(
    cluster: api.Cluster, kube: client.KubeClient, parameters: rounds.Asked
) -> list[list[rounds.Round]]:
    """Make the nodes, and measure the rounds of every side; kwok plays the nodes until the end."""
    with ExitStack() as played:
        if parameters.kwok:
            cluster.start_kwok()
            played.callback(cluster.stop, "kwok")
        fixture.fill(kube, parameters.nodes, fixtures.whole("scheduler"), kwok=parameters.kwok)
        bench = rounds.Bench(cluster, kube, parameters)
        return [bench.sides(number) for number in range(parameters.rounds)]


def _figures(parameters: rounds.Asked, measured: list[list[rounds.Round]]) -> list[record.Figure]:
    """Return the figures of all rounds: theirs, ours, and with the gate if it was asked for."""
    theirs, ours, *gated = [list(side) for side in zip(*measured, strict=True)]
    figures = rounds.figures(parameters, ours, theirs)
    for side in gated:
        figures += rounds.figures(parameters, side, theirs, " behind the scheduling gate")
    return figures


def _asked() -> rounds.Asked:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000, help="of 8 GPUs each")
    parser.add_argument("--pods", type=int, default=200, help="of a burst")
    parser.add_argument("--bursts", type=int, default=1, help="of a side in a round")
    parser.add_argument("--rounds", type=int, default=3, help="of each side")
    parser.add_argument("--pace", type=float, default=5.0, help="pods a second after the bursts")
    parser.add_argument("--pace-seconds", type=float, default=17.0, help="how long at that pace")
    parser.add_argument("--kwok", action="store_true", help="have kwok play the nodes' kubelets")
    parser.add_argument("--gate", action="store_true", help="measure ours with the gate too")
    parser.add_argument(
        "--keep", action="store_true", help="leave nodes and namespace: the cluster ends"
    )
    options = parser.parse_args()
    return rounds.Asked(
        options.nodes,
        options.pods,
        options.bursts,
        options.rounds,
        options.pace,
        options.pace_seconds,
        options.kwok,
        options.gate,
        options.keep,
    )


if __name__ == "__main__":
    main()
