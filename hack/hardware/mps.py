"""Facts of NVIDIA's MPS daemon: its words, files and users, limits of clients, faults, endings.

Every daemon here has directories of its own below the output folder; no setting of the GPU (compute
mode, clocks, MIG) is touched. A machine without a GPU that CUDA can use shows all up to the first
client.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from driver import errors
from hack.hardware import clients, facts, machine, mps_daemon

_TENANT = 65534
_WORDS = (
    ("get_default_active_thread_percentage",),
    ("get_default_device_pinned_mem_limit 0",),
    ("get_server_list",),
    ("set_default_device_pinned_mem_limit 0 20480M", "get_default_device_pinned_mem_limit 0"),
    ("set_default_device_pinned_mem_limit 0 512M", "get_default_device_pinned_mem_limit 0"),
    ("set_default_device_pinned_mem_limit 0 4606M", "get_default_device_pinned_mem_limit 0"),
    ("set_default_device_pinned_mem_limit 9 1G", "get_default_device_pinned_mem_limit 9"),
    ("set_default_active_thread_percentage 50", "get_default_active_thread_percentage"),
    ("set_default_active_thread_percentage 300", "get_default_active_thread_percentage"),
    ("get_server_status 4711",),
    ("get_client_list 4711",),
    ("ps",),
    ("device_query",),
    ("nonsense",),
    ("help",),
)
_CHANGES = (
    "set_default_active_thread_percentage 99",
    "set_default_device_pinned_mem_limit 0 99G",
    "terminate_client 1 2",
    "shutdown_server 1",
)


def words(target: machine.Machine) -> Iterator[facts.Fact]:
    """Keep what the daemon answers before any client, the files it has, and how it ends."""
    with mps_daemon.Daemon(target) as daemon:
        problem = daemon.ready()
        yield facts.Fact("mps.starts", not problem, problem)
        if problem:
            return
        text = "".join(
            f"<{' | '.join(commands)}> {daemon.say(*commands).text!r}\n" for commands in _WORDS
        )
        yield facts.Fact("mps.words", len(_WORDS), raw=target.keep("mps-words.txt", text))
        yield facts.Fact("mps.pipe-files", daemon.names())
        logs = {path.name: path.stat().st_size for path in daemon.log.iterdir()}
        yield facts.Fact("mps.log-files", {"log": logs, "stdout": daemon.output.stat().st_size})
        target.keep("mps-stdout.txt", daemon.output.read_text(errors="replace"))
        tenant = {command: daemon.say(command, uid=_TENANT).text.strip() for command in _CHANGES}
        yield facts.Fact("mps.commands-of-a-tenant", tenant)
        yield from _second(daemon)
        yield from _idle_shell(daemon)
        daemon.say("quit")
        yield facts.Fact("mps.exit-status-after-quit", daemon.ended(5.0))
        yield facts.Fact("mps.pipe-files-after-quit", daemon.names())
        gone = daemon.say("get_server_list")
        yield facts.Fact("mps.words-without-daemon", gone.text)


def limits(target: machine.Machine) -> Iterator[facts.Fact]:
    """Measure what limits of memory and threads do to a client.

    A daemon's limits are those of servers that start later, so each is set before its first client.
    """
    with mps_daemon.Daemon(target) as daemon:
        if problem := daemon.ready() or _refusal(target, daemon.variables):
            yield facts.Fact("mps.client", problem=problem)
            return
        yield facts.Fact("mps.client", clients.ask(target, "info", variables=daemon.variables))
        logs = {path.name: path.stat().st_size for path in daemon.log.iterdir()}
        yield facts.Fact("mps.log-files-of-a-server", logs)
        daemon.say("set_default_device_pinned_mem_limit 0 2048M")
        filled = clients.ask(target, "fill", variables=daemon.variables)
        yield facts.Fact("mps.limit-under-a-server", filled)
        server = next(iter(daemon.servers()), 0)
        done = daemon.say(f"set_device_pinned_mem_limit {server} 0 2048M")
        filled = clients.ask(target, "fill", variables=daemon.variables)
        yield facts.Fact("mps.limit-of-a-server", {"words": done.text, **filled})
    for name, command in _LIMITS.items():
        with mps_daemon.Daemon(target) as daemon:
            daemon.ready()
            daemon.say(command)
            shown = clients.ask(target, "info", variables=daemon.variables)
            filled = clients.ask(target, "fill", variables=daemon.variables)
            yield facts.Fact(f"mps.limit-{name}", {"command": command, **shown, **filled})
    yield from _limits_of_clients(target)


def _limits_of_clients(target: machine.Machine) -> Iterator[facts.Fact]:
    """Let clients set limits of their own under a daemon's limit of 4 GiB and 50 %."""
    uuid = target.nvml().inventory().gpus[0].uuid
    with mps_daemon.Daemon(target) as daemon:
        daemon.ready()
        daemon.say("set_default_device_pinned_mem_limit 0 4096M")
        daemon.say("set_default_active_thread_percentage 50")
        for name, text in _ENVIRONMENTS.items():
            extra = {mps_daemon.MEMORY: text.format(uuid=uuid)}
            filled = clients.ask(target, "fill", variables={**daemon.variables, **extra})
            yield facts.Fact(f"mps.client-sets-{name}", {**extra, **filled})
        for percentage in ("10", "33", "50", "90"):
            extra = {mps_daemon.THREADS: percentage}
            shown = clients.ask(target, "info", variables={**daemon.variables, **extra})
            value = {"percentage": percentage, "multiprocessors": shown.get("multiprocessors")}
            yield facts.Fact("mps.multiprocessors", value, shown.get("refusal", ""))


