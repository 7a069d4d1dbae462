"""Address and credentials of the API server, re-read whenever they may have changed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import yaml
from kubernetes import config as kube_config
from kubernetes.client import configuration as kube_configuration
from kubernetes.client import rest
from kubernetes.config import incluster_config

from driver import errors

_Loader = Callable[..., None]
POOL = 64
"""Open connections: every reflector holds one, every writer thread uses one."""

_POD_NAMESPACE = Path(incluster_config.SERVICE_TOKEN_FILENAME).with_name("namespace")


class Rest(Protocol):
    """The part of the official client's REST object that we use: its connections (urllib3).

    Its own `request` writes bodies with spaces, which breaks claims with opaque parameters.
    """

    pool_manager: Any


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """Credentials as read once: base URL, pool, `Authorization` header or ""."""

    host: str
    rest: Rest
    authorization: str
    stamp: tuple[int, int] | None


class Credentials:
    """A kubeconfig file, or without one the service account of the pod we run in."""

    def __init__(self, kubeconfig: Path | None) -> None:
        self._kubeconfig = kubeconfig
        self._token_file = (
            Path(incluster_config.SERVICE_TOKEN_FILENAME)
            if kubeconfig is None
            else _token_file(kubeconfig)
        )

    def open(self) -> Session:
        """Read everything and create a pool.

        Raises BadInput if the files are invalid.
        """
        stamp = self.stamp()
        settings = self.settings()
        settings.retries = cast("Any", False)  # noqa: FBT003 - urllib3: no hidden retry at all
        settings.connection_pool_maxsize = POOL
        settings.keep_alive = True
        return Session(
            settings.host, rest.RESTClientObject(settings), authorization(settings), stamp
        )

    def settings(self) -> kube_configuration.Configuration:
        """Read everything, as the official client takes it.

        Raises BadInput if the files are invalid.
        """
        settings = kube_configuration.Configuration()
        try:
            self._load(settings)
        except (kube_config.ConfigException, OSError, yaml.YAMLError) as e:
            raise errors.BadInput(self._source_name(), str(e), "usable credentials") from e
        return settings

    def stamp(self) -> tuple[int, int] | None:
        """Return the token file's inode and time of change, which change on rotation."""
        if self._token_file is None:
            return None
        try:
            stat = self._token_file.stat()
        except OSError:
            return None
        return stat.st_ino, stat.st_mtime_ns

    def _load(self, settings: kube_configuration.Configuration) -> None:
        """Fill `settings` by the official loaders, which are not typed."""
        if self._kubeconfig is None:
            in_cluster: _Loader = kube_config.load_incluster_config
            in_cluster(client_configuration=settings)
            return
        from_file: _Loader = kube_config.load_kube_config
        from_file(str(self._kubeconfig), client_configuration=settings, persist_config=False)

    def _source_name(self) -> str:
        return "service account" if self._kubeconfig is None else str(self._kubeconfig)


def authorization(settings: kube_configuration.Configuration) -> str:
    """Return the `Authorization` header of the credentials; "" if they need none."""
    auth: dict[str, Any] = dict(settings.auth_settings())
    return str(auth.get("BearerToken", {}).get("value") or "").strip()


def namespace(kubeconfig: Path | None) -> str:
    """Return the namespace of a kubeconfig's current context, or of our pod; "" if none."""
    if kubeconfig is None:
        try:
            return _POD_NAMESPACE.read_text().strip()
        except OSError:
            return ""
    listed: Callable[..., tuple[object, dict[str, Any]]] = kube_config.list_kube_config_contexts
    try:
        _, active = listed(config_file=str(kubeconfig))
        return str(active["context"].get("namespace") or "")
    except (kube_config.ConfigException, OSError, yaml.YAMLError, LookupError, TypeError):
        return ""  # connecting reports what is wrong with the file


def _token_file(kubeconfig: Path) -> Path | None:
    """Return `tokenFile` of the current context's user; the official loader reads it only once."""
    try:
        document = yaml.safe_load(kubeconfig.read_text())
        context = _find_entry(document["contexts"], document["current-context"])["context"]
        user = _find_entry(document["users"], context["user"])["user"]
        token_file = user.get("tokenFile")
    except (OSError, yaml.YAMLError, LookupError, TypeError, AttributeError):
        return None  # the official loader reports what is wrong with the file
    return kubeconfig.parent / token_file if token_file else None


def _find_entry(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next((e for e in entries if e["name"] == name), {})
