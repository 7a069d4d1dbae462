"""Facts of an MPS daemon whose server has clients: words, lists, limits by UUID, sudden ends."""

import signal
import time
from collections.abc import Iterator

import pynvml

from hack.hardware import clients, facts, machine, mps_daemon

_COMMANDS = (
    "get_server_list",
    "get_server_status {server}",
    "get_client_list {server}",
    "get_device_client_list",
    "get_device_client_list {server}",
    "ps",
    "ps -p {server}",
    "device_query",
    "device_query {server}",
    "get_active_thread_percentage {server}",
    "get_device_pinned_mem_limit {server} 0",
    "set_active_thread_percentage {server} 40",
    "set_device_pinned_mem_limit {server} 0 3G",
    "get_device_pinned_mem_limit {server} 0",
    "get_default_client_priority",
    "shutdown_server {server}",
)
_SMALL = ("128M", "256M", "384M", "512M", "768M")
_KILLS = 5
_INFO_S = 15.0


def words(target: machine.Machine) -> Iterator[facts.Fact]:
    """Keep what the daemon answers while its server has a client, and after it terminated one."""
    with mps_daemon.Daemon(target) as daemon:
        daemon.ready()
        with clients.Client(target, "hold", "67108864", variables=daemon.variables) as client:
            answer = client.line()
            if "refusal" in answer:
                yield facts.Fact("mps.words-of-a-server", problem=str(answer["refusal"]))
                return
            yield from _listed(target, daemon, client.pid)
            server = next(iter(daemon.servers()), 0)
            commands = [command.format(server=server) for command in _COMMANDS]
            text = "".join(f"<{word}> {daemon.say(word).text!r}\n" for word in commands)
            raw = target.keep("mps-words-of-a-server.txt", text)
            yield facts.Fact("mps.words-of-a-server", len(commands), raw=raw)
        with clients.Client(target, "spin", "10", variables=daemon.variables) as client:
            client.line()
            server = next(iter(daemon.servers()), 0)
            done = daemon.say(f"terminate_client {server} {client.pid}", limit_s=15.0)
            value = {"words": done.text, "client": clients.last(client)}
            yield facts.Fact("mps.terminate-client", value)
        with clients.Client(target, "hold", variables=daemon.variables) as client:
            client.line()
            begun = time.monotonic()
            done = daemon.say("quit -t 2", limit_s=15.0)
            ended = daemon.ended(10.0)
            quit_ = {"words": done.text, "ended": ended, "s": _since(begun)}
            yield facts.Fact("mps.quit-under-a-client", quit_)


def _listed(
    target: machine.Machine, daemon: mps_daemon.Daemon, client: int
) -> Iterator[facts.Fact]:
    """Find the client and the server in NVML's lists."""
    names = {client: "client", **dict.fromkeys(daemon.servers(), "server")}
    lists = {
        "compute": pynvml.nvmlDeviceGetComputeRunningProcesses,
        "mps": pynvml.nvmlDeviceGetMPSComputeRunningProcesses,
    }
    with target.nvml().session.use():
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        value = {
            name: [
                [names.get(process.pid, "another"), process.usedGpuMemory]
                for process in call(handle)
            ]
            for name, call in lists.items()
        }
    yield facts.Fact("mps.listed-by-nvml", value)


def limits_by_uuid(target: machine.Machine) -> Iterator[facts.Fact]:
    """Set a daemon's limits by index and by UUID, and ask for both; then limits that are small."""
    uuid = target.nvml().inventory().gpus[0].uuid
    setting, asking = "set_default_device_pinned_mem_limit", "get_default_device_pinned_mem_limit"
    for name, limits in (("alone", ((uuid, "2G"),)), ("after-index", (("0", "4G"), (uuid, "2G")))):
        with mps_daemon.Daemon(target) as daemon:
            daemon.ready()
            answers = [daemon.say(f"{setting} {device} {size}").text for device, size in limits]
            shown = {device: daemon.say(f"{asking} {device}").text for device in ("0", uuid)}
            filled = clients.ask(target, "fill", variables=daemon.variables)
            value = {"answers": answers, "shown": [shown["0"], shown[uuid]], **filled}
            yield facts.Fact(f"mps.limit-by-uuid-{name}", value)
    with mps_daemon.Daemon(target) as daemon:
        daemon.ready()
        for size in _SMALL:
            extra = {mps_daemon.MEMORY: f"0={size}"}
            answer = clients.ask(target, "fill", variables={**daemon.variables, **extra})
            yield facts.Fact("mps.small-limit", {"limit": size, **answer})


def sudden_ends(target: machine.Machine) -> Iterator[facts.Fact]:
    """Kill clients with work in flight, and see how long the next one takes."""
    with mps_daemon.Daemon(target) as daemon:
        daemon.ready()
        for number in range(_KILLS):
            refusal = _kill(target, daemon)
            if refusal:
                yield facts.Fact("mps.client-killed", problem=refusal)
                return
            begun = time.monotonic()
            with clients.Client(target, "info", variables=daemon.variables) as client:
                answer = client.line(_INFO_S)
            value = {"kill": number + 1, "next": answer.get("refusal", "runs"), "s": _since(begun)}
            status = [daemon.say(f"get_server_status {pid}").output for pid in daemon.servers()]
            yield facts.Fact("mps.client-killed", {**value, "servers": status})


def _kill(target: machine.Machine, daemon: mps_daemon.Daemon) -> str:
    """Kill a client with work in flight; say why there is none, "" where there was one."""
    with clients.Client(target, "spin", "20", variables=daemon.variables) as client:
        answer = client.line()
        if "refusal" in answer:
            return str(answer["refusal"])
        time.sleep(0.3)
        client.kill(signal.SIGKILL)
    return ""


def _since(begun: float) -> float:
    return round(time.monotonic() - begun, 2)
