"""A process connected to a simulated machine, without the process."""

from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Peer:
    """Keeps what it was told."""

    pid: int
    user: int = 0
    told: list[tuple[str, ...]] = field(default_factory=list)
    closed: bool = False

    def tell(self, *words: str) -> None:
        self.told.append(words)

    def close(self) -> None:
        self.closed = True

    def heard(self, description: str) -> list[tuple[str, ...]]:
        """Return what it was told of one kind, without the word for it."""
        return [words[1:] for words in self.told if words[0] == description]
