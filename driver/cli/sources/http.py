"""GET over HTTP or HTTPS at a URL, with a bearer token where there is one."""

import urllib3

from driver import errors
from driver.cli import errors as cli_errors

_TIMEOUT = urllib3.Timeout(connect=4.0, read=15.0)
_SCHEMES = ("http://", "https://")


class PageClient:
    """A server at a base URL. Raises BadInput for what is no URL of one."""

    def __init__(self, url: str, token: str) -> None:
        if not url.startswith(_SCHEMES):
            raise errors.BadInput(
                "--server", f"is {url!r}", "http://HOST:PORT or https://HOST:PORT"
            )
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._pool = urllib3.PoolManager(retries=False, timeout=_TIMEOUT)

    def get(self, path: str) -> tuple[int, bytes]:
        """GET a path: the status and the body. Raises Unreachable."""
        try:
            answer = self._pool.request("GET", self._url + path, headers=self._headers)
        except urllib3.exceptions.HTTPError as error:
            message = f"{self._url}: {_reason(error)}"
            raise errors.Unreachable(0, cli_errors.CONTROLLER, message) from error
        return answer.status, answer.data


def _reason(error: Exception) -> str:
    """Return the system's message without the library's around it."""
    return str(error).rpartition(": ")[2] or type(error).__name__
