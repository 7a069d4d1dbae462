"""The commands of nvidia-cuda-mps-control (v2): a line in, the answer's text out.

Names, arguments and meaning: MPS documentation, "Legacy MPS v2 Interface", and the manual page.
Captured of 535.261.03 and 550.163.01, without a GPU: what is said of a server that is not there, of
a command that is not known, of a bad percentage and to who has no right; which commands each knows,
and whom it lets set limits. Captured of 580.159.04 on an H100 and an H200: the same, the tables of
`ps` and `device_query`, the lines of `get_device_client_list`, limits by UUID. Assumed: what other
refusals say, and that later drivers answer as 580.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from simulator import cuda_codes, cuda_contexts, mps_limits, multiplexer
from simulator.mps_daemons import Daemon, Server

ROOT = 0
MULTI_USER = 580
"""The first driver whose daemon has a multi-user mode, among those that were tried."""
LOOKS_FIRST = 580
"""The first of them whose daemon calls cuInit, and ends where there is no device."""
_GUARDED = 550
"""The first of them that lets root and the daemon's user alone set limits."""
_BY_UUID = 580
"""The first of them in which a limit may go by a device's UUID."""
_NO_RIGHT = (
    "Insufficient privileges for UID {user}. Control deamon settings can only be modified by the "
    "user{who} started it or by the root user."
)
_CONTEXT = "1"
"""Number of a client's context: 0 is the one that it connects with."""
_WIDTHS = {"ps": (10, 10, 15, 26, 15, 15), "device_query": (16, 15, 42, 34, 0)}


class CommandError(Exception):
    """A command that is refused, in words."""


class Captured(CommandError):
    """A refusal whose words are the daemon's own; they are all of the answer."""


class Asked(NamedTuple):
    """One command of one user, and what it is asked of."""

    mps: multiplexer.Multiplexer
    daemon: Daemon
    words: list[str]

    def server(self, word: str) -> Server:
        """The server of that pid."""
        server = self.daemon.server
        if server is None or word != str(server.peer.pid):
            raise Captured(f"Server {word} not found")
        return server

    def servers(self, words: list[str]) -> list[Server]:
        """The server named, or every one."""
        if words:
            return [self.server(words[0])]
        return [self.daemon.server] if self.daemon.server else []


class Command(NamedTuple):
    """How a command is written, what it does, and whether it takes root or the daemon's user.

    `since` is the major version of the first driver that knows it, 0 of one older than 535.
    """

    usage: str
    run: Callable[[Asked], str]
    changes: bool = True
    since: int = 0

    def takes(self, count: int) -> bool:
        """Whether that many words may follow the name; `[...]` stands for what may be left out."""
        needed, _, optional = self.usage.partition("[")
        least = len(needed.split())
        return count in {least, least + len(optional.rstrip("]").split())}


def answer(mps: multiplexer.Multiplexer, daemon: Daemon, user: int, line: str) -> str:
    """Carry out one line; the text has no newline at its end, and may be empty."""
    name, *words = line.split() or [""]
    daemon.log(f"Cmd:{line.strip()}")
    try:
        text = _run(Asked(mps, daemon, words), name, user)
    except Captured as e:
        text = str(e)
    except CommandError as e:
        text = f"Error: {e}"
    if text:
        daemon.log(text)
    return text


def _run(asked: Asked, name: str, user: int) -> str:
    command = COMMANDS.get(name)
    if command is None or asked.mps.machine.driver_major < command.since:
        raise Captured(f'Unknown command "{name}"')
    if not command.takes(len(asked.words)):
        raise CommandError(f"usage: {name} {command.usage}".rstrip())
    if command.changes and user not in {ROOT, asked.daemon.peer.user}:
        _require_right(asked, name, user)
    return command.run(asked)


def _require_right(asked: Asked, name: str, user: int) -> None:
    """Refuse a user that is neither root nor the daemon's what it may not change."""
    if name == "quit":
        raise Captured("Not enough privilege to execute quit command")
    if asked.mps.machine.driver_major >= _GUARDED or not name.startswith("set_"):
        who = " who" if asked.mps.machine.driver_major >= _BY_UUID else ""
        raise Captured(_NO_RIGHT.format(user=user, who=who))


