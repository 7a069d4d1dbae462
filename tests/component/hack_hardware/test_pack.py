"""Tests of what the file to carry leaves out, no step imports."""

import json
import subprocess
import sys
from importlib import metadata

from hack.hardware import pack

_PROGRAM = """
import json, sys
import hack.hardware.__main__
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_no_step_imports_a_package_that_is_left_out() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], cwd=pack.ROOT, capture_output=True, text=True, check=True
    )
    imported = set(json.loads(done.stdout))
    packages = metadata.packages_distributions()
    distributions = {name for module in imported for name in packages.get(module, ())}
    assert "pydantic" in distributions
    assert distributions.isdisjoint(pack.LEFT_OUT)
