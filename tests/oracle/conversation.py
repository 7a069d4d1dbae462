"""Talking to the oracle's program: a line of JSON asked, a line of JSON answered."""

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.oracle import program

_END_S = 10.0


class Ended(Exception):
    """The program ended instead of answering."""


class Conversation:
    """The running program; a context manager. One question at a time.

    `mode` is its argument; without one it is the allocator.
    """

    def __init__(self, path: Path | None = None, mode: str = "") -> None:
        command = [str(path or program.ensure()), *([mode] if mode else [])]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Closes its input, at whose end the program ends.
        self._process.communicate(timeout=_END_S)

    def ask(self, line: str) -> str:
        """The answer to a line that ends with a newline. Raises Ended."""
        questions, answers = self._process.stdin, self._process.stdout
        assert questions is not None
        assert answers is not None
        try:
            questions.write(line)
            questions.flush()
            line_value = answers.readline()
        except BrokenPipeError:
            line_value = ""
        if not line_value:
            raise Ended(f"ended with status {self._process.wait(_END_S)}")
        return line_value
