"""The runtime's own tests once more, with ASan and UBSan."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.runtime import SANITIZE

MODULES = [path.name for path in sorted(Path(__file__).parent.glob("test_runtime_*.py")) if path != Path(__file__)]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("module", MODULES)
def test_the_runtime_is_clean_under_the_sanitizers(module: str) -> None:
    compiler = os.environ.get("CC", "cc").split()[0]
    asked = [[compiler, f"-print-file-name={name}"] for name in ("libasan.so", "libubsan.so")]
    found = [subprocess.run(one, capture_output=True, text=True, check=False).stdout.strip() for one in asked]
    if not all(Path(path).is_absolute() for path in found):
        pytest.skip("the C compiler has no shared ASan library")
    environment = os.environ | {
        SANITIZE: "1",
        "LD_PRELOAD": " ".join(found),
        "ASAN_OPTIONS": "detect_leaks=0",
    }
    options = ["-q", "-x", "--capture=sys", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, str(Path(__file__).with_name(module))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
