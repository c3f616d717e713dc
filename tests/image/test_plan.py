"""What an image consists of: variables, wheels, notes, and the lock that it verifies itself by."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envlock import __version__
from envlock.image.additions import Additions, CopiedFile
from envlock.image.layers import Wheel
from envlock.image.plan import (
    Unknown,
    _find_recipe,
    base_plan,
    find_missing_patch,
    find_variables,
    list_program_lines,
    plan,
)
from envlock.runtime.errors import LockfileError, UsageError
from tests.image.plans import BASES, DIGEST, WHEELS, content, lock, model, planned, without
from tests.trees import put

SEEDS = ["random.seed(42)", "numpy.random.seed(42)"]
SWITCH = ["tf.keras.utils.set_random_seed(42)", "tf.config.experimental.enable_op_determinism()"]


def test_recipes() -> None:
    rows: list[tuple[str, str | None, dict[str, str], str | None]] = [
        ("1.13.2", None, {}, None),
        ("1.14.0", None, {"TF_CUDNN_DETERMINISTIC": "1"}, "framework-reproducibility"),
        ("1.15.5", None, {"TF_CUDNN_DETERMINISTIC": "1"}, "framework-reproducibility"),
        ("2.0.4", None, {"TF_CUDNN_DETERMINISTIC": "1"}, "framework-reproducibility"),
        ("2.1.0", None, {"TF_DETERMINISTIC_OPS": "1"}, None),
        ("2.4.4", None, {"TF_DETERMINISTIC_OPS": "1"}, None),
        ("2.5.0", None, {"TF_DETERMINISTIC_OPS": "1", "TF_CUDNN_USE_FRONTEND": "1"}, None),
        ("2.7.4", None, {"TF_DETERMINISTIC_OPS": "1", "TF_CUDNN_USE_FRONTEND": "1"}, None),
        ("2.8.0", None, {"TF_DETERMINISTIC_OPS": "1"}, None),
        ("2.21.0", None, {"TF_DETERMINISTIC_OPS": "1"}, None),
        ("1.13.1", "19.05", {}, None),
        ("1.13.1", "19.06", {"TF_DETERMINISTIC_OPS": "1"}, None),
        ("1.15.5+nv23.3", "23.03", {"TF_DETERMINISTIC_OPS": "1"}, None),
        ("2.17.0+nv25.2", "25.02", {"TF_DETERMINISTIC_OPS": "1"}, None),
    ]
    found = [
        (find_variables(_find_recipe(each), ngc), find_missing_patch(_find_recipe(each), ngc, {"numpy"}))
        for each, ngc, _, _ in rows
    ]
    assert found == [(environ, patch) for _, _, environ, patch in rows]
    patched = {
        each: find_missing_patch(_find_recipe(each), ngc, {"tensorflow-determinism"}) for each, ngc, _, _ in rows
    }
    assert patched == dict.fromkeys(patched)


def test_what_the_program_itself_must_do() -> None:
    rows: list[tuple[str | None, str | None, list[str], list[str]]] = [
        ("1.13.2", None, [], [*SEEDS, "tf.set_random_seed(42)"]),
        ("1.15.5", None, [], ["fwr13y.d9m.tensorflow.enable_determinism()", *SEEDS, "tf.set_random_seed(42)"]),
        ("1.15.5", None, ["tensorflow-determinism"], ["tfdeterminism.patch()", *SEEDS, "tf.set_random_seed(42)"]),
        ("2.7.4", None, [], ["tf.keras.utils.set_random_seed(42)"]),
        ("2.8.0", None, [], SWITCH),
        ("1.15.5+nv23.3", "23.03", [], [*SEEDS, "tf.set_random_seed(42)"]),
        ("2.17.0+nv25.2", "25.02", [], SWITCH),
        (None, "25.02", [], []),
    ]
    for version, ngc, packages, lines in rows:
        assert list_program_lines(_find_recipe(version), ngc, packages) == lines, version


@pytest.mark.parametrize(("ngc", "environ"), [("latest", {}), ("25abc", {"TF_DETERMINISTIC_OPS": "1"})])
def test_a_tag_of_nvidias_that_is_no_release(ngc: str, environ: dict[str, str]) -> None:
    assert find_variables(_find_recipe("2.17.0"), ngc) == environ


@pytest.mark.parametrize("tensorflow", [None, "nightly"])
def test_a_lock_without_a_version_of_tensorflow_has_no_recipe(tensorflow: str | None) -> None:
    assert _find_recipe(tensorflow) is None
    assert (find_variables(None, None), find_missing_patch(None, None, [])) == ({}, None)


# --- variables


def environ(held: dict[str, Any], **options: Any) -> dict[str, str]:
    return dict(planned("ngc", held, **options).environ)


HELD = without(lock(), "mine")
HASH_IT = (
    "run `envlock capture --hashes --build` to build its wheel from its sources, or install it from an index's wheel"
)


def test_the_lock_wins_over_the_recipe_and_that_is_said() -> None:
    made = planned("ngc", HELD)
    assert "TF_DETERMINISTIC_OPS" not in dict(made.environ)
    assert made.notes == ("TF_DETERMINISTIC_OPS: locked unset, but 1 would make this TensorFlow deterministic",)
    assert dict(made.environ)["PYTHONHASHSEED"] == "0"
    assert environ(put(HELD, "facts.environ.PYTHONHASHSEED", "7"))["PYTHONHASHSEED"] == "7"
    assert planned("ngc", put(HELD, "facts.environ.TF_DETERMINISTIC_OPS", "1")).notes == ()
    held = put(HELD, "facts.environ.TF_DETERMINISTIC_OPS", "0")
    assert planned("ngc", held).notes == (
        "TF_DETERMINISTIC_OPS: locked 0, but 1 would make this TensorFlow deterministic",
    )


def test_where_the_lock_is_silent_the_recipe_speaks() -> None:
    made = planned("ngc", put(HELD, "facts.environ.TF_DETERMINISTIC_OPS", ...))
    assert dict(made.environ)["TF_DETERMINISTIC_OPS"] == "1"
    assert made.notes == ()


def test_a_variable_that_the_base_has_as_locked_is_not_set_again() -> None:
    as_the_base = environ(put(HELD, "facts.environ.TF_ENABLE_ONEDNN_OPTS", "0"))
    assert "TF_ENABLE_ONEDNN_OPTS" not in as_the_base
    assert as_the_base["XLA_FLAGS"] == "--xla_cpu_multi_thread_eigen=false"
    assert environ(put(HELD, "facts.environ.TF_ENABLE_ONEDNN_OPTS", "1"))["TF_ENABLE_ONEDNN_OPTS"] == "1"


@pytest.mark.parametrize(
    "reference",
    [
        "nvcr.io/nvidia/tensorflow:23.03-tf1-py3@sha256:" + "0" * 64,
        "localhost:5000/nvidia/tensorflow:23.03-tf1-py3",
    ],
)
def test_in_an_image_of_nvidias_the_release_of_the_image_says_what_makes_it_deterministic(reference: str) -> None:
    held = put(put(HELD, "facts.tensorflow.version", "1.15.5"), "facts.environ", {})
    base = replace(BASES["ngc"], reference=reference)
    nvidias, plain = (plan(model(held), each, None) for each in (base, replace(base, route="captured")))
    assert dict(nvidias.environ) == {"PYTHONHASHSEED": "0", "TF_DETERMINISTIC_OPS": "1"}
    assert (nvidias.notes, nvidias.code) == ((), (*SEEDS, "tf.set_random_seed(42)"))
    assert dict(plain.environ) == {"PYTHONHASHSEED": "0", "TF_CUDNN_DETERMINISTIC": "1"}
    assert plain.notes == (
        "framework-reproducibility is not locked; without its patch this TensorFlow is not deterministic",
    )
    assert plain.code == ("fwr13y.d9m.tensorflow.enable_determinism()", *SEEDS, "tf.set_random_seed(42)")


def test_deterministic_amends_the_lock_that_the_image_is_held_to() -> None:
    made = planned("ngc", HELD, deterministic=True)
    assert dict(made.environ)["TF_DETERMINISTIC_OPS"] == "1"
    assert made.notes == ()
    shipped, as_locked = (json.loads(each.lock or b"")["facts"]["environ"] for each in (made, planned("ngc", HELD)))
    assert as_locked == HELD["facts"]["environ"]
    assert shipped == {**as_locked, "TF_DETERMINISTIC_OPS": "1"}
    assert (made.deterministic, planned("ngc", HELD).deterministic) == (True, False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LD_LIBRARY_PATH", "sha256:" + "0" * 64),
        ("CUDA_VISIBLE_DEVICES", "uuid"),
        ("CUDA_VISIBLE_DEVICES", "mig-uuid"),
    ],
)
def test_what_is_locked_without_its_value_is_not_set(name: str, value: str) -> None:
    held = put(put(HELD, "facts.environ.TF_DETERMINISTIC_OPS", ...), f"facts.environ.{name}", value)
    made = planned("ngc", held)
    assert name not in dict(made.environ)
    assert name not in dict(made.unset)  # the base's own value stays
    assert made.notes == (
        f"{name} is locked without its value, so the image does not set it; set it when the container starts",
    )
    unread = "whether the base has that value is unknown, as a dry run does not read its config"
    made = plan(model(held), replace(BASES["ngc"], environ=None), None)
    assert made.notes == (f"{name} is locked without its value, {unread}",)


def test_what_the_base_sets_and_the_lock_has_not_is_taken_away_by_its_value() -> None:
    made = planned("ngc", put(HELD, "facts.environ.TF_ENABLE_ONEDNN_OPTS", None))
    assert made.unset == (("LD_LIBRARY_PATH", "/usr/local/cuda/compat/lib"), ("TF_ENABLE_ONEDNN_OPTS", "0"))
    assert planned("ngc", HELD).unset == (("LD_LIBRARY_PATH", "/usr/local/cuda/compat/lib"),)
    other = replace(BASES["ngc"], environ=(("TF_DETERMINISTIC_OPS", "0"),))
    assert plan(model(HELD), other, None).unset == (("TF_DETERMINISTIC_OPS", "0"),)
    assert plan(model(HELD), other, None, deterministic=True).unset == ()  # it is set to another value


@pytest.mark.parametrize("value", ["$(id)", 'a"b', "/tmp/x.so", 5, True, ["a"]])
def test_a_value_that_no_capture_records_is_refused(value: Any) -> None:
    whole = model(HELD)
    facts = whole.facts.model_copy(update={"environ": {"LD_PRELOAD": value}})
    held = whole.model_copy(update={"facts": facts})  # not validated: the plan believes nothing
    with pytest.raises(LockfileError) as raised:
        plan(held, BASES["ngc"], None)
    assert raised.value.message == ("`facts.environ.LD_PRELOAD` cannot go into an image: invalid value of LD_PRELOAD")
    assert raised.value.hint == "restore the lockfile from version control, or create it again with `envlock capture`"


# --- wheels


def names(route: str) -> tuple[list[str], dict[str, str]]:
    made = planned(route)
    return [wheel.name for wheel in made.wheels], dict(made.skipped)


def test_over_nvidias_own_build_neither_tensorflow_nor_nvidias_libraries_are_installed() -> None:
    installed, skipped = names("ngc")
    assert installed == ["keras", "numpy", "nvidia-ml-py", "tensorflow-datasets"]
    assert skipped == {
        "tensorflow": "NVIDIA's own build in the base is never replaced",
        "nvidia-nccl-cu12": "the base has NVIDIA's libraries",
    }


def test_over_nvidias_cuda_tensorflow_is_installed() -> None:
    installed, skipped = names("cuda")
    assert "tensorflow" in installed
    assert list(skipped) == ["nvidia-nccl-cu12"]


def test_over_an_image_that_was_captured_its_own_tensorflow_stays() -> None:
    assert names("captured")[1]["tensorflow"] == "the base has it"


def test_on_a_plain_python_all_are_installed_by_the_name_and_the_digest_of_their_wheels() -> None:
    made = planned("wheels", put(HELD, "identity.packages.numpy.origin", "local"))
    data = {name: content(name) for name in WHEELS}
    assert made.skipped == ()
    assert made.wheels == tuple(
        Wheel(name, *WHEELS[name], hashlib.sha256(data[name]).hexdigest(), len(data[name]), name == "numpy")
        for name in sorted(WHEELS)
    )
    assert (made.layers[-1].name, [wheel.name for wheel in made.layers[-1].wheels]) == ("own", ["numpy"])


@pytest.mark.parametrize(
    ("place", "value", "refused"),
    [
        ("wheel.name", "a b.whl", "`a b.whl` is not a valid file"),
        ("wheel.sha256", "ab", "`ab` is not a valid digest"),
        ("version", None, "`None` is not a valid version"),
    ],
)
def test_what_is_wrong_with_a_wheel_is_said_by_its_path(place: str, value: Any, refused: str) -> None:
    whole = model(HELD)
    assert whole.identity is not None
    entry = whole.identity.packages["numpy"]
    holder, name = (entry.wheel, place.rpartition(".")[2]) if "." in place else (entry, place)
    assert holder is not None
    object.__setattr__(holder, name, value)  # not validated: the plan believes nothing
    with pytest.raises(LockfileError) as raised:
        plan(whole, BASES["wheels"], None)
    assert raised.value.message == f"`identity.packages.numpy.{place}` cannot go into an image: {refused}"


def test_a_wheel_that_is_not_at_hand_is_asked_for() -> None:
    with pytest.raises(UsageError) as raised:
        plan(model(HELD), BASES["wheels"], ["keras-3.5.0-py3-none-any.whl"])
    assert raised.value.message == "numpy and 4 more cannot be installed: its wheel is not in the wheelhouse"
    assert (
        raised.value.hint == "run `envlock export --wheelhouse wheelhouse`, or name another folder with `--wheelhouse`"
    )


def test_over_nvidias_own_build_only_the_projects_wheels_must_be_at_hand() -> None:
    skipped = dict(plan(model(HELD), BASES["ngc"], []).skipped)
    assert skipped["numpy"] == "its wheel is not in the wheelhouse"
    own = HELD
    for name in ("keras", "numpy"):
        own = put(own, f"identity.packages.{name}.origin", "local")
    with pytest.raises(UsageError) as raised:
        plan(model(own), BASES["ngc"], [])
    assert raised.value.message == "keras and 1 more cannot be installed: its wheel is not in the wheelhouse"


def test_a_package_without_a_wheel_cannot_be_installed_and_a_base_may_have_it() -> None:
    with pytest.raises(UsageError) as raised:
        plan(model(lock()), BASES["wheels"], None)
    assert raised.value.message == "mine cannot be installed: its wheel is unknown: it is an editable install"
    assert raised.value.hint == HASH_IT


@pytest.mark.parametrize(
    ("name", "overrides", "taken"),
    [
        ("pip", {}, True),
        ("setuptools", {}, False),
        ("pip", {"packages.pip.version": "exact"}, False),
        ("scipy", {}, False),
    ],
)
def test_what_no_policy_compares_is_left_out(name: str, overrides: dict[str, str], taken: bool) -> None:
    """A pip without a wheel is no reason not to build; what TensorFlow imports must be installed."""
    reason = "it has no RECORD"
    held = put(
        without(lock(), "mine"),
        f"identity.packages.{name}",
        {"version": "1.0", "content": None, "origin": "index", "proof": None, "wheel": None, "reason": reason},
    )
    held = put(put(held, f"facts.packages.{name}", {"version": "1.0"}), "policy.overrides", overrides)
    if taken:
        skipped = dict(plan(model(held), BASES["wheels"], None).skipped)
        assert skipped[name] == f"no policy compares it, and its wheel is unknown: {reason}"
        return
    with pytest.raises(UsageError) as raised:
        plan(model(held), BASES["wheels"], None)
    assert raised.value.message == f"{name} cannot be installed: its wheel is unknown: {reason}"
    assert raised.value.hint == HASH_IT


def test_of_a_package_that_was_overwritten_the_doctor_names_the_other_one() -> None:
    reason = "the installed files are not those of scipy-1.0-py3-none-any.whl: a.py has a different hash"
    fields = {"version": "1.0", "content": None, "origin": "index", "proof": None, "wheel": None, "reason": reason}
    held = put(
        put(without(lock(), "mine"), "identity.packages.scipy", fields), "facts.packages.scipy", {"version": "1.0"}
    )
    with pytest.raises(UsageError) as raised:
        plan(model(held), BASES["wheels"], None)
    assert raised.value.hint == (
        "`envlock doctor` names packages that overwrite each other's files; else `envlock verify --deep` prints the "
        "command that installs it again"
    )


def test_no_base_has_the_projects_own_package_and_one_may_have_a_local_wheel() -> None:
    with pytest.raises(UsageError) as raised:
        plan(model(lock()), BASES["ngc"], None)
    assert raised.value.message == "mine cannot be installed: its wheel is unknown: it is an editable install"
    local = put(lock(), "identity.packages.mine.origin", "local")
    assert dict(plan(model(local), BASES["ngc"], None).skipped)["mine"].startswith("its wheel is unknown")
    with pytest.raises(UsageError) as raised:
        plan(model(local), BASES["wheels"], None)
    assert raised.value.hint == HASH_IT


def test_a_project_that_is_not_in_its_image_is_told() -> None:
    held = {**HELD, "project": {"name": "mine"}}
    told = (
        "the project's own package, mine, is not in the image; a build takes it from its folder where it is installed"
    )
    assert told in planned("wheels", held).notes
    file = CopiedFile("train.py", "ab" * 32, False, Path("train.py"))
    assert told not in planned("wheels", held, added=Additions((file,))).notes


def test_a_lock_without_identity() -> None:
    held = model(lock(identity=...))
    with pytest.raises(UsageError) as raised:
        plan(held, BASES["wheels"], [])
    assert raised.value.message == "the lockfile does not name the wheels of its packages"
    assert raised.value.hint == "run `envlock capture --hashes`, and then `envlock export --wheelhouse wheelhouse`"
    shown = plan(held, BASES["wheels"], None, unknown=Unknown(("keras",)))
    assert (shown.wheels, shown.skipped, shown.unknown.wheels) == ((), (), ("keras",))
    assert plan(model(put(lock(identity=...), "facts.packages", {})), BASES["wheels"], []).wheels == ()
    made = plan(held, BASES["ngc"], None)
    assert (made.wheels, made.venv, made.python) == ((), "none", "python3")
    unknown = "the lockfile does not name its wheel; the base must have it"
    assert made.skipped == tuple((name, unknown) for name in sorted(lock()["facts"]["packages"]))


# --- the rest


def test_the_shipped_lock_is_free_of_what_a_build_adds_to_it() -> None:
    made = planned("ngc")
    assert planned("ngc", without(lock(image=..., base_image=...), "mine")).lock == made.lock
    shipped = json.loads(made.lock or b"")
    assert sorted(shipped) == ["$schema", "created_by", "facts", "identity", "lock_version", "policy", "unavailable"]


def test_a_plan_says_what_it_is_of() -> None:
    made = planned("wheels", HELD)
    assert (made.tensorflow, made.python_version, made.policy) == ("2.17.0+nv25.2", "3.11.7", "strict")
    bare = planned("wheels", put(put(HELD, "facts.tensorflow", None), "facts.python", None))
    assert (bare.tensorflow, bare.python_version, bare.code) == (None, None, ())


def test_an_old_python_is_not_verified() -> None:
    made = planned("wheels", put(HELD, "facts.python.version", "3.7.17"))
    assert (made.verified, made.entrypoint) == (False, ())


def test_the_bases_own_entrypoint_stays_in_front() -> None:
    verifying = ("/opt/venv/bin/python", "-B", "/opt/envlock/entrypoint.py")
    assert planned("ngc").entrypoint == ("/opt/nvidia/nvidia_entrypoint.sh", *verifying)
    assert planned("wheels").entrypoint == verifying
    unread = replace(planned("wheels"), base=replace(BASES["wheels"], entrypoint=None, command=None))
    assert (unread.entrypoint, unread.command) == (verifying, ("python3",))


def test_a_base_for_teams_has_no_lock() -> None:
    made = base_plan(BASES["ngc"])
    assert (made.lock, made.venv, dict(made.environ)) == (
        None,
        "none",
        {"PYTHONHASHSEED": "0", "TF_DETERMINISTIC_OPS": "1"},
    )
    assert dict(made.labels) == {
        "io.github.tf-envlock.route": "ngc",
        "io.github.tf-envlock.version": __version__,
        "org.opencontainers.image.base.digest": DIGEST,
        "org.opencontainers.image.base.name": "nvcr.io/nvidia/tensorflow:25.02-tf2-py3",
        "org.opencontainers.image.licenses": "LicenseRef-NVIDIA-Deep-Learning-Container",
    }


def test_labels_say_what_it_is_and_nothing_of_when() -> None:
    made = planned("wheels", without({**lock(), "project": {"name": "my-train"}}, "mine"))
    assert dict(made.labels) == {
        "io.github.tf-envlock.lock": f"sha256:{hashlib.sha256(made.lock or b'').hexdigest()}",
        "io.github.tf-envlock.policy": "strict",
        "io.github.tf-envlock.route": "wheels",
        "io.github.tf-envlock.version": __version__,
        "org.opencontainers.image.base.digest": DIGEST,
        "org.opencontainers.image.base.name": "docker.io/library/python:3.11.7-slim-bookworm",
        "org.opencontainers.image.title": "my-train",
    }


def test_what_the_project_adds_is_of_the_plan() -> None:
    added = Additions(user="7:8", command=("python", "train.py"))
    made = planned("wheels", HELD, added=added)
    assert (made.added, made.user, made.command) == (added, "7:8", ("python", "train.py"))


def test_labels_name_the_base_and_its_digest_where_that_is_known() -> None:
    name, _, digest = BASES["wheels"].reference.partition("@")
    tagged = replace(BASES["wheels"], reference=name)
    labels = [dict(plan(model(HELD), base, None).labels) for base in (BASES["wheels"], tagged)]
    assert [each["org.opencontainers.image.base.name"] for each in labels] == [name, name]
    assert [each.get("org.opencontainers.image.base.digest") for each in labels] == [digest, None]
