"""Kubelet plugins of other drivers as components of nodes: access, registration, end."""

from collections.abc import Sequence
from pathlib import Path

from hack.cluster import access as component_access
from hack.cluster import argv, control, driver, guests, kubectl, layout

_REGISTERED_S = 30.0


def service_account(objects: Sequence[guests.Object], ending: str = "") -> str:
    """Return the name of the account that the plugin's pods would have.

    `ending` tells it from the chart's other accounts.
    """
    accounts = (entry for entry in objects if entry["kind"] == "ServiceAccount")
    names = (str(account["metadata"]["name"]) for account in accounts)
    return next(name for name in names if name.endswith(ending))


def access(
    where: layout.Layout, component: str, node: str, account: tuple[str, str], ports: argv.Ports
) -> Path:
    """Write a kubeconfig with a token of an account, (namespace, name), for the owner only.

    The token carries the node's name, as a pod's would.
    """
    namespace, name = account
    folder = where.node(node).config
    token, kubeconfig = folder / f"{component}.token", folder / f"{component}.kubeconfig"
    request = argv.plugin_token(node, name, namespace)
    return component_access.write(where, token, kubeconfig, request, ports)


def wait_served(where: layout.Layout, node: str, driver_name: str) -> None:
    """Wait until a driver's devices of a node are published, and its kubelet has registered it.

    The component has the driver's name. A pod that comes before the registration waits a minute
    for the next try. Raises ClusterError.
    """
    driver.wait_slices(where, node, (driver_name,), driver_name)
    query = ("get", "--raw", f"/api/v1/nodes/{node}/proxy/metrics")
    kubectl.wait(
        f"the kubelet of {node} registers {driver_name}",
        lambda: is_registered(kubectl.run(where, *query), driver_name),
        _REGISTERED_S,
        control.log_path(where, driver_name, node),
    )


def is_registered(metrics: str, driver_name: str) -> bool:
    """Return whether a kubelet's metrics count a driver's plugin among its registered ones."""
    socket = f'/{driver_name}-reg.sock",state="actual_state_of_world"'
    return any(socket in line and line.endswith(" 1") for line in metrics.splitlines())


def stop(where: layout.Layout, driver_name: str, *nodes: str) -> None:
    """Stop and forget the plugin on nodes, on every one unless some are named."""
    for component, node in control.recorded(where):
        if component == driver_name and (not nodes or node in nodes):
            control.stop(where, component, node)
            control.forget(where, component, node)
