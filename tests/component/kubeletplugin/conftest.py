import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import prometheus_client
import pytest

from driver import clock, ids
from driver.kube import backoff, client, gvr
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import metrics
from driver.kubeletplugin.nvml import library as nvml
from driver.kubeletplugin.publish import node_allocator, pool_builder, publisher, publisher_election
from driver.kubeletplugin.rpc import dra_service, health_stream
from driver.kubeletplugin.status import readiness
from simulator import builder, layout, node
from simulator import store as machines
from tests.fakes import battering, loading, plugin_shell, publishing
from tests.fakes import conditions as fake_conditions
from tests.fakes import kubelet as fake_kubelet
from tests.fakes import preparation as fake_preparation
from tests.fakes.apiserver import server as api_server

BATTERED = "node-k"
FAST = backoff.Pace(base_s=0.02, max_s=0.1)


@pytest.fixture
def root() -> Iterator[Path]:
    """A kubelet's directory whose sockets' paths are short."""
    path = Path(tempfile.mkdtemp(prefix="k"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def kubelet(root: Path) -> Iterator[fake_kubelet.Kubelet]:
    with fake_kubelet.Kubelet(root) as running:
        yield running


@pytest.fixture
def events() -> plugin_shell.Events:
    return plugin_shell.Events()


@pytest.fixture
def registry() -> prometheus_client.CollectorRegistry:
    return prometheus_client.CollectorRegistry()


@pytest.fixture
def counters(registry: prometheus_client.CollectorRegistry) -> metrics.Metrics:
    return metrics.Metrics(registry)


@pytest.fixture
def preparation() -> fake_preparation.Preparation:
    return fake_preparation.Preparation()


@pytest.fixture
def deadline_s() -> float:
    """Return how long a call may take; a test that wants less says so."""
    return 40.0


@pytest.fixture
def conditions() -> fake_conditions.Conditions:
    return fake_conditions.Conditions()


@pytest.fixture
def tools(
    events: plugin_shell.Events,
    counters: metrics.Metrics,
    deadline_s: float,
    conditions: fake_conditions.Conditions,
    preparation: fake_preparation.Preparation,
) -> dra_service.Deps:
    time = clock.SystemClock()
    watched = readiness.ReadinessTracker(conditions, preparation.check, time)
    return dra_service.Deps(
        plugin_events.EventReporter(events), counters, watched, time, deadline_s
    )


@pytest.fixture
def devices() -> list[health_stream.DeviceHealth]:
    """Return what the plugin knows of its devices' health; a test changes it."""
    return [health_stream.DeviceHealth("node-a", "gpu-0", healthy=True)]


@pytest.fixture
def pace() -> health_stream.StreamSettings:
    return health_stream.StreamSettings()


@pytest.fixture
def streams(
    devices: list[health_stream.DeviceHealth], pace: health_stream.StreamSettings
) -> health_stream.HealthStreams:
    return health_stream.HealthStreams(lambda: tuple(devices), clock.SystemClock(), pace)


@pytest.fixture
def workers() -> int:
    """Return how many calls are served at once."""
    return 32


@pytest.fixture
def shell(
    root: Path,
    preparation: fake_preparation.Preparation,
    streams: health_stream.HealthStreams,
    tools: dra_service.Deps,
    workers: int,
) -> Iterator[plugin_shell.Shell]:
    service = dra_service.DraService(preparation, tools)
    created = plugin_shell.Shell(root, service, streams, tools.metrics)
    created.workers = workers
    created.start()
    yield created
    created.stop()
    assert not list((root / "plugins_registry").iterdir())


@pytest.fixture
def battered(
    api: api_server.ApiServer, kube: client.KubeClient, tmp_path: Path
) -> Iterator[battering.Battered]:
    """A plugin's process on a simulated machine, which a test may kill."""
    api.put(gvr.NODES, {"metadata": {"name": BATTERED, "uid": "node-uid"}})
    with battering.battered(kube, api.kubeconfig(tmp_path), BATTERED) as created:
        yield created


@pytest.fixture
def node_layout(tmp_path: Path) -> Iterator[layout.Layout]:
    """A simulated machine that runs."""
    builder.build(tmp_path, machines.create(tmp_path, "hgx-h100", "node-1"))
    running = node.Node(tmp_path)
    running.start()
    yield layout.Layout(tmp_path)
    running.stop()


@pytest.fixture
def library(node_layout: layout.Layout) -> Iterator[nvml.NvmlLibrary]:
    """NVML of that machine, in this process."""
    nvml_library = nvml.NvmlLibrary(node_layout.driver_root, node_layout.host_root)
    yield nvml_library
    nvml_library.close()
    loading.forget()


@pytest.fixture
def gpus() -> plugin_shell.Gpus:
    return plugin_shell.Gpus(plugin_shell.inventory(8))


@pytest.fixture
def time() -> clock.Clock:
    """The publishers' clock; a test that waits for long has a faster one."""
    return clock.SystemClock()


@pytest.fixture
def telling_of(
    events: plugin_shell.Events, counters: metrics.Metrics, time: clock.Clock
) -> node_allocator.Deps:
    return node_allocator.Deps(plugin_events.EventReporter(events), counters, time)


@pytest.fixture
def holding() -> set[str]:
    """Devices that claims hold."""
    return set()


@pytest.fixture(name="node")
def node_maker(api: api_server.ApiServer) -> publishing.NodeMaker:
    def put(labels: dict[str, str]) -> None:
        meta = {"name": "node-a", "uid": "node-uid", "labels": labels}
        api.put(gvr.NODES, {"metadata": meta})

    put({})
    return put


@pytest.fixture
def start(
    kube: client.KubeClient,
    gpus: plugin_shell.Gpus,
    holding: set[str],
    telling_of: node_allocator.Deps,
    tmp_path: Path,
) -> Iterator[publishing.Start]:
    running: list[publishing.Running] = []
    teller, counters, time = telling_of.reporter, telling_of.metrics, telling_of.clock

    def begin(
        others: plugin_shell.Gpus | None = None,
        sources: pool_builder.Sources | None = None,
        rediscover_s: float = 0.05,
    ) -> publishing.Running:
        looking = backoff.Backoff(FAST, lambda: 0.0)
        settings = publisher.Settings(
            "gpu.ration.dev",
            ids.NodeName("node-a"),
            settle_s=0.01,
            label_s=0.2,
            writing=FAST,
            failing=FAST,
        )
        turn = publisher_election.PublisherElection(
            tmp_path / "publishers", str(len(running)), time
        )
        file = tmp_path / "allocator"
        allocator = node_allocator.NodeAllocator("controller", file, telling_of)
        tools = publisher.Deps(kube, teller, counters, time, allocator, turn.is_elected)
        sources = sources or pool_builder.Sources(
            (others or gpus).look, held_devices=lambda: frozenset(map(ids.DeviceName, holding))
        )
        devices = pool_builder.PoolBuilder(sources, rediscover_s, looking, time)
        running.append(publishing.Running(publisher.Publisher(devices, settings, tools), turn))
        return running[-1]

    yield begin
    for item in running:
        item.stop()
