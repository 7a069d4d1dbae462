"""Commands to an MPS control daemon (protocol v2), and parsing of its replies. Pure.

Limits are set by device index: by UUID they remove others (535, 550). What was set is queried
again, because the replies of a `set` prove nothing. Sizes are returned in whole GiB, truncated, so
a reply can only contradict a limit, never confirm it exactly: a limit is also set again, once for
the daemon and once for each server.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from driver.devices import mps_files

_GIB = 1 << 30
_UNITS = {"G": _GIB, "M": mps_files.MIB}
_SIZE = re.compile(r"(\d+)\s*([GM])i?B?")
_NEW_CLIENT = re.compile(r"NEW CLIENT (\d+) ")
_PENDING = re.compile(r"NEW CLIENT (\d+) from user (\d+): [^\n]*pending list")
"""A client waits for a server: to start, or for another user's to end."""
_SERVER_NEWS = re.compile(r"NEW SERVER (\d+): Ready|Server (\d+) exited with status (\d+)")
_ACTIVE = "ACTIVE"
_UNKNOWN = "Unknown command"
"""The answer of 535 to get_server_status."""
_CHATTER = re.compile(
    r"\[[^]]*\] (?:Cmd:.*|UI closed|NEW UI|Accepting connection\.\.\.|[A-Z]+"
    r"|No default pinned memory limit set for the device!|Unknown command \"get_server_status\""
    r"|\d+(?:\.\d+)?(?:\s*[GM]i?B?)?)"
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits as the daemon shows them: a percentage, a size per device; "" if not shown."""

    percentage: str
    memory: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Server:
    """An MPS server of a daemon; `status` is its own word, "" if unknown; `clients` are pids."""

    pid: int
    status: str
    limits: Limits
    clients: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DaemonStatus:
    """Everything queried of a daemon; `defaults` apply to servers that start later.

    `server_failure` is how its last server ended, "" unless that was a failure; `waiting` names
    clients that wait for another user's server to have no clients, "" if none.
    """

    defaults: Limits
    servers: tuple[Server, ...] = ()
    server_failure: str = ""
    waiting: str = ""

    @property
    def clients(self) -> tuple[int, ...]:
        """Return the pids of every server's clients."""
        return tuple(pid for server in self.servers for pid in server.clients)


def limit_commands(desired: mps_files.Desired) -> tuple[str, ...]:
    """Return commands that set the daemon's defaults."""
    return (
        *(
            f"set_default_device_pinned_mem_limit {index} {size // mps_files.MIB}M"
            for index, size in enumerate(desired.pinned_memory)
        ),
        f"set_default_active_thread_percentage {desired.active_thread_percentage}",
    )


def server_limit_commands(desired: mps_files.Desired, pid: int) -> tuple[str, ...]:
    """Return commands that set a running server's limits, for its later clients."""
    return (
        *(
            f"set_device_pinned_mem_limit {pid} {index} {size // mps_files.MIB}M"
            for index, size in enumerate(desired.pinned_memory)
        ),
        f"set_active_thread_percentage {pid} {desired.active_thread_percentage}",
    )


def terminate_commands(servers: Iterable[Server]) -> tuple[str, ...]:
    """Return commands that end every client's contexts, so that none dies with work in flight."""
    return tuple(
        f"terminate_client {server.pid} {pid}" for server in servers for pid in server.clients
    )


def query_commands(devices: int) -> tuple[str, ...]:
    """Return commands that query defaults and servers; `parse_daemon` parses the reply."""
    return (
        "get_default_active_thread_percentage",
        *(f"get_default_device_pinned_mem_limit {index}" for index in range(devices)),
        "get_server_list",
    )


def server_query_commands(pid: int, devices: int) -> tuple[str, ...]:
    """Return commands that query a server; `parse_server` parses the reply."""
    return (
        f"get_server_status {pid}",
        f"get_active_thread_percentage {pid}",
        *(f"get_device_pinned_mem_limit {pid} {index}" for index in range(devices)),
        f"get_client_list {pid}",
    )


def parse_daemon(reply: str, devices: int) -> tuple[Limits, tuple[int, ...]] | None:
    """Return the defaults and server pids in a reply to `query_commands`; None if invalid."""
    lines, pids = _split_reply(reply, head=1)
    if not lines or not _is_number(lines[0]):
        return None
    return Limits(lines[0], _sizes(lines[1:], devices)), pids


def parse_server(reply: str, pid: int, devices: int) -> Server | None:
    """Return the server in a reply to `server_query_commands`; None if it has ended meanwhile."""
    lines, pids = _split_reply(reply, head=2)
    if len(lines) < 2 or not _is_number(lines[1]):  # noqa: PLR2004 - its status and percentage
        return None
    status = "" if lines[0].startswith(_UNKNOWN) else lines[0]
    return Server(pid, status, Limits(lines[1], _sizes(lines[2:], devices)), pids)


def parse_refusals(reply: str) -> str:
    """Return the refusals in a reply to limit commands; an accepted command replies a number."""
    lines = (line.strip() for line in reply.splitlines())
    return " | ".join(line for line in lines if line and not _is_number(line))


def limit_differences(desired: mps_files.Desired, actual: Limits) -> Iterator[str]:
    """Yield messages where the shown limits contradict the desired ones."""
    percentage = desired.active_thread_percentage
    if not _is_number(actual.percentage) or float(actual.percentage) != percentage:
        yield f"active thread percentage {actual.percentage or 'none'} instead of {percentage}"
    for index, (size, text) in enumerate(zip(desired.pinned_memory, actual.memory, strict=True)):
        if not is_shown_as(size, text):
            mebibytes = size // mps_files.MIB
            yield f"pinned memory {text or 'none'} instead of {mebibytes}M on device {index}"


def is_shown_as(size: int, text: str) -> bool:
    """Return whether the daemon may show a limit of `size` bytes as `text`."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return False
    unit = _UNITS[match[2]]
    return size // unit == int(match[1])


def client_problems(status: DaemonStatus) -> Iterator[str]:
    """Yield problems that affect clients although the daemon is as desired."""
    if status.server_failure:
        yield status.server_failure
    if status.waiting:
        yield status.waiting
    for server in status.servers:
        if server.status not in {"", _ACTIVE}:
            yield (
                f"MPS server {server.pid} is {server.status}: new clients are refused until "
                "those that the fault took have left"
            )


def logged_clients(text: str) -> tuple[int, ...]:
    """Return the pids of the clients in a control.log, each once."""
    return tuple(dict.fromkeys(int(pid) for pid in _NEW_CLIENT.findall(text)))


def logged_pending(text: str) -> dict[int, str]:
    """Return the clients that waited for a server, by a control.log: pids, and their user ids."""
    return {int(pid): user for pid, user in _PENDING.findall(text)}


def waiting_message(pending: Mapping[int, str], user: str) -> str:
    """Return which clients wait for the server of `user` to end; "" if none."""
    clients = [
        f"client {pid} of user {client_user}"
        for pid, client_user in pending.items()
        if client_user != user
    ]
    if not clients:
        return ""
    verb = "waits" if len(clients) == 1 else "wait"
    return f"{', '.join(clients)} {verb} until the server of user {user} has no clients"


def server_failure(text: str) -> str:
    """Return how the last server in a control.log ended; "" if it did not fail.

    A missing device first shows here: a server starts with the first client.
    """
    codes = [code for _, _, code in _SERVER_NEWS.findall(text)]
    if not codes or codes[-1] in {"", "0"}:
        return ""
    return f"the last MPS server ended with exit code {codes[-1]}, see the daemon's log"


def drop_chatter(lines: Iterable[str]) -> list[str]:
    """Return a log's lines without our own queries and their replies."""
    return [line for line in lines if not _CHATTER.fullmatch(line)]


def _split_reply(reply: str, head: int) -> tuple[list[str], tuple[int, ...]]:
    """Return the lines of a reply, and its trailing pids; none are among the first `head` lines."""
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    end = len(lines)
    while end > head and lines[end - 1].isdigit():
        end -= 1
    return lines[:end], tuple(int(line) for line in lines[end:])


def _sizes(lines: list[str], devices: int) -> tuple[str, ...]:
    """Return one size per device; with fewer replies none can be assigned."""
    return tuple(lines) if len(lines) == devices else ("",) * devices


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+)?", text) is not None
