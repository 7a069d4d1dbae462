"""Whatever legal names things have, no path leaves its folder or is too long for the system."""

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver import errors, ids
from driver.kubeletplugin.cdi import metadata_files, model, store
from driver.kubeletplugin.host import sockets
from driver.kubeletplugin.records import checkpoint
from driver.resources.publish import slice_builder

NAME_MAX, OBJECT_NAME = 255, 253
LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
labels = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)
long_labels = st.sampled_from(["a" * 63, "9" * 63, "a-" * 31 + "a"])
drivers = st.one_of(
    st.lists(labels, min_size=2, max_size=4).map(".".join).filter(lambda name: len(name) <= 63),
    st.sampled_from(["gpu.ration.dev", "a." * 31 + "b"]),
)
uids = st.one_of(
    st.uuids().map(str),
    st.from_regex(r"[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?", fullmatch=True),
)
hostile = st.one_of(
    st.text(max_size=80),
    st.sampled_from(["..", ".", "", "a/b", "../../etc/passwd", "a\0", "a" * 64, "é", "a\n", "-a"]),
)
BASE = Path("/var/lib/ration")


def assert_within(path: Path, folder: Path) -> None:
    assert path.parent == folder
    assert ".." not in path.parts
    assert len(path.name.encode()) <= NAME_MAX - len(".tmp")


@given(drivers, uids, st.one_of(labels, long_labels))
def test_files_of_a_claim_stay_in_their_folders(driver: str, uid: str, request: str) -> None:
    with contextlib.suppress(errors.BadInput):  # CDI takes no vendor that begins with a digit
        spec = store.SpecStore(BASE, model.cdi_kind(driver)).path(ids.ClaimUid(uid))
        assert_within(spec, BASE)
    path = metadata_files.MetadataFiles(BASE).path(ids.ClaimUid(uid), request)
    assert_within(path, BASE / uid)
    assert checkpoint.require_uid(uid) == uid


@given(hostile)
def test_an_invalid_uid_becomes_no_path(uid: str) -> None:
    if checkpoint.is_uid(uid):
        assert_within(BASE / f"{uid}.json", BASE)
        return
    of_claim = ids.ClaimUid(uid)
    with pytest.raises(errors.BadInput):
        store.SpecStore(BASE, model.cdi_kind("gpu.ration.dev")).path(of_claim)
    with pytest.raises(errors.BadInput):
        metadata_files.MetadataFiles(BASE).path(of_claim, "gpu")
    with pytest.raises(errors.BadInput):
        checkpoint.Checkpoint(BASE, "boot").read(of_claim)


@given(drivers, st.one_of(st.just(""), st.uuids().map(str)), st.integers(1, 140))
def test_sockets_fit_their_addresses_or_are_refused(driver: str, pod: str, length: int) -> None:
    root = Path(f"/{'r' * length}")
    try:
        paths = sockets.socket_paths(root, driver, pod)
    except errors.BadInput:
        assert length > sockets.LIMIT - len("/plugins_registry/") - NAME_MAX // 4
        return
    assert paths.registration.parent == root / "plugins_registry"
    assert paths.service.is_relative_to(root / "plugins")
    for path in (paths.registration, paths.service):
        for item in (path, sockets.bind_path(path)):
            assert len(str(item).encode()) <= sockets.LIMIT


@given(drivers, st.lists(labels, min_size=1, max_size=6), st.integers(0, 253), labels)
def test_a_slice_is_named_as_the_api_server_allows(
    driver: str, parts: list[str], length: int, other: str
) -> None:
    """A node's name is as long as an object's may be; that of its slice is longer still."""
    node = ".".join([*parts, "n" * length])[:OBJECT_NAME].strip(".-")
    names = [slice_builder.slice_name(driver, node, index) for index in (0, 7, 90)]
    assert names == sorted(names)
    for name in names:
        assert len(name) <= OBJECT_NAME
        assert re.fullmatch(rf"{LABEL}(\.{LABEL})*", name)
    if other != node[: len(other)]:
        assert slice_builder.slice_name(driver, f"{other}{node[len(other) :]}", 0) != names[0]
