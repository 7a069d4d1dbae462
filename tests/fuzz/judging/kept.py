"""What is kept of a shape's nodes, compressed; as it stands, and with any document inside."""

import gzip

from driver.controller.provisioning import learning
from tests.fuzz.judging import refusing


def check(data: bytes) -> None:
    for found in (data, gzip.compress(data, compresslevel=1, mtime=0)):
        with refusing.refusals():
            seen = learning.unpacked(found, "a map")
            packed = learning.packed(seen)
            # What a device has that is not weighed is not kept, so the bytes are compared.
            assert learning.packed(learning.unpacked(packed, "a map")) == packed
