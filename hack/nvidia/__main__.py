"""Fetches NVIDIA's real programs into the cache: python -m hack.nvidia.

What cannot be had is said in a line, and the tests that want it are skipped.
"""

import sys

from hack.cluster import errors
from hack.nvidia import packages


def main() -> int:
    """Fetch each system; the exit code is 0, whatever could not be had."""
    for name, system in packages.systems().items():
        words = f"{name}: driver {system.driver}, glibc {system.libc}"
        try:
            packages.fetch(name)
        except errors.ClusterError as e:
            print(f"{words}: cannot be had here: {e}", file=sys.stderr)
        else:
            print(words)
    print("drivers 580 and 595, libcs of Ubuntu and RHEL: in no package of Debian, not tried")
    return 0


sys.exit(main())
