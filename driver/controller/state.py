"""What the decider knows: the caches, the picture made of them, and what it remembers."""

from dataclasses import dataclass

from driver import clock
from driver.controller import feed, memory, picture, stores


@dataclass(frozen=True, slots=True)
class State:
    """Owned by the decider's thread; only the stores are filled by others."""

    stores: stores.Stores
    feed: feed.Feed
    view: picture.Picture
    memory: memory.Memory
    clock: clock.Clock

    def bring(self) -> picture.Picture:
        """The picture, up to date."""
        self.feed.bring()
        return self.view
