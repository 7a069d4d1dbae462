import pydantic
import pytest

from hack.cluster import errors, versions

UPSTREAM = """module k8s.io/kubernetes

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/client-go => ./staging/src/k8s.io/client-go
)
"""


def a_set(**changes: object) -> versions.ToolSet:
    fields = {
        "name": "kubernetes",
        "module": "k8s.io/kubernetes",
        "version": "v1.37.1",
        "staging": "v0.37.1",
        "binaries": {"kubelet": "cmd/kubelet"},
        "release": "https://example.test/{version}/{arch}/{binary}",
        "checksum": "https://example.test/{number}.sha256",
        "build_seconds": 1,
    }
    return versions.ToolSet.model_validate({**fields, **changes})


SET = """
module = "example.test/m"
release = "https://example.test/{version}"
checksum = "https://example.test/{version}.sha256"
build_seconds = 1
"""
FILE = f"""
[kubernetes]
default = "1.37"
{SET}
[kubernetes.binaries]
kubelet = "cmd/kubelet"

[kubernetes.lines."1.37"]
version = "v1.37.1"
staging = "v0.37.1"

[kubernetes.lines."1.36"]
version = "v1.36.4"
staging = "v0.36.4"

[etcd]
version = "v3.7.0"
{SET}
[etcd.binaries]
etcd = ""

[queue]
optional = true
module = "example.test/q"
version = "v0.1.0"
build_seconds = 1

[queue.binaries]
queue = "cmd/queue"
"""


@pytest.mark.parametrize("name", sorted(versions.load().sets()))
def test_every_committed_go_mod_agrees_with_the_versions_file(name: str) -> None:
    tools = versions.load().sets()[name]
    text = (tools.folder / "go.mod").read_text()
    assert versions.is_pinned(tools, text)
    assert all(package in text for package in tools.packages())


@pytest.mark.parametrize("line", versions.load().kubernetes)
def test_every_pinned_line_of_kubernetes_holds_a_patch_of_that_line(line: str) -> None:
    tools = versions.load().kubernetes[line]
    assert tools.version.startswith(f"v{line}.")
    assert tools.staging == tools.version.replace("v1.", "v0.")


def test_the_lines_of_kubernetes_are_sets_of_their_own_and_share_the_others() -> None:
    catalogue = versions.parse(FILE)
    names = {line: [tools.name for tools in catalogue.of(line)] for line in catalogue.kubernetes}
    assert names == {"1.37": ["kubernetes-1.37", "etcd"], "1.36": ["kubernetes-1.36", "etcd"]}
    assert catalogue.kubernetes["1.36"].version == "v1.36.4"
    assert catalogue.kubernetes["1.36"].folder != catalogue.kubernetes["1.37"].folder


def test_an_optional_set_is_part_of_no_cluster_and_can_be_asked_for() -> None:
    catalogue = versions.parse(FILE)
    assert [tools.name for tools in catalogue.optional] == ["queue"]
    assert all(
        tools.name != "queue" for line in catalogue.kubernetes for tools in catalogue.of(line)
    )
    assert catalogue.sets()["queue"].release is None


@pytest.mark.parametrize("question", [None, ""])
def test_the_default_line_is_taken_when_none_is_asked_for(question: str | None) -> None:
    assert versions.parse(FILE).line(question) == "1.37"


@pytest.mark.parametrize("question", ["1.35", "1.36.4", "v1.36"])
def test_an_unknown_line_is_refused_with_the_known_ones(question: str) -> None:
    with pytest.raises(errors.ClusterError, match=rf"'{question}'.*expected 1\.37 or 1\.36"):
        versions.parse(FILE).line(question)


def test_each_staging_repository_is_replaced_by_its_own_release() -> None:
    text = versions.render_go_mod(a_set(), UPSTREAM)
    assert "\tk8s.io/client-go => k8s.io/client-go v0.37.1\n" in text
    assert text.count("=>") == 2


def test_a_set_without_staging_has_no_replacements() -> None:
    text = versions.render_go_mod(a_set(staging=None), UPSTREAM)
    assert "replace" not in text
    assert "require k8s.io/kubernetes v1.37.1\n" in text


def test_another_version_in_go_mod_is_not_taken_for_the_pinned_one() -> None:
    assert not versions.is_pinned(a_set(), "require k8s.io/kubernetes v1.37.10\n")
    assert versions.is_pinned(a_set(), "\tk8s.io/kubernetes v1.37.1 // indirect\n")


def test_kubernetes_is_told_its_version_by_the_linker() -> None:
    flags = a_set().flags()[-1]
    assert "-X k8s.io/component-base/version.gitVersion=v1.37.1" in flags
    assert "-X k8s.io/client-go/pkg/version.gitMinor=37" in flags
    assert "gitVersion" not in a_set(staging=None).flags()[-1]


def test_another_program_is_told_its_version_where_it_keeps_it() -> None:
    flags = a_set(staging=None, stamp="example.test/m/version.version").flags()[-1]
    assert flags == "-s -w -X example.test/m/version.version=v1.37.1"


def test_an_address_is_filled_with_version_architecture_and_program() -> None:
    tools = a_set()
    assert tools.release is not None
    assert tools.address(tools.release, "arm64", "kubelet").endswith("/v1.37.1/arm64/kubelet")
    assert tools.address(tools.checksum, "arm64").endswith("/1.37.1.sha256")


def test_a_version_that_is_not_a_release_is_refused_by_name() -> None:
    with pytest.raises(pydantic.ValidationError, match="version"):
        a_set(version="latest")


def test_a_set_that_asks_for_a_newer_go_has_it_fetched_for_itself_alone() -> None:
    newer, usual = a_set(staging=None, go="1.26.9"), a_set(staging=None)
    assert "go 1.26.9\n" in versions.render_go_mod(newer, "")
    assert f"go {versions.GO_LANGUAGE}\n" in versions.render_go_mod(usual, "")
    assert newer.environment({}) == {"GOTOOLCHAIN": "auto"}
    assert newer.environment({"GOTOOLCHAIN": "local"}) == {}
    assert usual.environment({}) == {}


def test_the_newest_go_line_decides_which_go_is_needed() -> None:
    needed = versions.required_go(["module a\n\ngo 1.26.0\n", "module b\n\ngo 1.26.10\n"])
    assert str(needed) == "1.26.10"


def test_a_go_version_is_read_as_go_prints_it() -> None:
    assert versions.GoVersion.parse("go version go1.26.8 linux/amd64") == versions.GoVersion(
        (1, 26, 8)
    )
    assert versions.GoVersion.parse("nothing of the kind") is None


def test_a_cache_key_changes_with_any_input_and_with_their_borders() -> None:
    keys = {versions.cache_key(parts) for parts in ([b"ab", b"c"], [b"a", b"bc"], [b"abc"])}
    assert len(keys) == 3
