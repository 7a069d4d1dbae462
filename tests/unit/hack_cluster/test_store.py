from pathlib import Path

from hack.cluster import boot, layout, processes, state, store


def a_cluster(location: layout.Layout, **changes: object) -> state.ClusterState:
    fields = {
        "checkout": str(location.checkout),
        "boot": processes.boot(),
        "phase": state.Phase.UP,
        "kubernetes": "1.37",
        "driver": state.Driver.PROCESSES,
        "controllers": 1,
        "nodes": (),
        "ports": {},
        "sysctls": {"kernel/panic": "0", "net/ipv4/ip_forward": "0"},
        "absent": ("/etc/cni",),
    }
    return state.ClusterState.model_validate({**fields, **changes})


def written(location: layout.Layout, **changes: object) -> state.ClusterState:
    location.home.mkdir(parents=True)
    cluster_state = a_cluster(location, **changes)
    store.write(location, cluster_state)
    return cluster_state


def test_other_clusters_of_this_boot_are_seen_and_one_s_own_is_not(tmp_path: Path) -> None:
    usual, named, old = (layout.Layout(tmp_path / "c", tmp_path, n) for n in ("", "tests", "old"))
    cluster_state = written(usual)
    written(named)
    written(old, boot="an earlier one")
    assert store.others(named) == (cluster_state,)


def test_machine_folders_are_removed_with_the_last_cluster_that_may_mount_them(
    tmp_path: Path,
) -> None:
    usual, named = (layout.Layout(tmp_path / "c", tmp_path, name) for name in ("", "tests"))
    first, second = written(usual), written(named, absent=("/run/cdi",))
    assert store.own_folders(usual, first) == ()
    assert store.own_folders(named, second) == ()
    usual.state.unlink()
    assert store.own_folders(named, second) == ("/run/cdi",)


def test_a_half_written_state_is_no_cluster(tmp_path: Path) -> None:
    usual, named = (layout.Layout(tmp_path / "c", tmp_path, n) for n in ("", "tests"))
    usual.home.mkdir(parents=True)
    usual.state.write_text("{")
    assert store.others(named) == ()


def test_the_machine_s_values_are_those_from_before_the_first_cluster(tmp_path: Path) -> None:
    first = a_cluster(layout.Layout(tmp_path, name=""))
    assert boot.machine_values([first]) == {"kernel/panic": "0"}
    assert boot.machine_values([]) == {}
