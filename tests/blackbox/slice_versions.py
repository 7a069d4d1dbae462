"""Versions of the slices that a driver has written."""

import time

from tests.blackbox.ground import seat


def written(here: seat.Seat) -> dict[str, tuple[str, str]]:
    """UID and resourceVersion of each slice."""
    metadata = (slice_["metadata"] for slice_ in here.slices())
    return {meta["name"]: (meta["uid"], meta["resourceVersion"]) for meta in metadata}


def settled(here: seat.Seat) -> dict[str, tuple[str, str]]:
    """Same as `written`, once nothing has been written for a while."""
    previous: dict[str, tuple[str, str]] = {}
    while (now := written(here)) != previous:
        previous = now
        time.sleep(4)
    return now
