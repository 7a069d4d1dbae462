import json
from pathlib import Path

from tests.fresh import caches, results

GOOD = results.Ended("make setup", 0, 12, "ready")
BAD = results.Ended("make demo", 2, 3, "this machine lacks runc")
COLD = results.Round("cold", (GOOD, BAD), {"Go modules": 900, "pip": 0}, {"Build etcd 1": 25.0})


def test_a_round_is_green_when_every_step_is() -> None:
    assert results.Round("warm", (GOOD,), {}, {}).is_green
    assert not COLD.is_green


def test_a_round_says_how_each_step_ended_and_what_was_fetched_and_built() -> None:
    assert results.lines(COLD) == (
        "cold caches:",
        "  ok     12 s  make setup: ready",
        "  exit code 2      3 s  make demo: this machine lacks runc",
        "  fetched and built: Go modules 900 MiB",
        "     25.0 s  Build etcd 1",
    )


def test_a_result_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    for commit in ("a", "b"):
        results.keep(
            results.Result(commit, "go1.26.6", booted=False, rounds=(COLD,)),
            tmp_path / "fresh.json",
        )
    document = json.loads((tmp_path / "fresh.json").read_text())
    assert document["commit"] == "b"
    assert document["rounds"][0]["steps"][1]["last"] == "this machine lacks runc"


def test_a_cache_s_growth_is_what_a_run_brought(tmp_path: Path) -> None:
    folders = {"ours": tmp_path / "ours", "none": tmp_path / "none"}
    previous = caches.sizes(folders)
    (tmp_path / "ours" / "deep").mkdir(parents=True)
    (tmp_path / "ours" / "deep" / "file").write_bytes(bytes(3 << 20))
    assert caches.grown(previous, caches.sizes(folders)) == {"ours": 3, "none": 0}


def test_timings_are_of_programs_alone_the_longest_first(tmp_path: Path) -> None:
    file = tmp_path / "timings.json"
    file.write_text('{"Build etcd 1": 2.0, "Start 2 nodes": 9.0, "Fetch helm 4": 5.0}')
    assert caches.timings(file) == {"Fetch helm 4": 5.0, "Build etcd 1": 2.0}
    assert caches.timings(tmp_path / "none") == {}
