"""Address and credentials of the API server, re-read whenever they may have changed."""

from dataclasses import dataclass
from pathlib import Path

import urllib3

from driver.kube.http import token_access

POOL = 64
"""Open connections: every reflector holds one, every writer thread uses one."""


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """Credentials as read once: base URL, connections, `Authorization` header or ""."""

    host: str
    pool: urllib3.PoolManager
    authorization: str
    stamp: tuple[int, int] | None


class Credentials:
    """A kubeconfig file, or without one the service account of the pod we run in."""

    def __init__(self, kubeconfig: Path | None) -> None:
        self._kubeconfig = kubeconfig
        self._token_file = (
            token_access.SERVICE_ACCOUNT / "token"
            if kubeconfig is None
            else token_access.find_token_file(kubeconfig)
        )

    def open(self) -> Session:
        """Read everything and create a pool.

        Raises BadInput if the files are invalid.
        """
        stamp = self.stamp()
        access = self._read_access()
        if access is not None:
            return Session(access.host, access.make_pool(POOL), access.authorization, stamp)
        from driver.kube.http import official_client  # noqa: PLC0415 - 16 MiB, half a second

        settings = official_client.load_settings(self._kubeconfig)
        return Session(
            settings.host,
            official_client.make_pool(settings, POOL),
            official_client.authorization(settings),
            stamp,
        )

    def stamp(self) -> tuple[int, int] | None:
        """Return the token file's inode and time of change, which change on rotation."""
        if self._token_file is None:
            return None
        try:
            stat = self._token_file.stat()
        except OSError:
            return None
        return stat.st_ino, stat.st_mtime_ns

    def _read_access(self) -> token_access.TokenAccess | None:
        if self._kubeconfig is None:
            return token_access.read_service_account()
        return token_access.read_kubeconfig(self._kubeconfig)


def namespace(kubeconfig: Path | None) -> str:
    """Return the namespace of a kubeconfig's current context, or of our pod; "" if none."""
    try:
        if kubeconfig is None:
            return (token_access.SERVICE_ACCOUNT / "namespace").read_text().strip()
        return str(token_access.find_context(kubeconfig).get("namespace") or "")
    except token_access.UNREADABLE:
        return ""  # connecting reports what is wrong with the file
