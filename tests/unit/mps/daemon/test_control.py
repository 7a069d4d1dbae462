import pytest

from driver.devices import mps_files
from driver.mps.daemon import control

GIB = 1 << 30
TWO = mps_files.Desired(
    key="k",
    devices=("GPU-a", "GPU-b"),
    pinned_memory=(30 * GIB, 4606 * mps_files.MIB),
    active_thread_percentage=50,
)


def test_limits_go_by_index_in_whole_mebibytes() -> None:
    assert control.limit_commands(TWO) == (
        "set_default_device_pinned_mem_limit 0 30720M",
        "set_default_device_pinned_mem_limit 1 4606M",
        "set_default_active_thread_percentage 50",
    )
    assert control.server_limit_commands(TWO, 7) == (
        "set_device_pinned_mem_limit 7 0 30720M",
        "set_device_pinned_mem_limit 7 1 4606M",
        "set_active_thread_percentage 7 50",
    )


@pytest.mark.parametrize(
    ("reply", "limits", "servers"),
    [
        ("100.0\n", control.Limits("100.0", ("", "")), ()),
        ("100.0\n2792\n", control.Limits("100.0", ("", "")), (2792,)),
        ("50.0\n30G\n4G\n", control.Limits("50.0", ("30G", "4G")), ()),
        ("50.0\n30G\n4G\n2792\n2793\n", control.Limits("50.0", ("30G", "4G")), (2792, 2793)),
        ("50\n\n30G\n4G\n\n2792\n", control.Limits("50", ("30G", "4G")), (2792,)),
        ("50.0\n30G\n2792\n", control.Limits("50.0", ("", "")), (2792,)),
    ],
)
def test_a_daemons_reply_is_taken_apart(
    reply: str, limits: control.Limits, servers: tuple[int, ...]
) -> None:
    assert control.parse_daemon(reply, 2) == (limits, servers)


@pytest.mark.parametrize("reply", ["", "\n", "Cannot find MPS control daemon process\n"])
def test_a_missing_reply_is_none(reply: str) -> None:
    assert control.parse_daemon(reply, 2) is None


def test_a_servers_reply_is_taken_apart() -> None:
    limits = control.Limits("50", ("30G", "512M"))
    read = control.parse_server("ACTIVE\n50\n30G\n512M\n11\n12\n", 7, 2)
    assert read == control.Server(7, "ACTIVE", limits, (11, 12))
    none = control.parse_server("ACTIVE\n50\n12\n", 7, 2)
    assert none == control.Server(7, "ACTIVE", control.Limits("50", ("", "")), (12,))


def test_a_server_that_has_ended_is_none() -> None:
    assert control.parse_server("Server 7 not found\n" * 4, 7, 1) is None


def test_a_daemon_that_tells_no_status_has_no_trouble_by_that() -> None:
    """Use the answers of 535."""
    reply = 'Unknown command "get_server_status"\n40.0\n20G\n123\n'
    server = control.parse_server(reply, 7, 1)
    assert server == control.Server(7, "", control.Limits("40.0", ("20G",)), (123,))
    answer = control.DaemonStatus(control.Limits("40.0", ("20G",)), (server,))
    assert list(control.client_problems(answer)) == []


def test_a_limit_that_is_refused_is_told_by_the_daemons_words() -> None:
    assert control.parse_refusals("40.0\n") == ""
    message = "Insufficient privileges for UID 65534.\n40.0\n"
    assert control.parse_refusals(message) == "Insufficient privileges for UID 65534."


@pytest.mark.parametrize(
    ("size", "text", "may"),
    [
        (4606 * mps_files.MIB, "4G", True),
        (4606 * mps_files.MIB, "4606M", True),
        (4606 * mps_files.MIB, "5G", False),
        (512 * mps_files.MIB, "512M", True),
        (512 * mps_files.MIB, "0G", True),
        (30 * GIB, "30G", True),
        (30 * GIB, "3G", False),
        (30 * GIB, "", False),
        (30 * GIB, "unlimited", False),
    ],
)
def test_a_size_is_shown_in_whole_units(size: int, text: str, may: bool) -> None:  # noqa: FBT001
    assert control.is_shown_as(size, text) is may


def test_unknown_output_is_quoted() -> None:
    shown = control.Limits("100.0", ("30G", ""))
    assert list(control.limit_differences(TWO, shown)) == [
        "active thread percentage 100.0 instead of 50",
        "pinned memory none instead of 4606M on device 1",
    ]
    assert not list(control.limit_differences(TWO, control.Limits("50.0", ("30G", "4G"))))


