"""A model that says where it was made: written into its own container, read back, and nothing else changed."""

from __future__ import annotations

import io
import json
import os
import warnings
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import envlock
from envlock.runtime.errors import EnvlockError, LockfileError, UsageError, WriteError
from envlock.runtime.stamp import read_stamp, stamp
from tests.locks import document, encode
from tests.runtime.test_citation import GOLDEN

MEMBERS = {"metadata.json": b"{}", "config.json": b"{}", "model.weights.h5": b"weights " * 1000}
AGAIN = "hint: save the model again: Keras writes no such file"


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "made.lock"
    path.write_bytes(encode(document()))
    return path


def keras(path: Path, more: Any = (), members: dict[str, bytes] = MEMBERS) -> Path:
    """Write what has the members of a `.keras` file; `more` are pairs, so that a name can be there twice."""
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")
        for name, data in [*members.items(), *more]:
            archive.writestr(zipfile.ZipInfo(name), data)
    return path


def saved(path: Path) -> Path:
    path.mkdir()
    (path / "saved_model.pb").write_bytes(b"graph")
    return path


def hold(make: object, data: bytes, folder: Path) -> Path:
    """Return a model of either kind with these bytes as its stamp."""
    if make is keras:
        return keras(folder / "model.keras", [("envlock.json", data)])
    model = saved(folder / "model")
    (model / "assets.extra").mkdir()
    (model / "assets.extra/envlock.json").write_bytes(data)
    return model


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {each.filename: archive.read(each) for each in archive.infolist()}


def refusal(model: Path, kind: type[EnvlockError] = LockfileError) -> str:
    """Return the sentence with which a model is refused, the same for a reader and for a writer."""
    before = model.read_bytes()
    with pytest.raises(kind) as caught:
        stamp(model, model.parent / "made.lock")
    assert model.read_bytes() == before
    assert [each.name for each in model.parent.iterdir() if each.name.startswith(".envlock")] == []
    with pytest.raises(kind) as read:
        read_stamp(model)
    assert str(read.value) == str(caught.value)
    return str(caught.value).replace(str(model), "M")


GRAPH = sha256(b"graph").hexdigest()
SAVED = sha256(f"saved_model.pb {GRAPH}\n".encode()).hexdigest()


@pytest.mark.parametrize(("make", "more"), [(keras, {}), (saved, {"saved": SAVED})])
def test_a_stamped_model_gives_its_lockfile_back(make: Any, more: Any, tmp_path: Path, lock: Path) -> None:
    model = make(tmp_path / "model.keras")
    assert envlock.stamp(model, lock) == GOLDEN
    assert read_stamp(model) == {"stamp_version": 1, "line": GOLDEN, "lock": document(), **more}


def test_all_else_in_the_model_stays_as_it_is(tmp_path: Path, lock: Path) -> None:
    model = keras(tmp_path / "model.keras")
    model.chmod(0o640)
    stamp(model, lock)
    found = contents(model)
    assert list(found) == [*MEMBERS, "envlock.json"]
    assert {name: found[name] for name in MEMBERS} == MEMBERS
    assert model.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["made.lock", "model.keras"]


@pytest.mark.parametrize("file", ["saved_model.pb", "fingerprint.pb", "variables/variables.index"])
@pytest.mark.parametrize("existed", [True, False])
def test_a_savedmodel_that_was_saved_again_has_a_stale_stamp(
    file: str, existed: bool, tmp_path: Path, lock: Path
) -> None:
    """TensorFlow leaves `assets.extra` as it was; versions before 2.12 write no fingerprint."""
    model = saved(tmp_path / "model")
    changed = model / file
    changed.parent.mkdir(exist_ok=True)
    if existed:
        changed.write_bytes(b"before")
    stamp(model, lock)
    assert read_stamp(model) is not None
    changed.write_bytes(b"later")
    with pytest.raises(LockfileError) as caught:
        read_stamp(model)
    assert str(caught.value) == (
        f"the stamp of model {model} is that of another model: it was saved again later\n"
        "hint: stamp it where it was saved: `envlock.stamp(path)`"
    )
    stamp(model, lock)
    assert read_stamp(model) is not None


