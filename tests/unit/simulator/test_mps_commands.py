import pytest

from simulator import (
    cuda_devices,
    library,
    machine,
    mps_commands,
    mps_daemons,
    mps_limits,
    multiplexer,
)
from tests.fakes.peers import Peer

DAEMON, SERVER, CLIENT, OWNER = 10, 20, 30, 1000


class Shell:
    """A daemon of user 1000 on GPU 2 with a server and one client."""

    def __init__(self) -> None:
        self.of = machine.build("hgx-h100", seed="node-1")
        self.mps = multiplexer.Multiplexer(self.of)
        self.peer = Peer(DAEMON, OWNER)
        self.daemon = mps_daemons.Daemon(
            "t", self.peer, "2", multiuser=False, defaults=mps_limits.Limits()
        )
        self.mps.admit(self.daemon)
        self.found = cuda_devices.reachable(library.Library(self.of))
        self.say(f"start_server -uid {OWNER}")
        self.server = Peer(SERVER, OWNER)
        self.mps.serve("t", self.server, self.found)
        self.client = Peer(CLIENT, OWNER)
        wish = mps_daemons.Wish(daemon="t", command="./train", namespace="77")
        self.mps.open_(self.client, self.found, wish)

    @property
    def uuid(self) -> str:
        return self.of.find("2").uuid

    def say(self, line: str, user: int = 0) -> str:
        return mps_commands.answer(self.mps, self.daemon, user, line)


@pytest.fixture
def shell() -> Shell:
    return Shell()


def test_servers_and_clients_are_listed_by_pid(shell: Shell) -> None:
    assert shell.peer.heard("spawn") == [("1000",)]
    assert shell.say("get_server_list") == "20"
    assert shell.say("get_server_status 20") == "ACTIVE"
    assert shell.say("get_client_list 20") == "30"
    listed = "[0] 00:00.0, NVIDIA H100 80GB HBM3\n30.1"
    assert shell.say("get_device_client_list") == listed
    assert shell.say("get_device_client_list 20") == listed


def test_ps_and_device_query_are_tables(shell: Shell) -> None:
    rows = [line.split() for line in shell.say("ps").splitlines()]
    assert rows[1:] == [["30", "1", "20", shell.uuid[:22], "77", "./train"]]
    assert shell.say("ps -p 20") == shell.say("ps")
    server, _, device = shell.say("device_query").splitlines()
    assert server == "Server 20"
    assert device.split()[:3] == ["0", "0000:75.00.00", shell.uuid]


def test_columns_are_as_wide_as_580_has_them(shell: Shell) -> None:
    """Captured on an H200 under 580.159.04."""
    heads = {line.split()[0]: line for line in shell.say("ps").splitlines()}
    assert heads["PID"] == (
        "PID       ID        SERVER         DEVICE                    "
        "NAMESPACE      COMMAND        "
    )
    head = shell.say("device_query").splitlines()[1]
    assert head == (
        "Device Ordinal  PCI IDs        UUID                                      "
        "Name                              Attributes"
    )


def test_defaults_are_read_back_as_they_are_shown(shell: Shell) -> None:
    assert shell.say("get_default_active_thread_percentage") == "100.0"
    assert shell.say("set_default_active_thread_percentage 25") == "25.0"
    assert shell.say("get_default_active_thread_percentage") == "25.0"
    assert shell.say("get_default_device_pinned_mem_limit 0") == ""
    assert shell.say("set_default_device_pinned_mem_limit 0 4606M") == ""
    assert shell.say("get_default_device_pinned_mem_limit 0") == "4G"
    assert shell.say("get_default_client_priority") == "0"
    assert shell.say("set_default_client_priority 1") == ""
    assert shell.say("get_default_client_priority") == "1"


def test_any_index_is_taken_for_a_limit_and_the_last_value_counts(shell: Shell) -> None:
    for line in ("9 3G", "0 4G", "0 5G"):
        assert shell.say(f"set_default_device_pinned_mem_limit {line}") == ""
    limit = "get_default_device_pinned_mem_limit"
    assert [shell.say(f"{limit} {device}") for device in ("9", "0")] == ["3G", "5G"]


def test_before_580_a_limit_under_a_uuid_takes_every_limit_away(shell: Shell) -> None:
    shell.of.state.loaded_driver = "550.163.01"
    shell.say("set_default_device_pinned_mem_limit 0 4G")
    assert shell.say(f"set_default_device_pinned_mem_limit {shell.uuid} 2G") == ""
    limit = "get_default_device_pinned_mem_limit"
    assert [shell.say(f"{limit} {device}") for device in ("0", shell.uuid)] == ["", ""]
    shell.say("set_device_pinned_mem_limit 20 0 4G")
    shell.say(f"set_device_pinned_mem_limit 20 {shell.uuid} 2G")
    assert shell.say("get_device_pinned_mem_limit 20 0") == ""


def test_from_580_on_a_limit_may_go_by_uuid_beside_one_by_index(shell: Shell) -> None:
    """Captured on an H200 under 580.159.04."""
    shell.say("set_default_device_pinned_mem_limit 0 4G")
    assert shell.say(f"set_default_device_pinned_mem_limit {shell.uuid} 2G") == ""
    limit = "get_default_device_pinned_mem_limit"
    assert [shell.say(f"{limit} {device}") for device in ("0", shell.uuid)] == ["4G", "2G"]


