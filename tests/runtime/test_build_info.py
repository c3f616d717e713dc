"""The build info of every kind of TensorFlow, read as text."""

from __future__ import annotations

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.runtime.build_info import parse_build_info

LICENCE = "# Copyright\n# limitations under the License.\n# =====\n"
HEAD = LICENCE + '"""Auto-generated module providing information about the build."""\nimport collections\n\n'

CUDA_212 = (
    "build_info = collections.OrderedDict([('cpu_compiler', '/dt9/usr/bin/gcc'), ('cuda_compute_capabilities', "
    "['sm_35', 'sm_50', 'sm_60', 'sm_70', 'sm_75', 'compute_80']), ('cuda_version', '11.8'), ('cudnn_version', '8'), "
    "('is_cuda_build', True), ('is_rocm_build', False), ('is_tensorrt_build', True)])"
)
CPU_221 = (
    "build_info = collections.OrderedDict([('is_cuda_build', False), ('is_rocm_build', False), "
    "('is_tensorrt_build', False)])"
)
WINDOWS = (
    "build_info = collections.OrderedDict([('is_cuda_build', True), "
    "('msvcp_dll_names', 'msvcp140.dll,msvcp140_1.dll'), ('path', 'C:\\\\cuda')])"
)


def test_the_same_as_python_reads() -> None:
    for line in (CUDA_212, CPU_221, WINDOWS, "build_info = {'a': 'x, (y', 'b': [], \"c\": None}"):
        space: dict[str, object] = {}
        exec(HEAD + line, space)
        assert parse_build_info(HEAD + line) == dict(space["build_info"])  # type: ignore[call-overload]


def test_what_is_no_literal_is_left_out() -> None:
    text = "build_info = collections.OrderedDict([('a', open('/etc/passwd')), ('b', True)])"
    assert parse_build_info(text).get("b") is True
    assert "a" not in parse_build_info(text)


@given(st.text(alphabet="build_nfo= ([{'\"\\,:#\n])}aT1", max_size=200))
def test_any_text_is_survived(text: str) -> None:
    parse_build_info("build_info = " + text)


def test_nothing_costly_is_imported() -> None:
    assert "ast" not in vars(sys.modules["envlock.runtime.build_info"])


@pytest.mark.parametrize("number", ["\u00b2", "9" * 5000, "٣"])
def test_a_number_that_python_does_not_read_is_none(number: str) -> None:
    assert parse_build_info(f"build_info = {{'a': {number}, 'b': 3}}") == {"b": 3}


def test_comments_take_time_that_grows_with_their_length() -> None:
    begin = time.process_time()
    parse_build_info("build_info = {" + "#\n" * 300_000)
    assert time.process_time() - begin < 1
