"""NVIDIA's own words, of each driver version that can be had; the simulated daemon follows them."""

import pytest

from driver.mps.daemon import process as daemon_process
from tests.contract.mps.daemons import NOBODY, Daemons
from tests.fakes import waiting

Real = tuple[Daemons, str]
Spoken = tuple[Daemons, str]
OLD = "535.261.03"
NO_RIGHT = (
    f"Insufficient privileges for UID {NOBODY}. Control deamon settings can only be modified by "
    "the user started it or by the root user.\n"
)
TRIES = 40
NOT_FOUND = "Server 4711 not found\n"


def unknown(command: str) -> str:
    return f'Unknown command "{command}"\n'


#
@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("nonsense", unknown("nonsense")),
        ("help", unknown("help")),
        ("device_query", unknown("device_query")),
        ("get_active_thread_percentage 4711", NOT_FOUND),
        ("get_device_pinned_mem_limit 4711 0", NOT_FOUND),
        ("get_client_list 4711", NOT_FOUND),
        ("set_active_thread_percentage 4711 50", NOT_FOUND),
        ("set_device_pinned_mem_limit 4711 0 512M", NOT_FOUND),
        ("ps", "Server not found\n"),
        ("set_default_active_thread_percentage 300", "100.0\n"),
    ],
)
def test_words_of_both_versions(spoken: Spoken, command: str, answer: str) -> None:
    daemons, _ = spoken
    daemons.serving()
    assert daemons.ask(command) == (0, answer, "")


def test_a_servers_status_is_asked_for_from_550_on(spoken: Spoken) -> None:
    daemons, version = spoken
    daemons.serving()
    answer = unknown("get_server_status") if version == OLD else NOT_FOUND
    assert daemons.ask("get_server_status 4711") == (0, answer, "")


# Covers S-2.
def test_limits_are_roots_to_set_from_550_on(spoken: Spoken) -> None:
    daemons, version = spoken
    daemons.serving()
    answers = ("99.0\n", "") if version == OLD else (NO_RIGHT, NO_RIGHT)
    commands = "set_default_active_thread_percentage 99", "set_default_device_pinned_mem_limit 0 9G"
    assert tuple(daemons.ask(command, user=NOBODY).output for command in commands) == answers
    quitting = daemons.ask("quit", user=NOBODY)
    assert quitting.output == "Not enough privilege to execute quit command\n"
    assert daemons.ask("get_server_list").status == 0


#
def test_there_is_no_mode_for_several_users(spoken: Spoken) -> None:
    daemons, _ = spoken
    assert daemons.start("-M").wait(20) == 1
    assert daemons.errors == "Cannot find MPS control daemon process\n"


def test_a_second_daemon_says_why_it_ends(spoken: Spoken) -> None:
    daemons, _ = spoken
    daemons.serving()
    assert daemons.start().wait(20) == 1
    assert "An instance of this daemon is already running\n" in daemons.output
    assert daemons.errors == ""


def test_a_refusal_is_known_for_one_even_where_it_has_no_words(real: Real) -> None:
    """About one in ten ends with status 0 and no answer, and some with 1 and no word."""
    daemons, _ = real
    daemons.serving()
    program = daemon_process.ControlProgram(daemons.search)
    daemon_paths = daemon_process.DaemonPaths(daemons.pipe, daemons.log, daemons.folder / "shm")
    assert program.send(daemon_paths, ["get_default_active_thread_percentage"]) == "100.0\n"
    assert program.send(daemon_paths, ["get_server_list"]) == ""
    with daemons.idle_shell():
        waiting.until(lambda: daemons.ask("get_server_list").status == 1)
        for _ in range(TRIES):
            with pytest.raises(daemon_process.ControlOccupied, match=r"process \d+ of user 0"):
                program.send(daemon_paths, ["get_default_active_thread_percentage"])


def test_a_limit_by_uuid_takes_that_of_the_first_device_away(spoken: Spoken) -> None:
    daemons, _ = spoken
    daemons.serving()
    uuid = "GPU-12345678-1234-1234-1234-123456789012"
    daemons.ask("set_default_device_pinned_mem_limit 0 4G")
    daemons.ask(f"set_default_device_pinned_mem_limit {uuid} 2G")
    assert daemons.ask("get_default_device_pinned_mem_limit 0") == (0, "", "")
    assert daemons.ask(f"get_default_device_pinned_mem_limit {uuid}") == (0, "", "")


def test_the_files_of_a_pipe_directory_among_them_a_pid_from_550_on(real: Real) -> None:
    daemons, version = real
    daemons.serving()
    names = {path.name: path.stat().st_mode & 0o777 for path in daemons.pipe.iterdir()}
    assert names == {
        "control": 0o666,
        "control_lock": 0o666,
        "control_privileged": 0o755,
        "log": 0o777,
        **({} if version == OLD else {"nvidia-cuda-mps-control.pid": 0o666}),
    }