def _number(word: str, what: str) -> int:
    if not word.isdigit():
        raise CommandError(f"{what} {word!r}: expected a number")
    return int(word)


def _percentage(asked: Asked, word: str, now: float) -> float:
    """Read a percentage; a bad one leaves the one that is there, and only the log says so."""
    value = mps_limits.parse_percentage(word)
    if value is None:
        asked.daemon.log("Invalid percentage, expected between (0.0, 100.0]")
        return now
    return value


def _size(word: str) -> int:
    value = mps_limits.parse_size(word)
    if value is None:
        raise CommandError(f"limit {word!r}: expected a whole number and G or M")
    return value


def _shown(asked: Asked, limits: mps_limits.Limits, device: str) -> str:
    if device in limits.memory:
        return mps_limits.render_size(limits.memory[device])
    asked.daemon.log("No default pinned memory limit set for the device!")
    return ""


def _limit(asked: Asked, limits: mps_limits.Limits, device: str, size: str) -> None:
    """Any index is taken: it is not looked at. An old daemon lets a UUID take every limit away."""
    value = _size(size)
    if device.isdigit() or asked.mps.machine.driver_major >= _BY_UUID:
        limits.memory[device] = value
    else:
        limits.memory.clear()


def _server_list(asked: Asked) -> str:
    return "\n".join(str(server.peer.pid) for server in asked.servers([]))


def _server_status(asked: Asked) -> str:
    return asked.server(asked.words[0]).status.value


def _start_server(asked: Asked) -> str:
    flag, user = asked.words
    if flag != "-uid":
        raise CommandError(f"{flag!r}: expected -uid")
    if asked.daemon.server is not None or asked.daemon.starting is not None:
        raise CommandError("an MPS server runs already")
    asked.daemon.spawn(_number(user, "user"))
    return ""


def _shutdown_server(asked: Asked) -> str:
    server = asked.server(asked.words[0])
    if asked.words[1:] not in ([], ["-f"]):
        raise CommandError(f"{asked.words[1]!r}: expected -f")
    server.draining = True
    if asked.words[1:]:
        server.peer.close()
    asked.mps.close_if_idle(server)
    return ""


def _client_list(asked: Asked) -> str:
    return "\n".join(str(c.peer.pid) for c in asked.server(asked.words[0]).clients)


def _device_client_list(asked: Asked) -> str:
    lines = []
    for server in asked.servers(asked.words):
        for index, grant in enumerate(server.context.grants):
            uuid = grant.device.uuid
            lines.append(f"[{index}] 00:00.0, {grant.device.gpu.product.name}")
            lines += [f"{c.peer.pid}.{_CONTEXT}" for c in server.clients if uuid in c.devices]
    return "\n".join(lines)


def _ps(asked: Asked) -> str:
    words = asked.words
    if words and words[0] != "-p":
        raise CommandError(f"{words[0]!r}: expected -p")
    if asked.daemon.server is None:
        raise Captured("Server not found")
    rows: list[tuple[str, ...]] = [("PID", "ID", "SERVER", "DEVICE", "NAMESPACE", "COMMAND")]
    for server in asked.servers(words[1:]):
        for client in server.clients:
            rows += [_row(server, client, uuid) for uuid in sorted(client.devices)]
    return _table("ps", rows)


def _row(server: Server, client: cuda_contexts.Context, uuid: str) -> tuple[str, ...]:
    pids = str(client.peer.pid), _CONTEXT, str(server.peer.pid)
    return (*pids, uuid[:22], client.namespace, client.command)


def _device_query(asked: Asked) -> str:
    """The servers' devices. The daemon's own, under `Default`, are not simulated."""
    parts = []
    for server in asked.servers(asked.words):
        rows = [("Device Ordinal", "PCI IDs", "UUID", "Name", "Attributes")]
        for index, grant in enumerate(server.context.grants):
            gpu = grant.device.gpu
            domain, bus, device = gpu.slot.pci.split(":")
            address = f"{domain}:{bus}.{device.partition('.')[0]}.00"
            rows.append((str(index), address, grant.device.uuid, gpu.product.name, "N/A"))
        parts.append(f"Server {server.peer.pid}\n{_table('device_query', rows)}")
    return "\n\n".join(parts)


