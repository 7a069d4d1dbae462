"""OCI archives hold what they are given, and nothing of when or where they were made."""

import io
import json
import tarfile
from pathlib import Path

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
        assert {(one.uid, one.gid, one.mtime) for one in packed.getmembers()} == {(0, 0, 0)}


def test_the_same_files_are_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    first = oci.write(tmp_path / "one.tar", IMAGE, FILES)
    second = oci.write(tmp_path / "two.tar", IMAGE, reversed(FILES))
    assert first == second
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.tar", "two.tar"]
