"""Kubeconfigs as the official Kubernetes client reads them: certificates, exec plugins, proxies.

Its import costs 16 MiB and half a second, so `credentials` imports this module where a kubeconfig,
or the environment, needs it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import urllib3
import yaml
from kubernetes import config as kube_config
from kubernetes.client import configuration as kube_configuration
from kubernetes.client import rest

from driver import errors

_Loader = Callable[..., None]


def load_settings(kubeconfig: Path | None) -> kube_configuration.Configuration:
    """Read a kubeconfig file; None: the service account of our pod.

    Raises BadInput if the files are invalid.
    """
    settings = kube_configuration.Configuration()
    try:
        _load(settings, kubeconfig)
    except (kube_config.ConfigException, OSError, yaml.YAMLError) as e:
        source = "service account" if kubeconfig is None else str(kubeconfig)
        raise errors.BadInput(source, str(e), "usable credentials") from e
    return settings


def make_pool(settings: kube_configuration.Configuration, size: int) -> urllib3.PoolManager:
    """Return the client's connections, at most `size` a host, which retry nothing by themselves.

    Its own `request` writes bodies with spaces, which breaks claims with opaque parameters.
    """
    settings.retries = cast("Any", False)  # noqa: FBT003 - urllib3: no hidden retry at all
    settings.connection_pool_maxsize = size
    settings.keep_alive = True
    pool: urllib3.PoolManager = rest.RESTClientObject(settings).pool_manager
    return pool


def authorization(settings: kube_configuration.Configuration) -> str:
    """Return the `Authorization` header of the credentials; "" if they need none."""
    auth: dict[str, Any] = dict(settings.auth_settings())
    return str(auth.get("BearerToken", {}).get("value") or "").strip()


def _load(settings: kube_configuration.Configuration, kubeconfig: Path | None) -> None:
    """Fill `settings` by the official loaders, which are not typed."""
    if kubeconfig is None:
        in_cluster: _Loader = kube_config.load_incluster_config
        in_cluster(client_configuration=settings)
        return
    from_file: _Loader = kube_config.load_kube_config
    from_file(str(kubeconfig), client_configuration=settings, persist_config=False)
