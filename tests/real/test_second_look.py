"""The second look with a real TensorFlow, which brings 150 libraries and 2,700 modules."""

from __future__ import annotations

import pytest

from tests.conftest import Command
from tests.loaded.environment import change, find_library

AS_LOCKED = """
import sqlite3, xml.dom.minidom, sys
import envlock
envlock.assert_locked()
import tensorflow as tf
envlock.assert_loaded()
print((tf.constant(1) + 1).numpy(), type(tf.__spec__.loader).__name__)
"""
ANOTHER = """
import ctypes, envlock
envlock.assert_locked()
ctypes.CDLL({library!r})
for _ in range(2):
    try:
        import tensorflow
    except envlock.EnvironmentMismatch as mismatch:
        print([finding.message for finding in mismatch.report.findings])
envlock.activate()
"""


@pytest.mark.usefixtures("lock")
def test_what_tensorflow_loads_is_compared_before_the_first_operation(python: Command) -> None:
    done = python("-c", AS_LOCKED, environ={"TF_CPP_MIN_LOG_LEVEL": "3"})
    assert (done.returncode, done.stdout) == (0, "2 SourceFileLoader\n"), done.stderr
    library = python.folder / "libm.so.6"
    library.write_bytes(find_library("libm.so").read_bytes())
    done = python("-c", ANOTHER.format(library=str(change(library))), environ={"TF_CPP_MIN_LOG_LEVEL": "3"})
    message = f"loaded.libm: not the locked file: {library}"
    assert (done.returncode, done.stdout) == (1, f"{[message]}\n" * 2), done.stderr
    assert done.stderr.count("Traceback") == 1
    assert f"  x {message}" in done.stderr