def _table(name: str, rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join("".join(map(str.ljust, row, _WIDTHS[name])) for row in rows)


def _set_default_percentage(asked: Asked) -> str:
    defaults = asked.daemon.defaults
    defaults.percentage = _percentage(asked, asked.words[0], defaults.percentage)
    return _default_percentage(asked)


def _default_percentage(asked: Asked) -> str:
    return mps_limits.render_percentage(asked.daemon.defaults.percentage)


def _set_percentage(asked: Asked) -> str:
    limits = asked.server(asked.words[0]).limits
    limits.percentage = _percentage(asked, asked.words[1], limits.percentage)
    return _percentage_of(asked)


def _percentage_of(asked: Asked) -> str:
    return mps_limits.render_percentage(asked.server(asked.words[0]).limits.percentage)


def _set_default_memory(asked: Asked) -> str:
    _limit(asked, asked.daemon.defaults, *asked.words)
    return ""


def _default_memory(asked: Asked) -> str:
    return _shown(asked, asked.daemon.defaults, asked.words[0])


def _set_memory(asked: Asked) -> str:
    pid, device, size = asked.words
    _limit(asked, asked.server(pid).limits, device, size)
    return ""


def _memory_of(asked: Asked) -> str:
    return _shown(asked, asked.server(asked.words[0]).limits, asked.words[1])


def _set_default_priority(asked: Asked) -> str:
    priority = _number(asked.words[0], "priority")
    if priority not in mps_limits.PRIORITIES:
        raise CommandError(f"priority {priority}: expected 0 or 1")
    asked.daemon.defaults.priority = priority
    return ""


def _default_priority(asked: Asked) -> str:
    return str(asked.daemon.defaults.priority)


def _terminate_client(asked: Asked) -> str:
    try:
        server = asked.server(asked.words[0])
    except Captured as e:
        raise Captured(f"{e}\n{e}!\n1") from e
    for client in server.clients:
        if asked.words[1] == str(client.peer.pid):
            asked.mps.terminate(server, client)
            return str(cuda_codes.Result.SUCCESS.value)
    raise CommandError(f"MPS server {asked.words[0]} has no client {asked.words[1]!r}")


def _quit(asked: Asked) -> str:
    seconds = multiplexer.NO_DEADLINE
    if asked.words:
        if asked.words[0] != "-t":
            raise CommandError(f"{asked.words[0]!r}: expected -t")
        seconds = _number(asked.words[1], "timeout")
    asked.mps.quit_(asked.daemon, seconds)
    return ""


COMMANDS = {
    "get_server_list": Command("", _server_list, changes=False),
    "get_server_status": Command("PID", _server_status, changes=False, since=550),
    "start_server": Command("-uid UID", _start_server),
    "shutdown_server": Command("PID [-f]", _shutdown_server),
    "get_client_list": Command("PID", _client_list, changes=False),
    "get_device_client_list": Command("[PID]", _device_client_list, changes=False),
    "ps": Command("[-p PID]", _ps, changes=False),
    "device_query": Command("[PID]", _device_query, changes=False, since=580),
    "set_default_active_thread_percentage": Command(
        "PERCENT", _set_default_percentage, changes=True
    ),
    "get_default_active_thread_percentage": Command("", _default_percentage, changes=False),
    "set_active_thread_percentage": Command("PID PERCENT", _set_percentage),
    "get_active_thread_percentage": Command("PID", _percentage_of, changes=False),
    "set_default_device_pinned_mem_limit": Command("DEV VALUE", _set_default_memory),
    "get_default_device_pinned_mem_limit": Command("DEV", _default_memory, changes=False),
    "set_device_pinned_mem_limit": Command("PID DEV VALUE", _set_memory),
    "get_device_pinned_mem_limit": Command("PID DEV", _memory_of, changes=False),
    "set_default_client_priority": Command("PRIORITY", _set_default_priority),
    "get_default_client_priority": Command("", _default_priority, changes=False),
    "terminate_client": Command("SERVER_PID CLIENT_PID", _terminate_client),
    "quit": Command("[-t SECONDS]", _quit),
}
