from pathlib import Path

import pytest

from driver import errors
from driver.kubeletplugin import config


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NODE_NAME", "RATION_NODE_NAME", "RATION_ALLOCATOR", "RATION_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)


def test_a_flag_wins_over_the_environment_which_wins_over_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RATION_ALLOCATOR", "scheduler")
    monkeypatch.setenv("RATION_STATE_DIR", "/var/lib/other")
    plugin_config = config.PluginConfig.read(["--node-name", "a", "--state-dir=/var/lib/mine"])
    assert plugin_config.allocator == "scheduler"
    assert plugin_config.state_dir == Path("/var/lib/mine")
    assert plugin_config.kubelet_root == Path("/var/lib/kubelet")
    assert plugin_config.metrics_host_port == ("127.0.0.1", 0)


def test_the_node_name_may_come_from_the_pods_own_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_NAME", "node-a")
    assert config.PluginConfig.read([]).node_name == "node-a"
    assert config.PluginConfig.read(["--node-name=node-b"]).node_name == "node-b"


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--node-name=../etc", "--node-name '../etc' cannot be part of a file's name"),
        ("--instance=a/b", "--instance 'a/b' cannot be part of a file's name"),
        ("--driver-name=.x", "--driver-name '.x' cannot be part of a file's name"),
        ("--state-dir=here", "--state-dir 'here' is no absolute path"),
        ("--metrics-address=9000", "--metrics-address '9000' is not address:port"),
        ("--allocator=me", "--allocator is wrong: Input should be 'controller' or 'scheduler'"),
        ("--rediscover-seconds=0", "--rediscover-seconds is wrong: Input should be greater than 0"),
        ("--log-level=loud", "--log-level is wrong"),
    ],
)
def test_a_value_that_makes_no_sense_is_named_with_its_flag(flag: str, words: str) -> None:
    with pytest.raises(errors.BadInput) as raised:
        config.PluginConfig.read(["--node-name=a", flag])
    assert words in str(raised.value)


def test_a_missing_node_name_is_asked_for() -> None:
    with pytest.raises(errors.BadInput, match="--node-name is missing; expected the node's name"):
        config.PluginConfig.read([])


def test_a_flag_of_several_values_may_be_given_several_times_or_with_commas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flags = ["--node-name=a", "--xid-class", "109=application", "--xid-class", "48=node"]
    assert len(config.PluginConfig.read(flags).xid_classes) == 2
    monkeypatch.setenv("RATION_XID_CLASS", "109=application")
    assert list(config.PluginConfig.read(["--node-name=a"]).xid_classes) == [109]


def test_a_switch_is_on_by_its_flag_and_off_by_its_no_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    assert config.PluginConfig.read(["--node-name=a", "--evict-from-broken"]).evict_from_broken
    monkeypatch.setenv("RATION_EVICT_FROM_BROKEN", "true")
    assert config.PluginConfig.read(["--node-name=a"]).evict_from_broken
    off = config.PluginConfig.read(["--node-name=a", "--no-evict-from-broken"])
    assert not off.evict_from_broken


def test_a_flag_that_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        config.PluginConfig.read(["--node-name=a", "--nodename=b"])
    assert "unrecognized arguments: --nodename=b" in capsys.readouterr().err


def test_help_tells_each_flag_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        config.PluginConfig.read(["--help"])
    assert left.value.code == 0
    joined = " ".join(capsys.readouterr().out.split())
    assert "How often the GPUs are looked at again. (default: 60.0)" in joined


def test_the_hook_is_found_refused_or_a_plain_path() -> None:
    assert config.PluginConfig.read(["--node-name=a"]).cdi_hook == "auto"
    for value in ("none", "/opt/nvidia/toolkit/nvidia-cdi-hook"):
        read = config.PluginConfig.read(["--node-name=a", f"--cdi-hook={value}"])
        assert read.cdi_hook == value
    for value in ("", "hook", "/", "/usr/../bin/sh", "/usr/bin/x y", "/usr//bin/x", "/usr/bin/x\n"):
        with pytest.raises(errors.BadInput, match="cdi"):
            config.PluginConfig.read(["--node-name=a", f"--cdi-hook={value}"])
