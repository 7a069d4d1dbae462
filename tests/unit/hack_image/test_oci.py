"""OCI archives hold what they are given, and nothing of when or where they were made."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from hack.image import oci

IMAGE = oci.Image("a.test/b:c", "amd64", ("/bin/x",), user="65532:65532", labels={"title": "b"})
FILES = [
    oci.Entry("bin/y", "x"),
    oci.Entry("bin/x", b"x"),
    oci.Entry("tmp/", mode=0o1777),
]


def opened(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as packed:
        return {
            name: (packed.extractfile(name) or io.BytesIO()).read() for name in packed.getnames()
        }


def blob(blobs: dict[str, bytes], digest: str) -> bytes:
    return blobs["blobs/sha256/" + digest.removeprefix("sha256:")]


def test_the_index_names_the_image_and_leads_to_its_manifest(tmp_path: Path) -> None:
    digest = oci.write(tmp_path / "image.tar", IMAGE, FILES)
    blobs = opened(tmp_path / "image.tar")
    (entry,) = json.loads(blobs["index.json"])["manifests"]
    assert entry["annotations"] == {"io.containerd.image.name": "a.test/b:c"}
    assert entry["digest"] == digest
    manifest = json.loads(blob(blobs, digest))
    config = json.loads(blob(blobs, manifest["config"]["digest"]))
    assert config["config"]["User"] == "65532:65532"
    assert config["config"]["Labels"] == {"title": "b"}
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]


def test_the_layer_holds_the_files_by_name_owned_by_root(tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    copied.write_bytes(b"copied")
    files = [*FILES, oci.Entry("etc/z", copied, 0o644)]
    digest = oci.write(tmp_path / "image.tar", IMAGE, files)
    blobs = opened(tmp_path / "image.tar")
    (layer,) = json.loads(blob(blobs, digest))["layers"]
    with tarfile.open(fileobj=io.BytesIO(blob(blobs, layer["digest"]))) as packed:
        assert packed.getnames() == ["bin/x", "bin/y", "etc/z", "tmp"]
        assert packed.getmember("bin/y").linkname == "x"
        assert packed.getmember("tmp").mode == 0o1777
        assert packed.getmember("etc/z").mode == 0o644
        assert (packed.extractfile("etc/z") or io.BytesIO()).read() == b"copied"
        assert {(member.uid, member.gid, member.mtime) for member in packed.getmembers()} == {
            (0, 0, 0)
        }


def test_the_same_files_are_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    first = oci.write(tmp_path / "one.tar", IMAGE, FILES)
    second = oci.write(tmp_path / "two.tar", IMAGE, reversed(FILES))
    assert first == second
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.tar", "two.tar"]


def test_docker_finds_the_same_image_by_a_list_of_its_own(tmp_path: Path) -> None:
    digest = oci.write(tmp_path / "image.tar", IMAGE, FILES)
    blobs = opened(tmp_path / "image.tar")
    (listed,) = json.loads(blobs["manifest.json"])
    manifest = json.loads(blob(blobs, digest))
    assert listed["RepoTags"] == ["a.test/b:c"]
    assert blobs[listed["Config"]] == blob(blobs, manifest["config"]["digest"])
    assert [blobs[name] for name in listed["Layers"]] == [
        blob(blobs, layer["digest"]) for layer in manifest["layers"]
    ]


def test_an_archive_says_its_images_name_and_digest(tmp_path: Path) -> None:
    digest = oci.write(tmp_path / "image.tar", IMAGE, FILES)
    assert oci.name_of(tmp_path / "image.tar") == "a.test/b:c"
    assert oci.digest_of(tmp_path / "image.tar") == digest


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("ration:1", "docker.io/library/ration:1"),
        ("team/ration:1", "docker.io/team/ration:1"),
        ("localhost/ration:1", "localhost/ration:1"),
        ("mirror:5000/ration:1", "mirror:5000/ration:1"),
        ("ration.local/driver", "ration.local/driver"),
    ],
)
def test_containerd_is_told_the_name_that_a_kubelet_asks_for(name: str, full: str) -> None:
    assert oci.reference(name) == full


def test_a_layer_that_is_a_tar_already_is_taken_as_it_is(tmp_path: Path) -> None:
    with (tmp_path / "layer").open("wb") as out:
        oci.pack(out, FILES)
    packed = oci.write(tmp_path / "one.tar", IMAGE, FILES)
    assert oci.write_layer(tmp_path / "two.tar", IMAGE, tmp_path / "layer") == packed
    assert (tmp_path / "layer").exists()


def test_a_bundle_names_each_of_its_images_before_anything_that_names_one(tmp_path: Path) -> None:
    other = oci.Image("a.test/d:e", "amd64", (), entrypoint=("/bin/x",), stop_signal="SIGINT")
    oci.write_bundle(tmp_path / "bundle.tar", [(IMAGE, FILES), (other, FILES)])
    blobs = opened(tmp_path / "bundle.tar")
    assert "manifest.json" not in blobs
    assert json.loads(blobs["repositories"]).keys() == {"a.test/b", "a.test/d"}
    names = {}
    for entry in json.loads(blobs["index.json"])["manifests"]:
        manifest = json.loads(blob(blobs, entry["digest"]))
        config = json.loads(blob(blobs, manifest["config"]["digest"]))["config"]
        names[entry["annotations"]["io.containerd.image.name"]] = config
    assert names["a.test/b:c"]["Cmd"] == ["/bin/x"]
    assert (names["a.test/d:e"]["Entrypoint"], names["a.test/d:e"]["StopSignal"]) == (
        ["/bin/x"],
        "SIGINT",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["bundle.tar"]
