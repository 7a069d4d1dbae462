"""Inputs that once broke a decoder, by target: each is tried at every run of the tests."""

import gzip
from collections.abc import Mapping

_SHAPE = b'{"shapes": [{"name": "a", "gpus": 1, "labels": {"\\ud800": "x"}}]}'
_ZIPPED = gzip.compress(b"{}" * 100, mtime=0)
FOUND: Mapping[str, tuple[bytes, ...]] = {
    "configs": (b'{"apiVersion": ' + b"[" * 900 + b"]" * 900 + b"}",),
    "node-shapes": (_SHAPE, b"shapes: 2024-13-45", b"a: !!bool x", b"a: !!timestamp x"),
    "records": (b"[" * 5000, b'{"a":' * 1200 + b"1" + b"}" * 1200),
    "mps": (b'{"key":"0","devices":["GPU-1597"],"pinned_memory":[1073741824],"x":Infinity}',),
    "quantities": (b"15E",),
    "selectors": (b'"\xed\xa0\x80" == ""',),
    "objects": (
        b'{"kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"\\ud800":""}}}',
    ),
    "shapes-seen": (
        _ZIPPED[:11] + b"\xaa\xff" + _ZIPPED[13:],
        b'{"version": 1, "gpus": Infinity}',
        b"[" * 5000,
    ),
}
