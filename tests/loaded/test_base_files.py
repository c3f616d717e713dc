"""What an image has of its base, as a build writes it into the image's lockfile; with an engine in tests/image/test_build.py."""

from __future__ import annotations

import sys

from envlock.runtime.collectors.python import parse_compiler
from envlock.runtime.host import Host
from envlock.runtime.loaded.base_files import describe_base, hold_base
from tests.locks import document

OTHER = f"1 sha256:{'0' * 64}"
LOADED = {
    "imports": ["tensorflow"],
    "interpreter": {"python": "0" * 16},
    "standard": {"json": f"{'0' * 16} __init__ decoder"},
    "libm": [f"libm.so.6 {OTHER}"],
    "blas": [f"libblas.so.3 {OTHER}"],
    "unexplained": [],
}
"""As on another machine."""


def test_a_lockfile_gets_the_files_of_the_base_and_keeps_the_rest() -> None:
    before = document(facts={"loaded": LOADED, "python": {"compiler": "GCC 1.0"}}, unavailable={})
    after = hold_base(before, Host())
    held = after["facts"]["loaded"]
    assert {name for name in LOADED if held[name] != LOADED[name]} == {"interpreter", "standard", "libm"}
    (libm,) = held["libm"]
    assert libm.startswith("libm.so.6 ")
    assert held["standard"]["json"].split()[1:] == ["__init__", "decoder"]
    assert "python" in held["interpreter"]
    assert after["facts"]["python"]["compiler"] == parse_compiler(sys.version)
    seen, places = describe_base(held, Host())
    assert seen == {name: held[name] for name in ("interpreter", "standard", "libm")}
    assert places[libm].endswith("/libm.so.6")


def test_a_lockfile_without_what_a_process_loads_stays_as_it_is() -> None:
    before = document(facts={"python": {"compiler": "GCC 1.0"}}, unavailable={})
    assert hold_base(before, Host()) == before
