from pathlib import Path

import pytest

from tests.fresh import plan

PLACE = plan.Place(Path("/lane"))
README = (Path(__file__).parents[3] / "README.md").read_text()


def environment(**fields: str) -> dict[str, str]:
    return plan.environment({"PATH": "/bin", **fields}, PLACE, None)


def test_the_home_is_the_lane_s_and_go_may_fetch_no_other() -> None:
    assert environment(HOME="/home/me", GOTOOLCHAIN="auto") == {
        "PATH": "/bin",
        "HOME": "/lane/home",
        "GOTOOLCHAIN": "local",
    }


@pytest.mark.parametrize(
    "name",
    [
        "XDG_CACHE_HOME", "GOCACHE", "GOMODCACHE", "GOPATH", "GOFLAGS", "GOENV", "PYTHONPATH",
        "PYTHONPYCACHEPREFIX", "PIP_CACHE_DIR", "UV_CACHE_DIR", "VIRTUAL_ENV", "MAKEFLAGS",
        "MAKELEVEL", "CI", "K8S", "RATION_PROGRAMS",
    ],
)  # fmt: skip
def test_caches_toolchains_and_wishes_of_the_caller_are_left_out(name: str) -> None:
    assert name not in environment(**{name: "something"})


@pytest.mark.parametrize(
    "name", ["GOPROXY", "GOSUMDB", "HTTPS_PROXY", "SSL_CERT_FILE", "PIP_INDEX_URL", "LANG", "TERM"]
)
def test_proxy_settings_are_kept(name: str) -> None:
    assert environment(**{name: "something"})[name] == "something"


def test_a_go_that_is_named_comes_first() -> None:
    document = plan.environment({"PATH": "/bin:/go/bin"}, PLACE, Path("/old/bin"))
    assert document["PATH"] == "/old/bin:/bin:/go/bin"


def test_both_commands_of_the_readme_are_run() -> None:
    run = {step.text for step in plan.steps(boot=True)}
    named = {line.split("#")[0].strip() for line in README.splitlines() if line.startswith("make ")}
    assert {"make demo", "make test"} <= named & run


def test_without_a_cluster_nothing_boots() -> None:
    assert [step.name for step in plan.steps(boot=False)] == ["setup", "programs"]


def test_every_cache_lies_in_the_lane() -> None:
    assert all(folder.is_relative_to(PLACE.home) for folder in PLACE.caches().values())


def test_a_clone_is_of_the_commit_and_shares_nothing() -> None:
    clone = plan.clone(Path("/source"), "abc", Path("/lane/checkout-1"))
    assert [words[1:] for words in clone] == [
        ("clone", "--quiet", "--no-hardlinks", "/source", "/lane/checkout-1"),
        ("-C", "/lane/checkout-1", "checkout", "--quiet", "--detach", "abc"),
    ]


def test_the_demo_runs_during_the_tests_and_is_always_stopped() -> None:
    names = [step.name for step in plan.STEPS]
    assert names.index("demo") < names.index("test") < names.index("demo-down")
    assert [step.name for step in plan.STEPS if step.clears] == ["demo-down"]