def test_a_new_stamp_takes_the_place_of_the_old(tmp_path: Path, lock: Path) -> None:
    model = keras(tmp_path / "model.keras")
    stamp(model, lock)
    first = model.read_bytes()
    stamp(model, lock)
    assert model.read_bytes() == first
    stamp(model, lock, whole=False)
    assert read_stamp(model) == {"stamp_version": 1, "line": GOLDEN}
    assert model.stat().st_size < len(first)


def test_a_stamp_that_is_not_the_last_member_is_replaced_too(tmp_path: Path, lock: Path) -> None:
    members = {"envlock.json": b"{}", **MEMBERS}
    model = keras(tmp_path / "model.keras", members=members)
    stamp(model, lock)
    assert set(contents(model)) == set(members)
    assert read_stamp(model) == {"stamp_version": 1, "line": GOLDEN, "lock": document()}


def test_a_link_leads_to_the_model(tmp_path: Path, lock: Path) -> None:
    model, link = keras(tmp_path / "model.keras"), tmp_path / "latest.keras"
    link.symlink_to(model)
    stamp(link, lock)
    assert link.is_symlink()
    assert read_stamp(model) == read_stamp(link)


@pytest.mark.parametrize("content", [None, b"text", b"\x89HDF\r\n", b""])
def test_what_is_no_model_is_not_written(content: bytes | None, tmp_path: Path, lock: Path) -> None:
    path = tmp_path / "model"
    path.mkdir() if content is None else path.write_bytes(content)
    assert read_stamp(path) is None
    with pytest.raises(UsageError) as caught:
        stamp(path, lock)
    assert str(caught.value) == (
        f"neither a .keras file nor a SavedModel: {path}\n"
        "hint: save the model first: `model.save('model.keras')` or `model.export('folder')`"
    )


def test_a_pipe_is_no_model_and_nobody_waits_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.keras")
    assert read_stamp(tmp_path / "model.keras") is None
    assert read_stamp("a\0b") is None


@pytest.mark.parametrize("make", [keras, saved])
def test_a_model_without_a_stamp(make: Any, tmp_path: Path) -> None:
    model = make(tmp_path / "model.keras")
    with pytest.raises(LockfileError) as caught:
        read_stamp(model)
    assert str(caught.value) == f"model {model} has no stamp\nhint: stamp it where it is saved: `envlock.stamp(path)`"


def test_another_zip_is_not_stamped(tmp_path: Path, lock: Path) -> None:
    assert refusal(keras(tmp_path / "wheel.whl", members={"a.py": b""})) == (
        "M is a zip and not a Keras model: config.json and metadata.json are missing\n"
        "hint: name a file that `model.save('model.keras')` wrote"
    )


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "assets/../../x"])
def test_a_member_outside_of_the_model(name: str, tmp_path: Path, lock: Path) -> None:
    model = keras(tmp_path / "model.keras", [(name, b"")])
    assert refusal(model) == f"model M has a member with a path outside the model: {name}\n{AGAIN}"


def test_two_members_with_one_name(tmp_path: Path, lock: Path) -> None:
    model = keras(tmp_path / "model.keras", [("envlock.json", b"{}"), ("envlock.json", b"[]")])
    assert refusal(model) == f"model M has two members with the name envlock.json\n{AGAIN}"


def test_too_many_members(tmp_path: Path, lock: Path) -> None:
    model = keras(tmp_path / "model.keras", [(f"assets/{number}", b"") for number in range(10_000)])
    assert refusal(model) == f"model M has more than 10,000 members\n{AGAIN}"


FEWEST = {"config.json": b"{}", "metadata.json": b"{}"}


@pytest.mark.parametrize(("members", "more"), [(FEWEST, 0), (MEMBERS, 10_000 - len(MEMBERS))])
def test_the_fewest_and_the_most_members(members: Any, more: int, tmp_path: Path, lock: Path) -> None:
    model = keras(tmp_path / "model.keras", [(f"assets/{number}", b"") for number in range(more)], members)
    assert stamp(model, lock) == GOLDEN


