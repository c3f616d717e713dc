"""Two RECORDs of the same files, and of others."""

from __future__ import annotations

import csv
import io
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.runtime.errors import FactError
from envlock.runtime.files.record_rows import Row, describe_difference, get_common_content, hash_content, parse_rows

WHEEL = """\
greenlet/__init__.py,sha256=aaaa,10
greenlet/_greenlet.so,sha256=bbbb,20
greenlet-3.0.data/headers/greenlet.h,sha256=cccc,30
greenlet-3.0.data/data/share/doc/readme.txt,sha256=dddd,40
greenlet-3.0.data/scripts/green,sha256=eeee,50
greenlet-3.0.data/platlib/extra.py,sha256=ffff,60
greenlet-3.0.dist-info/METADATA,sha256=gggg,70
greenlet-3.0.dist-info/RECORD,,
"""
INSTALLED = """\
../../../bin/green,sha256=rewritten,51
../../../bin/entry-point,sha256=made,99
../../../include/site/python3.11/greenlet/greenlet.h,sha256=cccc,30
../../../share/doc/readme.txt,sha256=dddd,40
extra.py,sha256=ffff,60
__pycache__/extra.cpython-311.pyc,,
greenlet/__init__.py,sha256=aaaa=,10
greenlet/__pycache__/__init__.cpython-311.pyc,,
greenlet/_greenlet.so,sha256=bbbb,20
greenlet-3.0.dist-info/INSTALLER,sha256=pip,4
greenlet-3.0.dist-info/METADATA,sha256=gggg,70
greenlet-3.0.dist-info/RECORD,,
greenlet-3.0.dist-info/REQUESTED,sha256=47DE,0
greenlet-3.0.dist-info/direct_url.json,sha256=url,80
"""


def test_what_an_installer_adds_and_moves_makes_no_difference() -> None:
    assert get_common_content(parse_rows(WHEEL)) == get_common_content(parse_rows(INSTALLED))
    assert hash_content(get_common_content(parse_rows(WHEEL))) == hash_content(
        get_common_content(parse_rows(INSTALLED))
    )
    assert describe_difference(get_common_content(parse_rows(INSTALLED)), get_common_content(parse_rows(WHEEL))) is None


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("__init__.py,sha256=aaaa=", "__init__.py,sha256=AAAA", "greenlet/__init__.py has a different hash"),
        ("greenlet/_greenlet.so,sha256=bbbb,20\n", "", "greenlet/_greenlet.so is not installed"),
        ("extra.py,", "other.py,", "extra.py is not installed, and 1 more file differs"),
        ("extra.py,sha256=ffff,60\n", "extra.py,sha256=ffff,60\nmore.py,sha256=a,1\n", "more.py is not in the wheel"),
        ("greenlet.h,sha256=cccc", "greenlet.h,sha256=dddd", "../greenlet.h has a different hash"),
    ],
)  # fmt: skip
def test_another_file_is_named(old: str, new: str, sentence: str) -> None:
    assert old in INSTALLED
    installed = get_common_content(parse_rows(INSTALLED.replace(old, new)))
    assert describe_difference(installed, get_common_content(parse_rows(WHEEL))) == sentence
    assert hash_content(installed) != hash_content(get_common_content(parse_rows(WHEEL)))


@pytest.mark.parametrize(
    "text", ["a,b\n", "a,sha256=b,x\n", ",sha256=b,1\n", "a,nohash,1\n", 'a,"b\n', "a\n", "a\0b,,\n"]
)
def test_garbage_is_refused(text: str) -> None:
    with pytest.raises(FactError) as caught:
        parse_rows(text)
    assert caught.value.message == "its RECORD does not follow the packaging specification"


PATHS = st.lists(st.text("abc. ,\"'é\u2028\x0b\n", min_size=1, max_size=6), min_size=1, max_size=3).map("/".join)
HASHES = st.text("abcDEF019_-", min_size=1, max_size=8).map(lambda text: f"sha256={text}")
FILES = st.dictionaries(PATHS.filter(lambda path: path.split("/")[0] not in (".", "..")), HASHES, min_size=1)


@given(FILES, st.randoms(use_true_random=False))
def test_any_record_survives_the_way_through_a_file_in_any_order(files: dict[str, str], random: Random) -> None:
    listed = [Row(path, value, 1) for path, value in files.items()]
    random.shuffle(listed)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(listed)
    assert sorted(parse_rows(out.getvalue())) == sorted(listed)
    assert hash_content(get_common_content(parse_rows(out.getvalue()))) == hash_content(
        get_common_content(Row(*each, 1) for each in files.items())
    )


@given(FILES, st.data())
def test_any_other_hash_changes_the_digest(files: dict[str, str], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(files)))
    other = {**files, path: data.draw(HASHES.filter(lambda value: value != files[path]))}
    before, after = (get_common_content(Row(*each, 1) for each in one.items()) for one in (files, other))
    assert hash_content(before) != hash_content(after)
    assert describe_difference(after, before) is not None