@pytest.mark.parametrize("word", ["300", "0", "abc"])
def test_a_bad_percentage_keeps_the_old_one_and_is_told_to_the_log(shell: Shell, word: str) -> None:
    shell.say("set_default_active_thread_percentage 40")
    assert shell.say(f"set_default_active_thread_percentage {word}") == "40.0"
    logged = [line[-1] for line in shell.peer.heard("log")]
    assert "Invalid percentage, expected between (0.0, 100.0]" in logged


def test_a_servers_limits_are_its_own(shell: Shell) -> None:
    assert shell.say("set_active_thread_percentage 20 40") == "40.0"
    assert shell.say("get_active_thread_percentage 20") == "40.0"
    assert shell.say("set_device_pinned_mem_limit 20 0 512M") == ""
    assert shell.say("get_device_pinned_mem_limit 20 0") == "512M"
    assert shell.say("get_default_active_thread_percentage") == "100.0"


def test_a_terminated_client_lives_on_without_contexts(shell: Shell) -> None:
    assert shell.say("terminate_client 20 30") == "0"
    assert shell.client.heard("lost")[0][1] == "CUDA_ERROR_MPS_CLIENT_TERMINATED"
    assert shell.say("get_client_list 20") == ""
    assert shell.say("terminate_client 20 30") == "Error: MPS server 20 has no client '30'"
    shell.mps.left(shell.client)


def test_a_server_shut_down_ends_with_its_last_client_or_at_once(shell: Shell) -> None:
    shell.say("shutdown_server 20")
    assert not shell.server.closed
    shell.mps.left(shell.client)
    assert shell.server.closed
    forced = Shell()
    forced.say("shutdown_server 20 -f")
    assert forced.server.closed


def test_quit_waits_for_the_clients_so_long_as_it_is_told(shell: Shell) -> None:
    assert shell.say("quit -t 5") == ""
    assert shell.peer.heard("exit") == [("5",)]
    shell.mps.left(shell.client)
    assert shell.server.closed
    shell.mps.left(shell.server)
    assert shell.peer.heard("exit") == [("5",), ("0",)]


def test_quit_without_a_server_is_at_once(shell: Shell) -> None:
    shell.mps.left(shell.server)
    shell.say("quit")
    assert shell.peer.heard("exit") == [("0",)]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("get_server_list 20", "usage: get_server_list"),
        ("set_default_device_pinned_mem_limit 0", "usage: set_default_device_pinned_mem_limit DEV"),
        ("set_default_device_pinned_mem_limit 0 4096", "limit '4096': expected a whole number and"),
        ("set_default_client_priority 2", "priority 2: expected 0 or 1"),
        ("start_server -uid 0", "an MPS server runs already"),
        ("start_server -user 0", "'-user': expected -uid"),
        ("shutdown_server 20 -g", "'-g': expected -f"),
        ("quit -t soon", "timeout 'soon': expected a number"),
        ("ps 20 20", "'20': expected -p"),
    ],
)
def test_impossible_commands_are_refused_with_a_message(
    shell: Shell, line: str, answer: str
) -> None:
    assert shell.say(line).startswith(f"Error: {answer}")


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("dance", 'Unknown command "dance"'),
        ("get_server_status 21", "Server 21 not found"),
        ("get_active_thread_percentage 21", "Server 21 not found"),
        ("shutdown_server 21", "Server 21 not found"),
        ("terminate_client 21 2", "Server 21 not found\nServer 21 not found!\n1"),
    ],
)
def test_a_missing_target_is_refused_with_the_daemons_message(
    shell: Shell, line: str, answer: str
) -> None:
    assert shell.say(line) == answer


def test_without_a_server_there_is_nothing_to_list(shell: Shell) -> None:
    shell.mps.left(shell.server)
    assert shell.say("ps") == "Server not found"


def test_only_root_and_the_daemons_user_change_things(shell: Shell) -> None:
    refused = shell.say("set_default_active_thread_percentage 10", user=7)
    assert refused.startswith("Insufficient privileges for UID 7. Control deamon settings can only")
    assert shell.say("quit", user=7) == "Not enough privilege to execute quit command"
    assert shell.say("get_default_active_thread_percentage", user=7) == "100.0"
    assert shell.say("set_default_active_thread_percentage 10", user=OWNER) == "10.0"


def test_535_knows_less_and_lets_any_user_set_limits(shell: Shell) -> None:
    shell.of.state.loaded_driver = "535.261.03"
    for line in ("get_server_status 20", "device_query", "help"):
        assert shell.say(line) == f'Unknown command "{line.split()[0]}"'
    assert shell.say("set_default_active_thread_percentage 99", user=7) == "99.0"
    assert shell.say("quit", user=7) == "Not enough privilege to execute quit command"


def test_550_tells_a_servers_status(shell: Shell) -> None:
    shell.of.state.loaded_driver = "550.163.01"
    assert shell.say("get_server_status 20") == "ACTIVE"
    assert shell.say("help") == 'Unknown command "help"'


def test_580_knows_its_devices_and_no_help(shell: Shell) -> None:
    assert shell.say("help") == 'Unknown command "help"'
    assert shell.say("device_query").startswith("Server 20\n")
    refused = shell.say("set_default_active_thread_percentage 10", user=7)
    assert "the user who started it" in refused


def test_commands_and_answers_are_logged(shell: Shell) -> None:
    shell.say("get_server_list")
    assert shell.peer.heard("log")[-2:] == [
        ("control", "Control", "10", "Cmd:get_server_list"),
        ("control", "Control", "10", "20"),
    ]
