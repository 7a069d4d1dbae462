import pytest

from hack.cluster import prerequisites, supply, versions

OLD, NEW = versions.GoVersion((1, 26, 6)), versions.GoVersion((1, 26, 9))
LOCAL = {"GOTOOLCHAIN": "local"}


def a_set(**changes: object) -> versions.ToolSet:
    fields = {
        "name": "karpenter",
        "module": "example.test/karpenter",
        "version": "v1.15.0",
        "binaries": {"karpenter": ""},
        "go": "1.26.9",
        "build_seconds": 1,
    }
    return versions.ToolSet.model_validate({**fields, **changes})


PUBLISHED = {"release": "https://example.test/{version}", "checksum": "https://example.test/sums"}


def choose(
    tools: versions.ToolSet,
    go: supply.Go,
    way: supply.Way = supply.Way.AUTO,
    *,
    answers: bool = False,
    environ: dict[str, str] | None = None,
) -> supply.Choice:
    go_mod = f"module x\n\ngo {tools.go or versions.GO_LANGUAGE}\n"
    return supply.choose(tools, go_mod, way, go, answers=answers, environ=environ or {})


def test_official_files_are_taken_where_their_site_answers() -> None:
    chosen = choose(a_set(**PUBLISHED), supply.Go(NEW), answers=True)
    assert (chosen.way, chosen.refusal) == (supply.Way.RELEASE, "")


def test_official_files_need_no_go_at_all() -> None:
    assert choose(a_set(**PUBLISHED), supply.Go(None), answers=True).refusal == ""


def test_a_set_is_built_where_its_site_does_not_answer() -> None:
    chosen = choose(a_set(**PUBLISHED), supply.Go(NEW))
    assert (chosen.way, chosen.refusal) == (supply.Way.BUILD, "")


def test_a_set_is_built_where_that_is_asked_whatever_answers() -> None:
    chosen = choose(a_set(**PUBLISHED), supply.Go(NEW), supply.Way.BUILD, answers=True)
    assert chosen.way is supply.Way.BUILD


@pytest.mark.parametrize(
    ("published", "message"),
    [(PUBLISHED, "its release site does not answer"), ({}, "publishes no programs")],
)
def test_nothing_is_built_where_official_files_alone_are_asked(
    published: dict[str, str], message: str
) -> None:
    chosen = choose(a_set(**published), supply.Go(NEW), supply.Way.RELEASE)
    assert chosen.refusal == f"karpenter v1.15.0: {message}; build it with RATION_PROGRAMS=build"


def test_a_go_too_old_that_may_fetch_none_is_refused_with_advice() -> None:
    assert choose(a_set(), supply.Go(OLD), environ=LOCAL).refusal == (
        "karpenter v1.15.0: Go 1.26.9 or newer builds it; this is 1.26.6, and GOTOOLCHAIN=local "
        "keeps it from fetching another: install that one (go.dev/dl), or set GOTOOLCHAIN=auto"
    )


def test_an_optional_set_raises_the_floor_for_no_other() -> None:
    outcome = supply.Go(OLD)
    others = (a_set(name="etcd", go=None), a_set(), a_set(name="helm", go=None))
    refused = [
        choice.tools.name
        for choice in (choose(each, outcome, environ=LOCAL) for each in others)
        if choice.refusal
    ]
    assert refused == ["karpenter"]


def test_a_set_that_asks_for_a_newer_go_fetches_it_where_nobody_forbade_it() -> None:
    assert choose(a_set(), supply.Go(OLD, "local")).refusal == ""


@pytest.mark.parametrize("toolchain", ["auto", "go1.26.6+auto"])
def test_a_go_that_may_fetch_another_builds_all(toolchain: str) -> None:
    outcome = supply.Go(versions.GoVersion((1, 24, 0)), toolchain)
    assert choose(a_set(go=None), outcome, environ={"GOTOOLCHAIN": toolchain}).refusal == ""


@pytest.mark.parametrize("toolchain", ["local", "path", "go1.25.0", "go1.25.0+path"])
def test_a_go_that_may_fetch_none_is_named_by_its_own_version(toolchain: str) -> None:
    outcome = supply.Go(versions.GoVersion((1, 25, 0)), toolchain)
    assert "Go 1.26.0 or newer builds it; this is 1.25.0" in choose(a_set(go=None), outcome).refusal


def test_a_missing_go_is_reported() -> None:
    assert choose(a_set(), supply.Go(None)).refusal == (
        "karpenter v1.15.0: Go 1.26.9 or newer builds it (go.dev/dl)"
    )


def test_all_missing_requirements_are_reported_together() -> None:
    refused = supply.Choice(a_set(), supply.Way.BUILD, "karpenter: no Go")
    choice = supply.Choice(a_set(), supply.Way.BUILD)
    assert prerequisites.Missing("karpenter: no Go") in prerequisites.check([choice, refused])
    assert prerequisites.check([choice]) == prerequisites.check([])


def test_readme_names_the_oldest_go_that_builds_a_cluster() -> None:
    oldest = versions.oldest_go(versions.load())
    readme = (versions.ROOM.parents[1] / "README.md").read_text()
    assert f"Go {oldest} or newer" in readme
