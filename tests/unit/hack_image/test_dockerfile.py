"""A build of the Dockerfile is sent what it copies, and takes another base whole."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCKERFILE = (ROOT / "deploy/images/Dockerfile").read_text()


def test_the_context_is_what_the_dockerfile_copies_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert patterns[0] == "*"
    sent = {line[1:] for line in patterns if line.startswith("!")}
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    assert sent == {name for line in copies for name in line.split()}
    assert all((ROOT / name).exists() for name in sent)


def test_both_stages_are_on_the_base_that_is_given() -> None:
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${BASE}", "${BASE}"]
