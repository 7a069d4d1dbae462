"""Tests of the commands that Ration sends a control daemon; no GPU is needed without a client."""

import pytest

from driver.devices import mps_files
from driver.mps.daemon import control
from tests.contract.mps.daemons import DEVICE, NOBODY, Daemons
from tests.fakes import waiting

MIB = 1 << 20
NO_DAEMON = "Cannot find MPS control daemon process\n"
OCCUPIED = "Cannot send command to MPS control daemon process\n"


def wanted(*mebibytes: int, percentage: int = 40) -> mps_files.Desired:
    return mps_files.Desired(
        key="k",
        devices=tuple(f"{DEVICE[:-1]}{number}" for number in range(len(mebibytes))),
        pinned_memory=tuple(size * MIB for size in mebibytes),
        active_thread_percentage=percentage,
    )


def shown(daemons: Daemons, devices: int = 1) -> control.Limits:
    done = daemons.ask(*control.query_commands(devices))
    assert (done.status, done.errors) == (0, "")
    answer = control.parse_daemon(done.output, devices)
    assert answer is not None
    limits, servers = answer
    assert servers == ()
    return limits


def test_a_new_daemon_shows_no_limits(daemons: Daemons) -> None:
    daemons.serving()
    assert shown(daemons) == control.Limits("100.0", ("",))


@pytest.mark.parametrize(
    ("mebibytes", "text"), [(20480, "20G"), (512, "512M"), (4606, "4G"), (1024, "1G")]
)
def test_limits_are_taken_without_a_word_of_refusal_and_shown(
    daemons: Daemons, mebibytes: int, text: str
) -> None:
    daemons.serving()
    want = wanted(mebibytes)
    done = daemons.ask(*control.limit_commands(want))
    assert (done.status, control.parse_refusals(done.output), done.output.split()) == (
        0,
        "",
        ["40.0"],
    )
    assert shown(daemons) == control.Limits("40.0", (text,))
    assert list(control.limit_differences(want, shown(daemons))) == []


def test_each_device_has_a_limit_of_its_own_and_the_last_word_counts(daemons: Daemons) -> None:
    daemons.serving()
    daemons.ask(*control.limit_commands(wanted(4096, 3072)))
    assert shown(daemons, 2) == control.Limits("40.0", ("4G", "3G"))
    daemons.ask(*control.limit_commands(wanted(8192, 2048, percentage=75)))
    assert shown(daemons, 2) == control.Limits("75.0", ("8G", "2G"))


def test_a_server_that_is_not_there_is_none(daemons: Daemons) -> None:
    daemons.serving()
    done = daemons.ask(*control.server_query_commands(4711, 1))
    assert (done.status, done.errors) == (0, "")
    assert control.parse_server(done.output, 4711, 1) is None
    refused = daemons.ask(*control.server_limit_commands(wanted(512), 4711))
    assert refused.status == 0
    assert "4711" in control.parse_refusals(refused.output)


def test_after_a_command_that_is_unknown_the_next_is_answered(daemons: Daemons) -> None:
    daemons.serving()
    done = daemons.ask("nonsense", "get_default_active_thread_percentage")
    words, number = done.output.splitlines()
    assert (done.status, done.errors, number) == (0, "", "100.0")
    assert "nonsense" in words


def test_any_user_may_ask(daemons: Daemons) -> None:
    daemons.serving()
    done = daemons.ask("get_default_active_thread_percentage", user=NOBODY)
    assert done == (0, "100.0\n", "")


def test_without_a_daemon_a_shell_says_so_and_fails(daemons: Daemons) -> None:
    assert daemons.ask("get_server_list") == (1, "", NO_DAEMON)


def test_while_a_shell_is_idle_no_other_is_answered(daemons: Daemons) -> None:
    """Most are refused in words; of NVIDIA's some end with status 0 and no answer (535, 550)."""
    daemons.serving()
    question = "get_default_active_thread_percentage"
    with daemons.idle_shell():
        waiting.until(lambda: daemons.ask(question) == (1, "", OCCUPIED))
        answers = [daemons.ask(question, user=user) for user in (0, NOBODY) * 3]
        assert {done.output for done in answers} == {""}
    waiting.until(lambda: daemons.ask(question) == (0, "100.0\n", ""))


def test_a_second_daemon_of_a_directory_ends_and_the_first_serves_on(daemons: Daemons) -> None:
    daemons.serving()
    assert daemons.start().wait(waiting.WITHIN_S) == 1
    assert daemons.ask("get_server_list").status == 0


def test_the_directory_of_one_that_was_killed_is_taken_over(daemons: Daemons) -> None:
    first = daemons.serving()
    daemons.ask(*control.limit_commands(wanted(512)))
    first.kill()
    first.wait(waiting.WITHIN_S)
    assert daemons.ask("get_server_list") == (1, "", NO_DAEMON)
    second = daemons.serving()
    assert second.poll() is None
    assert shown(daemons) == control.Limits("100.0", ("",))


#
def test_in_the_foreground_the_log_is_the_output_and_no_file(daemons: Daemons) -> None:
    daemons.serving()
    assert f"Starting control daemon using socket {daemons.pipe}/control" in daemons.output
    assert f"set env CUDA_MPS_PIPE_DIRECTORY={daemons.pipe}" in daemons.output
    assert not (daemons.log / "control.log").exists()


def test_lines_of_our_own_queries_are_removed_from_a_log(daemons: Daemons) -> None:
    daemons.serving()
    previous = control.drop_chatter(daemons.output.splitlines())
    daemons.ask(*control.limit_commands(wanted(4606)))
    for _ in range(3):
        shown(daemons)
    assert control.drop_chatter(daemons.output.splitlines()) == previous


def test_quit_ends_it_and_leaves_the_socket_and_no_pid_file(daemons: Daemons) -> None:
    process = daemons.serving()
    assert daemons.ask("quit -t 2")[:2] == (0, "")
    assert process.wait(waiting.WITHIN_S) == 0
    assert not (daemons.pipe / "nvidia-cuda-mps-control.pid").exists()
    assert (daemons.pipe / "control").is_socket()


def test_an_option_that_is_unknown_starts_no_daemon(daemons: Daemons) -> None:
    assert daemons.start("--no-such-option").wait(waiting.WITHIN_S) == 1
    assert daemons.ask("get_server_list").status == 1


def test_a_daemon_with_a_too_long_socket_path_does_not_serve(deep: Daemons) -> None:
    assert deep.start().wait(waiting.WITHIN_S) == 1
    assert deep.ask("get_server_list") == (1, "", NO_DAEMON)
