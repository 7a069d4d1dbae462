"""From nothing to a running cluster, and the marker that keeps it the machine's only one."""

import concurrent.futures
import contextlib
import dataclasses
import json
import os
import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from hack.cluster import (
    argv,
    certificates,
    configs,
    control,
    down,
    driver,
    errors,
    host,
    images,
    kubectl,
    layout,
    network,
    node,
    plan,
    prerequisites,
    processes,
    progress,
    state,
    store,
    toolchain,
)
from hack.image import build

_API_S = 60.0


def up(where: layout.Layout, wanted: state.Wanted, steps: progress.Steps) -> None:
    """Bring the cluster up; one that runs as wanted is left as it is."""
    choices = toolchain.choose(toolchain.missing(wanted.kubernetes))
    prerequisites.ensure(steps, choices)
    toolchain.fill(choices, steps)
    programs = toolchain.programs(wanted.kubernetes)
    with steps.step("Make the container images", 1):
        images.ensure()
        if where.name and wanted.driver is state.Driver.PODS:
            # A named cluster's network reaches no mirror to make it from later.
            build.ensure(configs.DRIVER_IMAGE)
    network.enter(where)
    with toolchain.lock(where.lock):
        if _is_up_already(where, wanted, steps):
            return
        _clear(where, steps)
        cluster = _begin(where, wanted)
        _link_programs(where, programs)
        _start(where, cluster, steps)
        if cluster.driver is not state.Driver.NONE:
            driver.install(where, cluster, steps)
        store.write(where, cluster.model_copy(update={"phase": state.Phase.UP}))


def _is_up_already(where: layout.Layout, wanted: state.Wanted, steps: progress.Steps) -> bool:
    cluster = store.read(where)
    if cluster is None or not store.is_up(cluster):
        return False
    broken = [
        processes.key(*component)
        for component in cluster.components()
        if control.condition(where, *component) not in {"running", "frozen"}
    ]
    if broken:
        steps.say(f"The cluster is damaged ({', '.join(broken)}); starting over.")
        return False
    if not wanted.is_met_by(cluster):
        raise errors.ClusterError(
            "a cluster of this checkout is up with other settings "
            f"(it runs Kubernetes {cluster.kubernetes}, feature gates "
            f"{dict(cluster.feature_gates) or 'by default'}); end it first: make cluster-down"
        )
    steps.say("The cluster is up already.")
    return True


def _clear(where: layout.Layout, steps: progress.Steps) -> None:
    """End what an earlier run left; another checkout's cluster only where CI=true."""
    owner = store.owner(where)
    if owner is not None and owner != where.checkout and os.environ.get("CI") != "true":
        raise errors.OwnedElsewhereError(owner)
    left = dataclasses.replace(where, checkout=owner or where.checkout)
    if owner is not None or left.home.exists():
        with steps.step("End what an earlier cluster left", 3):
            down.clear(left)
    host.refuse_foreign_proxy()


def _begin(where: layout.Layout, wanted: state.Wanted) -> state.ClusterState:
    listeners = [
        *plan.CORE_LISTENERS,
        *plan.controller_listeners(wanted.controllers),
        *(name for entry in wanted.nodes for name in plan.node_listeners(entry.name)),
    ]
    others = store.others(where)
    cluster = state.ClusterState(
        checkout=str(where.checkout),
        boot=processes.boot(),
        phase=state.Phase.STARTING,
        kubernetes=wanted.kubernetes,
        driver=wanted.driver,
        controllers=wanted.controllers,
        nodes=wanted.nodes,
        feature_gates=wanted.feature_gates,
        ports=plan.choose_ports(listeners, (), host.is_free),
        sysctls={**host.read_sysctls(), **machine_values(others)},
        absent=tuple(
            dict.fromkeys(
                (*host.absent_folders(), *(name for one in others for name in one.absent))
            )
        ),
    )
    where.base.mkdir(parents=True, exist_ok=True)
    where.marker.write_text(json.dumps({"checkout": str(where.checkout)}) + "\n")
    for folder in (where.home, where.keys, where.etcd):
        folder.mkdir(mode=0o700, exist_ok=True)
    where.home.chmod(0o755)
    shutil.rmtree(where.logs, ignore_errors=True)
    for folder in (where.dot, where.logs, where.records, where.nodes, where.programs):
        folder.mkdir(parents=True, exist_ok=True)
    store.write(where, cluster)
    return cluster