def test_a_model_that_is_cut_off(tmp_path: Path, lock: Path) -> None:
    model = keras(tmp_path / "model.keras")
    model.write_bytes(model.read_bytes()[:-30])
    assert refusal(model) == "model M is damaged: File is not a zip file\nhint: save the model again"


def test_a_stamp_that_unpacks_to_gigabytes_is_not_unpacked(tmp_path: Path) -> None:
    model = tmp_path / "model.keras"
    with zipfile.ZipFile(model, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in MEMBERS.items():
            archive.writestr(name, data)
        archive.writestr("envlock.json", b" " * (64 * 2**20))
    assert model.stat().st_size < 100_000
    with pytest.raises(LockfileError) as caught:
        read_stamp(model)
    assert (
        str(caught.value) == f"the stamp of model {model} is larger than 8 MB\nhint: save the model again, and stamp it"
    )


BROKEN = "hint: save the model again, and stamp it"


@pytest.mark.parametrize(
    ("more", "message"),
    [(0, "the stamp of model M is not JSON: "), (1, "the stamp of model M is larger than 8 MB")],
)
@pytest.mark.parametrize("make", [keras, saved])
def test_the_largest_stamp(make: Any, more: int, message: str, tmp_path: Path) -> None:
    data = b" " * (8 * 2**20 + more)
    model = hold(make, data, tmp_path)
    with pytest.raises(LockfileError) as caught:
        read_stamp(model)
    assert caught.value.message.replace(str(model), "M").startswith(message)


FAULTS = {
    b"nul": f"the stamp of model M is not JSON: it is not JSON (line 1, column 1: a value is missing)\n{BROKEN}",
    b"[]": f"the stamp of model M is not valid\n{BROKEN}",
    b"{}": f"the stamp of model M is not valid\n{BROKEN}",
    b'{"stamp_version": 2}': "the stamp of model M has version 2; this envlock reads up to 1\nhint: upgrade envlock",
    b'{"stamp_version": 0, "line": "x"}': f"the stamp of model M is not valid\n{BROKEN}",
    b'{"stamp_version": 1, "line": 7}': f"the stamp of model M is not valid\n{BROKEN}",
    b'{"stamp_version": true, "line": "x"}': f"the stamp of model M is not valid\n{BROKEN}",
    b'{"stamp_version": 1, "line": "x"}': (
        "the stamp of model M is not valid: not a line of `envlock show --line`: x\n"
        "hint: give the whole line: `envlock:1:sha256:` and 64 hexadecimal digits"
    ),
    json.dumps(
        {"stamp_version": 1, "line": GOLDEN, "lock": 3}
    ).encode(): "lockfile in M is not valid: it is a number, not an object\n"
    "hint: restore it from version control, or create it again with `envlock capture`",
    json.dumps(
        {"stamp_version": 1, "line": GOLDEN, "lock": document(created_by="\udc80")}
    ).encode(): f"the stamp of model M is not JSON: a string holds half a surrogate pair\n{BROKEN}",
    json.dumps({"stamp_version": 1, "line": GOLDEN, "lock": document(unavailable={})}).encode(): (
        f"the stamp of model M has a line that is not its lockfile's\n{BROKEN}"
    ),
}


@pytest.mark.parametrize("data", FAULTS)
@pytest.mark.parametrize("make", [keras, saved])
def test_a_stamp_that_somebody_changed(make: Any, data: bytes, tmp_path: Path) -> None:
    model = hold(make, data, tmp_path)
    with pytest.raises(LockfileError) as caught:
        read_stamp(model)
    assert str(caught.value).replace(str(model), "M") == FAULTS[data]


def test_a_stamp_of_a_folder_is_a_regular_file(tmp_path: Path) -> None:
    model = saved(tmp_path / "model")
    (model / "assets.extra/envlock.json").mkdir(parents=True)
    with pytest.raises(LockfileError) as caught:
        read_stamp(model)
    assert str(caught.value) == f"the stamp of model {model} is not a regular file\n{BROKEN}"


@pytest.mark.parametrize(("make", "file"), [(saved, "saved_model.pb"), (saved, "envlock.json"), (keras, "model.keras")])
def test_a_file_that_cannot_be_read(
    make: Any, file: str, tmp_path: Path, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make(tmp_path / "model.keras")
    stamp(model, lock)
    opened: list[str] = []
    really_open = open

    def deny(path: Any, *words: Any) -> Any:
        opened.append(str(path))
        # The first look at a `.keras` file is at its first bytes: without these, it is no model.
        if str(path).endswith(file) and (make is saved or opened.count(str(path)) > 1):
            raise OSError(5, "Input/output error")
        return really_open(path, *words)

    monkeypatch.setattr("builtins.open", deny)
    with pytest.raises(LockfileError) as caught:
        read_stamp(model)
    assert str(caught.value) == f"cannot read model {model}: Input/output error\nhint: check its permissions"


def test_the_whole_graph_is_digested(tmp_path: Path, lock: Path) -> None:
    model = saved(tmp_path / "model")
    graph = model / "saved_model.pb"
    graph.write_bytes(bytes(3 << 20) + b"a")
    stamp(model, lock)
    assert read_stamp(model) is not None
    graph.write_bytes(bytes(3 << 20) + b"b")
    with pytest.raises(LockfileError, match="that of another model"):
        read_stamp(model)


def test_the_bytes_of_a_stamp(tmp_path: Path, lock: Path) -> None:
    """Indented, with sorted keys and as UTF-8, so that a change of it can be read."""
    model = saved(tmp_path / "model")
    stamp(model, lock)
    text = (model / "assets.extra/envlock.json").read_bytes()
    held = {"stamp_version": 1, "line": GOLDEN, "saved": SAVED, "lock": document()}
    assert text == (json.dumps(held, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def test_a_savedmodel_whose_stamp_does_not_say_which_one(tmp_path: Path, lock: Path) -> None:
    model = saved(tmp_path / "model")
    stamp(model, lock)
    file = model / "assets.extra/envlock.json"
    held = json.loads(file.read_bytes())
    del held["saved"]
    file.write_text(json.dumps(held))
    with pytest.raises(LockfileError, match="that of another model"):
        read_stamp(model)


def test_a_text_of_any_letters_is_readable_in_a_stamp(tmp_path: Path) -> None:
    file = tmp_path / "made.lock"
    file.write_bytes(encode(document(created_by="gr\u00f6\u00dfer")))
    model = saved(tmp_path / "model")
    stamp(model, file)
    assert "gr\u00f6\u00dfer".encode() in (model / "assets.extra/envlock.json").read_bytes()
    assert read_stamp(model) is not None


def test_a_disk_that_fails_leaves_the_model(tmp_path: Path, lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = keras(tmp_path / "model.keras")
    before = model.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    monkeypatch.chdir("/proc")  # the draft lies beside the model, wherever the program runs
    with pytest.raises(WriteError) as caught:
        stamp(model, lock)
    assert str(caught.value) == (f"cannot write {model}: No space left on device\nhint: check its folder and the disk")
    assert (model.read_bytes(), sorted(os.listdir(tmp_path))) == (before, ["made.lock", "model.keras"])


def test_no_damage_to_a_model_is_an_unknown_error(tmp_path: Path, lock: Path) -> None:
    model = keras(tmp_path / "model.keras", members=dict.fromkeys(MEMBERS, b"{}"))
    stamp(model, lock, whole=False)
    whole = model.read_bytes()
    stream = io.BytesIO(whole)
    outcomes = set()
    for place in range(len(MEMBERS) * 10, len(whole)):
        stream.getbuffer()[:] = whole
        stream.getbuffer()[place] ^= 0xFF
        model.write_bytes(stream.getvalue())
        try:
            outcomes.add("read" if read_stamp(model) else "no model")
        except LockfileError as error:
            outcomes.add("damaged" if "damaged" in error.message else "refused")
    assert outcomes == {"read", "damaged", "refused"}