def test_a_server_with_a_fault_is_told() -> None:
    limits = control.Limits("50.0", ("30G",))
    servers = control.Server(7, "ACTIVE", limits), control.Server(8, "FAULT", limits)
    client_problems = list(control.client_problems(control.DaemonStatus(limits, servers)))
    assert [words.split(":")[0] for words in client_problems] == ["MPS server 8 is FAULT"]


LOG = """\
[2026-11-21 16:59:31.900 Control  5667] Accepting connection...
[2026-11-21 16:59:31.901 Control  5667] Cmd:get_default_active_thread_percentage
[2026-11-21 16:59:31.901 Control  5667] 60.0
[2026-11-21 16:59:31.902 Control  5667] 40G
[2026-11-21 16:59:31.902 Control  5667] ACTIVE
[2026-11-21 16:59:31.902 Control  5667] UI closed
[2026-11-21 16:59:31.903 Control  5667] NEW UI
[2026-11-21 16:59:31.910 Control  5667] NEW CLIENT 71 from user 0: Server is not ready, push client
[2026-11-21 16:59:31.911 Control  5667] NEW SERVER 5709: Ready
[2026-11-21 16:59:31.920 Control  5667] NEW CLIENT 72 from user 0: Server already exists
[2026-11-21 16:59:31.930 Control  5667] NEW CLIENT 71 from user 0: Server already exists
"""


def test_the_log_tells_every_client_that_came() -> None:
    assert control.logged_clients(LOG) == (71, 72)


def test_our_own_questions_are_no_last_words() -> None:
    drop_chatter = control.drop_chatter(LOG.splitlines())
    assert [line.partition("] ")[2].split(" from")[0] for line in drop_chatter] == [
        "NEW CLIENT 71",
        "NEW SERVER 5709: Ready",
        "NEW CLIENT 72",
        "NEW CLIENT 71",
    ]


@pytest.mark.parametrize(
    ("news", "words"),
    [
        ("", ""),
        ("NEW SERVER 5709: Ready\n", ""),
        ("Server 5709 exited with status 0\n", ""),
        ("Server 5709 exited with status 1\nNEW SERVER 5710: Ready\n", ""),
        ("NEW SERVER 5709: Ready\nServer 5709 exited with status 1\n", "exit code 1"),
    ],
)
def test_a_server_that_ended_badly_is_told_until_the_next_is_ready(news: str, words: str) -> None:
    server_failure = control.server_failure(news)
    assert words in server_failure
    assert bool(server_failure) is bool(words)


TWO_USERS = """\
[2026-05-31 23:48:21.671 Control 11107] NEW CLIENT 11801 from user 1000: Server is not ready, \
push client to pending list
[2026-05-31 23:48:21.671 Control 11803] Starting new server 11803 for user 1000
[2026-05-31 23:48:25.153 Control 11107] NEW CLIENT 11805 from user 1000: Server already exists
[2026-05-31 23:48:25.153 Control 11107] NEW CLIENT 11811 from user 0: Server is not ready, push \
client to pending list
"""
"""As a daemon of CUDA 13.3 wrote it (dra-driver-nvidia-gpu pull 1153), and a line more."""


def test_clients_that_were_made_wait_are_told_by_the_log_with_their_users() -> None:
    assert control.logged_pending(TWO_USERS) == {11801: "1000", 11811: "0"}


def test_a_client_waits_behind_the_server_of_another_user_only() -> None:
    words = "client 11811 of user 0 waits until the server of user 1000 has no clients"
    assert control.waiting_message(control.logged_pending(TWO_USERS), "1000") == words
    assert control.waiting_message({7: "1000"}, "1000") == ""
    both = control.waiting_message({7: "1", 8: "2"}, "1000")
    assert both.startswith("client 7 of user 1, client 8 of user 2 wait until")
    assert list(
        control.client_problems(control.DaemonStatus(control.Limits("", ()), waiting=words))
    ) == [words]


def test_every_client_of_every_server_can_be_terminated() -> None:
    limits = control.Limits("", ())
    servers = [control.Server(7, "", limits, (1, 2)), control.Server(8, "", limits)]
    assert control.terminate_commands(servers) == ("terminate_client 7 1", "terminate_client 7 2")
