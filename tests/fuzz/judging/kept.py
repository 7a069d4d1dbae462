"""Judge of observed shapes, compressed; as stored, and with any document inside."""

import gzip

from driver.scheduling.provisioning import observed_shapes
from tests.fuzz.judging import refusing


def check(data: bytes) -> None:
    for content in (data, gzip.compress(data, compresslevel=1, mtime=0)):
        with refusing.refusals():
            seen = observed_shapes.decode(content, "a map")
            packed = observed_shapes.encode(seen)
            # What a device has that is not weighed is not kept, so the bytes are compared.
            assert observed_shapes.encode(observed_shapes.decode(packed, "a map")) == packed