def machine_values(others: Sequence[state.ClusterState]) -> dict[str, str]:
    """Values that no network has of its own, as they were before the clusters that are there."""
    return {
        name: value
        for cluster in others
        for name, value in cluster.sysctls.items()
        if not name.startswith("net/")
    }


def _link_programs(where: layout.Layout, programs: Mapping[str, Path]) -> None:
    for name, program in programs.items():
        where.program(name).symlink_to(program)


def _start(where: layout.Layout, cluster: state.ClusterState, steps: progress.Steps) -> None:
    ports = cluster.ports
    host.add_address(plan.API_ADDRESS)
    certificates.create(where, ports)
    proxy = configs.kube_proxy(where.key("kube-proxy.kubeconfig"), ports)
    where.key("kube-proxy.yaml").write_text(configs.yaml(proxy))
    where.key("audit.yaml").write_text(configs.yaml(configs.audit(argv.NAMESPACE)))
    for entry in cluster.nodes:
        node.prepare(where, entry, ports)
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        with steps.step("Start the control plane and the container runtimes", 12):
            runtimes = [
                pool.submit(node.start_runtime, where, entry, cluster.driver)
                for entry in cluster.nodes
            ]
            _start_control_plane(where, cluster)
            _all(runtimes)
        with steps.step(f"Start {len(cluster.nodes)} nodes", 12):
            for entry in cluster.nodes:
                node.start_kubelet(where, entry, cluster.feature_gates)
            node.start_proxy(where, cluster.nodes[0].name)
            _all([pool.submit(node.wait_ready, where, entry.name) for entry in cluster.nodes])
            _wait_default_account(where)


def _start_control_plane(where: layout.Layout, cluster: state.ClusterState) -> None:
    program, ports = where.program, cluster.ports
    gates = argv.feature_gates(cluster.feature_gates)
    control.launch(where, "etcd", None, argv.etcd(program("etcd"), where, ports))
    # The API server gives up when etcd refuses its first words.
    _wait_port("127.0.0.1", ports["etcd"], control.log_path(where, "etcd", None))
    command = argv.kube_apiserver(program("kube-apiserver"), where, ports)
    control.launch(where, "kube-apiserver", None, (*command, *gates))
    log = control.log_path(where, "kube-apiserver", None)
    _wait_port(plan.API_ADDRESS, ports["kube-apiserver"], log)
    kubectl.wait(
        "the API server is ready",
        lambda: kubectl.run(where, "get", "--raw=/readyz") == "ok",
        _API_S,
        log,
    )
    for name, command_of in (
        ("kube-controller-manager", argv.kube_controller_manager),
        ("kube-scheduler", argv.kube_scheduler),
    ):
        command = command_of(program(name), where, ports)
        control.launch(where, name, None, (*command, *gates))


def _wait_port(address: str, port: int, log: Path) -> None:
    def answers() -> bool:
        with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1):
            return True
        return False

    kubectl.wait(f"{log.stem} listens", answers, _API_S, log)


def _wait_default_account(where: layout.Layout) -> None:
    """Without it no pod can be created; controller-manager makes it a moment after its start."""
    query = ("get", "serviceaccount", "default", "--namespace=default", "--output=name")
    log = control.log_path(where, "kube-controller-manager", None)
    kubectl.wait(
        "the default service account is there",
        lambda: bool(kubectl.run(where, *query)),
        _API_S,
        log,
    )


def _all(futures: Sequence[concurrent.futures.Future[None]]) -> None:
    for future in futures:
        future.result()
