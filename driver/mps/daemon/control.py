"""What is said to an MPS control daemon (protocol v2), and what its answers mean. Pure.

Limits go by a device's index: one by UUID takes others away (535, 550). What was set is asked for
again, because the replies of a `set` prove nothing. Sizes come back in whole GiB, cut
off, so an answer can only contradict a limit, never quite confirm it: whatever is to hold is also
said anew, once to the daemon and once to each server.
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
"""Of a client that waits for a server, be it that it starts, or that another user's has to go."""
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
    """As the daemon shows them: a percentage, a size for each device; "" where it shows none."""

    percentage: str
    memory: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Server:
    """An MPS server of a daemon; `status` is its own word, "" not told; `clients` are pids."""

    pid: int
    status: str
    limits: Limits
    clients: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DaemonStatus:
    """Everything a daemon was asked; `defaults` bind servers that start later.

    `failed` is in words how its last server ended, "" unless that was a failure; `waiting` who
    waits for another user's server to have no clients, "" when nobody does.
    """

    defaults: Limits
    servers: tuple[Server, ...] = ()
    server_failure: str = ""
    waiting: str = ""

    @property
    def clients(self) -> tuple[int, ...]:
        """Pids of the clients of every server."""
        return tuple(pid for server in self.servers for pid in server.clients)


def limit_commands(wanted: mps_files.Desired) -> tuple[str, ...]:
    """Commands that set the daemon's defaults."""
    return (
        *(
            f"set_default_device_pinned_mem_limit {index} {size // mps_files.MIB}M"
            for index, size in enumerate(wanted.pinned_memory)
        ),
        f"set_default_active_thread_percentage {wanted.active_thread_percentage}",
    )


def server_limit_commands(wanted: mps_files.Desired, pid: int) -> tuple[str, ...]:
    """Commands that set a living server's limits, for its later clients."""
    return (
        *(
            f"set_device_pinned_mem_limit {pid} {index} {size // mps_files.MIB}M"
            for index, size in enumerate(wanted.pinned_memory)
        ),
        f"set_active_thread_percentage {pid} {wanted.active_thread_percentage}",
    )


def terminate_commands(servers: Iterable[Server]) -> tuple[str, ...]:
    """Commands that end the contexts of every client, so that none dies with work in flight."""
    return tuple(
        f"terminate_client {server.pid} {pid}" for server in servers for pid in server.clients
    )


def query_commands(devices: int) -> tuple[str, ...]:
    """Commands that ask for the defaults and for the servers; `read_daemon` takes the reply."""
    return (
        "get_default_active_thread_percentage",
        *(f"get_default_device_pinned_mem_limit {index}" for index in range(devices)),
        "get_server_list",
    )


def server_query_commands(pid: int, devices: int) -> tuple[str, ...]:
    """Commands that ask for a server; `read_server` takes the reply."""
    return (
        f"get_server_status {pid}",
        f"get_active_thread_percentage {pid}",
        *(f"get_device_pinned_mem_limit {pid} {index}" for index in range(devices)),
        f"get_client_list {pid}",
    )


def parse_daemon(reply: str, devices: int) -> tuple[Limits, tuple[int, ...]] | None:
    """The defaults and the servers' pids in a reply to `questions`; None when it is none."""
    lines, pids = _split_reply(reply, head=1)
    if not lines or not _is_number(lines[0]):
        return None
    return Limits(lines[0], _sizes(lines[1:], devices)), pids


def parse_server(reply: str, pid: int, devices: int) -> Server | None:
    """The server in a reply to `questions_of_server`; None when it has ended meanwhile."""
    lines, pids = _split_reply(reply, head=2)
    if len(lines) < 2 or not _is_number(lines[1]):  # noqa: PLR2004 - its status and percentage
        return None
    status = "" if lines[0].startswith(_UNKNOWN) else lines[0]
    return Server(pid, status, Limits(lines[1], _sizes(lines[2:], devices)), pids)


def parse_refusals(reply: str) -> str:
    """The words of a reply to `limits` or `limits_of_server`; each that was taken says a number."""
    lines = (line.strip() for line in reply.splitlines())
    return " | ".join(line for line in lines if line and not _is_number(line))


def limit_differences(wanted: mps_files.Desired, shown: Limits) -> Iterator[str]:
    """In words, where what is shown contradicts what is wanted."""
    percentage = wanted.active_thread_percentage
    if not _is_number(shown.percentage) or float(shown.percentage) != percentage:
        yield f"active thread percentage {shown.percentage or 'none'} instead of {percentage}"
    for index, (size, text) in enumerate(zip(wanted.pinned_memory, shown.memory, strict=True)):
        if not is_shown_as(size, text):
            mebibytes = size // mps_files.MIB
            yield f"pinned memory {text or 'none'} instead of {mebibytes}M on device {index}"


def is_shown_as(size: int, text: str) -> bool:
    """Whether the daemon may show a limit of `size` bytes as `text`."""
    found = _SIZE.fullmatch(text)
    if found is None:
        return False
    unit = _UNITS[found[2]]
    return size // unit == int(found[1])


def client_problems(answer: DaemonStatus) -> Iterator[str]:
    """In words, what clients may suffer from though the daemon is as it should be."""
    if answer.server_failure:
        yield answer.server_failure
    if answer.waiting:
        yield answer.waiting
    for server in answer.servers:
        if server.status not in {"", _ACTIVE}:
            yield (
                f"MPS server {server.pid} is {server.status}: new clients are refused until "
                "those that the fault took have left"
            )


def logged_clients(text: str) -> tuple[int, ...]:
    """Pids of the clients that a control.log tells of, each once."""
    return tuple(dict.fromkeys(int(pid) for pid in _NEW_CLIENT.findall(text)))


def logged_pending(text: str) -> dict[int, str]:
    """The clients that a control.log says have waited for a server: pids, and their users' ids."""
    return {int(pid): user for pid, user in _PENDING.findall(text)}


def waiting_message(pending: Mapping[int, str], user: str) -> str:
    """In words, which clients wait for the server of `user` to go; "" when none does."""
    who = [f"client {pid} of user {theirs}" for pid, theirs in pending.items() if theirs != user]
    if not who:
        return ""
    verb = "waits" if len(who) == 1 else "wait"
    return f"{', '.join(who)} {verb} until the server of user {user} has no clients"


def server_failure(text: str) -> str:
    """How the last server that a control.log tells of ended, in words; "" while all is well.

    A device that is not there shows first here: a server starts with the first client.
    """
    codes = [code for _, _, code in _SERVER_NEWS.findall(text)]
    if not codes or codes[-1] in {"", "0"}:
        return ""
    return f"the last MPS server ended with exit code {codes[-1]}, see server.log"


def drop_chatter(lines: Iterable[str]) -> list[str]:
    """A log's lines without what our own questions and their answers left there."""
    return [line for line in lines if not _CHATTER.fullmatch(line)]


def _split_reply(reply: str, head: int) -> tuple[list[str], tuple[int, ...]]:
    """The lines of a reply, and the pids it ends with; none are among the first `head` lines."""
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    end = len(lines)
    while end > head and lines[end - 1].isdigit():
        end -= 1
    return lines[:end], tuple(int(line) for line in lines[end:])


def _sizes(lines: list[str], devices: int) -> tuple[str, ...]:
    """One for each device; of fewer answers none can be told whose it is."""
    return tuple(lines) if len(lines) == devices else ("",) * devices


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+)?", text) is not None