_LIMITS = {
    "by-index": "set_default_device_pinned_mem_limit 0 2048M",
    "whole-gib": "set_default_device_pinned_mem_limit 0 4606M",
}
_ENVIRONMENTS = {
    "none": "",
    "lower": "0=1024M",
    "higher": "0=8192M",
    "by-uuid": "{uuid}=1024M",
    "a-gpu-it-lacks": "0=1024M,7=1024M",
}


def users(target: machine.Machine) -> Iterator[facts.Fact]:
    """Let a second user's client come while the first one's runs, with and without -M."""
    for name, options in (("one-user", ()), ("multi-user", ("-M",))):
        with mps_daemon.Daemon(target, *options) as daemon:
            if problem := daemon.ready() or _refusal(target, daemon.variables):
                yield facts.Fact(f"mps.second-user-{name}", problem=problem)
                continue
            yield _beside_second_user(target, daemon, name)


def _beside_second_user(
    target: machine.Machine, daemon: mps_daemon.Daemon, name: str
) -> facts.Fact:
    variables = daemon.variables
    with clients.Client(target, "hold", variables=variables) as first:
        first.line()
        with clients.Client(target, "hold", variables=variables, uid=_TENANT) as second:
            answer = second.line(10.0)
            owners = [Path(f"/proc/{pid}").stat().st_uid for pid in daemon.servers()]
    raw = target.keep(f"mps-{name}.txt", daemon.output.read_text(errors="replace"))
    value = {"answer": answer, "servers": owners}
    return facts.Fact(f"mps.second-user-{name}", value, raw=raw)


def endings(target: machine.Machine) -> Iterator[facts.Fact]:
    """Fault one client, kill a server and a daemon, and see what a neighbour gets."""
    acts = {"client-fault": _fault, "server-killed": _kill_server, "daemon-killed": _kill_daemon}
    for name, act in acts.items():
        with mps_daemon.Daemon(target) as daemon:
            if problem := daemon.ready() or _refusal(target, daemon.variables):
                yield facts.Fact(f"mps.{name}", problem=problem)
                continue
            with clients.Client(target, "spin", "20", variables=daemon.variables) as neighbour:
                neighbour.line()
                servers = daemon.servers()
                status = [daemon.say(f"get_server_status {pid}").output for pid in servers]
                done = act(target, daemon)
                seen = neighbour.line(30.0)
            after = [daemon.say(f"get_server_status {pid}").output for pid in daemon.servers()]
            later = clients.ask(target, "info", variables=daemon.variables)
            value = {"before": status, "did": done, "neighbour": seen, "after": after}
            raw = target.keep(f"mps-{name}.txt", daemon.output.read_text(errors="replace"))
            yield facts.Fact(f"mps.{name}", {**value, "next client": later}, raw=raw)


def _fault(target: machine.Machine, daemon: mps_daemon.Daemon) -> Any:  # noqa: ANN401 - JSON
    return clients.ask(target, "fault", variables=daemon.variables)


def _kill_server(_of: machine.Machine, daemon: mps_daemon.Daemon) -> Any:  # noqa: ANN401 - JSON
    pids = daemon.servers()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return pids


def _kill_daemon(_of: machine.Machine, daemon: mps_daemon.Daemon) -> Any:  # noqa: ANN401 - JSON
    servers = daemon.servers()
    daemon.kill()
    time.sleep(1.0)
    return {str(pid): Path(f"/proc/{pid}").exists() for pid in servers}


def _second(daemon: mps_daemon.Daemon) -> Iterator[facts.Fact]:
    """Start a second daemon in the same directory, and ask at a path too long for a socket."""
    done = daemon.command("-f").run(5.0)
    words = f"{done.output}{done.errors}".strip()
    yield facts.Fact("mps.second-daemon", {"status": done.status, "words": words})
    deep = {mps_daemon.PIPE: f"{daemon.pipe}/{'d' * 100}"}
    done = daemon.command(more=deep).run(5.0, "get_server_list\n")
    yield facts.Fact("mps.long-path", {"status": done.status, "words": done.errors.strip()})


def _idle_shell(daemon: mps_daemon.Daemon) -> Iterator[facts.Fact]:
    """Ask while another shell is open and says nothing."""
    idle = daemon.command().start(
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(1.0)  # until it is connected: nothing tells
        done = daemon.say("get_default_active_thread_percentage")
    finally:
        idle.kill()
        idle.communicate()
    value = {"status": done.status, "words": done.text.strip()}
    yield facts.Fact("mps.beside-an-idle-shell", value)


def _refusal(target: machine.Machine, variables: Mapping[str, str]) -> str:
    """Say why no CUDA program can run here; "" where one can."""
    try:
        return str(clients.ask(target, "info", variables=variables).get("refusal", ""))
    except errors.NodeFault as fault:
        return str(fault)
