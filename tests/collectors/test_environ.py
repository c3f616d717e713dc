"""The variables: recorded by kind, never a secret, and honest about what can no longer be told."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envlock.data.runtime_tables import UNSET, Variable, load_variables
from envlock.lock.creation import capture
from envlock.runtime.collectors import take_snapshot
from envlock.runtime.collectors.environment_variables import collect, make_recordable
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host
from envlock.runtime.tables import table
from tests.machines import machine

NAMES = [row["name"] for row in table("environ") if "packages" not in row]
KINDS = ["bool", "integer", "word", "flags", "devices", "digest"]
ROWS = {row["name"]: row for row in table("environ")}


def kind_of(kind: str) -> dict[str, Any]:
    """Return a row of a kind, with some words."""
    return {"records": kind, "words": ["a", "b", "avx2", "#"]}


class Late(Host):
    """A process that has imported TensorFlow."""

    def has_imported(self, module: str) -> bool:
        return module == "tensorflow"


def hashed(value: str) -> str:
    return "sha256:" + sha256(value.encode("utf-8", "surrogateescape")).hexdigest()


def set_ones(found: dict[str, Any]) -> dict[str, Any]:
    assert list(found) == NAMES
    return {name: value for name, value in found.items() if value is not None}


@pytest.mark.parametrize(
    ("kind", "kept", "digested"),
    [
        ("bool", ["", "0", "1", "true", "False"], ["2", "yes", " 1", "SECRET"]),
        ("integer", ["", "0", "16", "-1"], ["1.5", "two", "1" * 24, "\u0663"]),
        ("word", ["", "AVX2", "a b", ":4096:8", "^a", "A=b,7;avx2"], ["x", "ab", "/a", "é", "$(a)", "a\tb", "1" * 13]),
        ("devices", ["", "0,1", "-1", "0, 2"], ["all", "0" * 65, "SECRET", "uuid", "mig-uuid", "0,1 SECRET 1"]),
        (
            "flags",
            [
                "",
                "--xla_dump_hlo_as_text",
                "--tf_xla_auto_jit=1 --xla_cpu_max_isa=avx2,a --xla_gpu_autotune_level=-0.5 --xla_dump_to=",
            ],
            [],
        ),
        ("digest", [""], ["a", "/usr/lib", "0"]),
    ],
)
def test_what_looks_like_its_kind_is_kept_and_all_else_is_a_digest(
    kind: str, kept: list[str], digested: list[str]
) -> None:
    assert [make_recordable(value, kind_of(kind)) for value in kept] == kept
    assert [make_recordable(value, kind_of(kind)) for value in digested] == [hashed(value) for value in digested]
    assert make_recordable(None, kind_of(kind)) is None


@pytest.mark.parametrize(
    ("value", "recorded"),
    [
        ("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "uuid"),
        ("0,gpu-8932f937", "uuid"),
        (" GPU-8932f937,SECRET", "uuid"),
        ("MIG-8932f937-d72c-4106-c12f-20bd9faed9f6", "mig-uuid"),
        ("GPU-1, MIG-GPU-8932f937/1/0", "mig-uuid"),
    ],
)
def test_a_uuid_leaves_not_even_a_digest_which_would_identify_the_gpu_as_well(value: str, recorded: str) -> None:
    assert make_recordable(value, kind_of("devices")) == recorded


@pytest.mark.parametrize(
    ("value", "recorded"),
    [
        ("  --xla_dump_hlo_as_text=1   --xla_dump_hlo_as_dot ", "--xla_dump_hlo_as_text=1 --xla_dump_hlo_as_dot"),
        (
            "--xla_dump_to=/home/SECRET --xla_dump_hlo_as_dot",
            f"--xla_dump_to={hashed('/home/SECRET')} --xla_dump_hlo_as_dot",
        ),
        ("--xla_dump_to=SECRET", f"--xla_dump_to={hashed('SECRET')}"),
        ("--xla_dump_to=" + "a," * 200, "--xla_dump_to=" + hashed("a," * 200)),
        ("--xla_unnamed", hashed("--xla_unnamed")),
        (
            "--xla_secret_of_mine=1 --xla_dump_hlo_as_dot=1",
            f"{hashed('--xla_secret_of_mine=1')} --xla_dump_hlo_as_dot=1",
        ),
        ("xla_dump_to=1", hashed("xla_dump_to=1")),
        ("SECRET --xla_dump_hlo_as_dot", f"{hashed('SECRET')} --xla_dump_hlo_as_dot"),
        ("--SECRET=1", hashed("--SECRET=1")),
        ("--xla_SECRET", hashed("--xla_SECRET")),
        ("--secret", hashed("--secret")),
        ("--xla_dump_hlo_as_text$b=1", hashed("--xla_dump_hlo_as_text$b=1")),
        ("--", hashed("--")),
        ("--é", hashed("--é")),
    ],
)
def test_flags_are_recorded_one_by_one(value: str, recorded: str) -> None:
    assert make_recordable(value, kind_of("flags")) == recorded


@given(kind=st.sampled_from(KINDS), value=st.text(st.characters() | st.sampled_from(" -=_,:;\x1b\udcff"), max_size=80))
def test_what_is_recorded_is_printable_ascii(kind: str, value: str) -> None:
    told = make_recordable(value.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape"), kind_of(kind))
    assert told is not None
    assert (told.isascii(), told.isprintable()) == (True, True)


@given(kind=st.sampled_from(KINDS), left=st.text(max_size=30), right=st.text(max_size=30))
def test_two_values_are_recorded_as_two(kind: str, left: str, right: str) -> None:
    same = left.split() == right.split() if kind == "flags" else left == right
    assert (make_recordable(left, kind_of(kind)) == make_recordable(right, kind_of(kind))) is same


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CUBLAS_WORKSPACE_CONFIG", ":4096:2:16:8"),
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
        ("DNNL_MAX_CPU_ISA", "AVX512_CORE_VNNI"),
        ("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX2,-FMA:glibc.malloc.tcache_count=0"),
        ("KERAS_BACKEND", "jax"),
        ("MKL_CBWR", "AVX2,STRICT"),
        ("NCCL_ALGO", "^Tree,nvlstree"),
        ("NCCL_ALGO", "allreduce:tree,ring;broadcast:ring"),
        ("NCCL_PROTO", "LL,LL128,Simple"),
        ("NPY_DISABLE_CPU_FEATURES", "AVX512_SKX AVX2,FMA3"),
        ("ONEDNN_CPU_ISA_HINTS", "PREFER_YMM"),
        ("ONEDNN_DEFAULT_FPMATH_MODE", "BF16"),
        ("ONEDNN_MAX_CPU_ISA", "avx2"),
        ("OPENBLAS_CORETYPE", "Haswell"),
        ("OPENBLAS_CORETYPE", "SkylakeX"),
        ("TF_FUNCTION_JIT_COMPILE_DEFAULT", "true"),
        ("TF_GPU_ALLOCATOR", "cuda_malloc_async"),
        ("TF_SET_ONEDNN_FPMATH_MODE", "BF16"),
        ("TF_USE_LEGACY_KERAS", "True"),
        ("TF_XLA_FLAGS", "--tf_xla_auto_jit=fusible --tf_xla_cpu_global_jit"),
        ("TF_XLA_FLAGS", "--tf_xla_auto_jit=single-gpu(2)"),
        ("XLA_FLAGS", "--xla_cpu_max_isa=AVX2 --xla_gpu_autotune_level=0 --xla_cpu_enable_fast_math=false"),
        ("XLA_FLAGS", "--xla_gpu_enable_command_buffer=FUSION,CUBLAS"),
    ],
)
def test_what_a_variable_takes_is_kept(name: str, value: str) -> None:
    assert make_recordable(value, ROWS[name]) == value


@pytest.mark.parametrize(("name", "recorded"), [("KERAS_MAX_EPOCHS", "10"), ("NCCL_MIN_NCHANNELS", "010")])
def test_leading_zeros_are_dropped_where_no_reader_takes_them_for_octal(name: str, recorded: str) -> None:
    assert make_recordable("010", ROWS[name]) == recorded


@pytest.mark.parametrize("row", [row for row in load_variables() if row.same], ids=lambda row: row.name)
def test_what_means_the_same_is_recorded_as_it_is(row: Variable) -> None:
    values = [value for group in row.same for value in group if value != UNSET]
    assert [make_recordable(value, ROWS[row.name]) for value in values] == values


@pytest.mark.parametrize(
    "secret", ["ghp_0123456789abcdefMARKERSECRET", "MARKERSECRET", "hunter2", "a:b:MARKER", "0,MARKER"]
)
def test_a_secret_in_any_variable_is_a_digest(secret: str) -> None:
    assert {name for name in NAMES if make_recordable(secret, ROWS[name]) != hashed(secret)} == set()
    for flag in ("--xla_dump_to=", "--tf_xla_clustering_fuel="):
        told = {name: make_recordable(flag + secret, ROWS[name]) for name in NAMES}
        fine = (hashed(flag + secret), flag + hashed(secret))
        assert {name: text for name, text in told.items() if text not in fine} == {}


def test_only_variables_of_the_table_are_looked_at(tmp_path: Path) -> None:
    host = machine(tmp_path, environ={"AWS_SECRET_ACCESS_KEY": "x", "TF_NO_SUCH": "1", "TF_DETERMINISTIC_OPS": "1"})
    assert set_ones(collect(host)) == {"TF_DETERMINISTIC_OPS": "1"}


def test_a_variable_is_taken_as_it_is_now_before_tensorflow_is_imported(tmp_path: Path) -> None:
    host = machine(tmp_path, environ={"TF_DETERMINISTIC_OPS": "1"}, started_with={"TF_DETERMINISTIC_OPS": "0"})
    assert set_ones(collect(host)) == {"TF_DETERMINISTIC_OPS": "1"}


@pytest.mark.parametrize("host_type", [Host, Late])
def test_the_loaders_variables_are_taken_as_the_process_was_started(host_type: type[Host]) -> None:
    host = host_type("/", {"LD_PRELOAD": "now.so"}, [], {"GLIBC_TUNABLES": "glibc.cpu.x86_hwcaps=-AVX2"})
    assert set_ones(collect(host)) == {"GLIBC_TUNABLES": "glibc.cpu.x86_hwcaps=-AVX2"}


@pytest.mark.parametrize(("at_start", "fact"), [("7", "7"), ("random", None), ("", None), (None, None)])
def test_the_hash_seed_is_that_of_the_start(at_start: str | None, fact: str | None) -> None:
    """Python reads it once; what a script sets later changes nothing."""
    started = {} if at_start is None else {"PYTHONHASHSEED": at_start}
    assert collect(Host("/", {"PYTHONHASHSEED": "8"}, [], started))["PYTHONHASHSEED"] == fact


@pytest.mark.parametrize(
    ("at_start", "now", "was", "is_now"),
    [
        ({}, {"OMP_NUM_THREADS": "1"}, "unset", "1"),
        ({"OMP_NUM_THREADS": "1"}, {}, "1", "unset"),
        ({"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "2"}, "1", "2"),
        ({"OMP_NUM_THREADS": "a b"}, {"OMP_NUM_THREADS": "1"}, hashed("a b"), "1"),
        ({"TF_DETERMINISTIC_OPS": ""}, {}, "empty", "unset"),
        (
            {"XLA_FLAGS": "--xla_dump_hlo_as_text " * 40},
            {"XLA_FLAGS": "--xla_dump_hlo_as_dot"},
            ("--xla_dump_hlo_as_text " * 10)[:200] + "...",
            "--xla_dump_hlo_as_dot",
        ),
    ],
)
def test_a_variable_changed_after_tensorflow_was_imported_cannot_be_told(
    at_start: dict[str, str], now: dict[str, str], was: str, is_now: str
) -> None:
    reason = (
        f"it was {was} when the process started and is {is_now} now; TensorFlow is imported and may have read either "
        "value: set it before the process starts, or call envlock before `import tensorflow`"
    )
    found = set_ones(collect(Late("/", now, [], at_start)))
    assert found == {next(iter(at_start or now)): Unavailable(reason, "changed-after-start")}


def test_a_variable_that_did_not_change_can_be_told_with_tensorflow_imported() -> None:
    assert set_ones(collect(Late("/", {"OMP_NUM_THREADS": "1"}, [], {"OMP_NUM_THREADS": "1"}))) == {
        "OMP_NUM_THREADS": "1"
    }


def test_what_the_process_was_started_with_is_read_from_the_kernel(tmp_path: Path) -> None:
    host = Host(str(tmp_path), {"A": "now"}, [])
    machine(tmp_path, files={"proc/self/environ": "A=1\0B=x=y\0\0garbage\0C=\0"})
    assert host.start_environ() == {"A": "1", "B": "x=y", "C": ""}


def test_where_the_kernel_does_not_tell_it_is_what_is_set_now(tmp_path: Path) -> None:
    assert Host(str(tmp_path), {"A": "now"}, []).start_environ() == {"A": "now"}
    (tmp_path / "proc/self/environ").mkdir(parents=True)  # to root, too, reading it is an error
    assert Host(str(tmp_path), {"A": "now"}, []).start_environ() == {"A": "now"}


@pytest.mark.parametrize("left", ["\0" * 40, "\0\0B=2\0", "the title\0\0\0", "A=1\0B\0\0"])
def test_a_process_that_has_set_its_title_has_what_is_set_now(tmp_path: Path, left: str) -> None:
    machine(tmp_path, files={"proc/self/environ": left})
    assert Host(str(tmp_path), {"A": "now"}, []).start_environ() == {"A": "now"}


@pytest.mark.processes
@pytest.mark.parametrize("title", ["None", "'a title'"])
def test_a_process_was_started_with_its_variables(title: str) -> None:
    """By a real kernel, and by the library that processes set their title with."""
    code = f"import setproctitle; setproctitle.setproctitle({title}) if {title} else None\n"
    code += "from envlock.runtime.host import Host; print(sorted(Host().start_environ()))"
    environ = {"PATH": os.environ["PATH"], "LC_CTYPE": "C.UTF-8"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout) == ("", "['LC_CTYPE', 'PATH']\n")


def test_many_long_flags_are_still_a_fact(tmp_path: Path) -> None:
    """A text too long for a lock would be unavailable on both sides, and so equal to any other such text."""
    first = " ".join(f"--xla_dump_to_{number}=/a/long/path" for number in range(20))
    locks = [
        capture(live=take_snapshot(machine(tmp_path, environ={"XLA_FLAGS": flags})))
        for flags in (first, first + " --xla_dump_hlo_as_dot")
    ]
    assert [lock.facts.environ and lock.facts.environ["XLA_FLAGS"] for lock in locks] == [
        hashed(first),
        hashed(first + " --xla_dump_hlo_as_dot"),
    ]
    assert [lock.unavailable for lock in locks] == [{}, {}]


@pytest.mark.parametrize(
    ("one", "other", "are_equal"),
    [
        ("--xla_a=1  --xla_b=2 ", " --xla_a=1 --xla_b=2", True),
        ("--xla_a='x  y'", "--xla_a='x y'", False),
        ('--xla_a="x \\"  y"', '--xla_a="x \\" y"', False),
        ("--xla_a='x y'  --xla_b=2", "--xla_a='x y' --xla_b=2", True),
        ("--xla_a=it's  --xla_b=2", "--xla_a=it's --xla_b=2", True),
    ],
)
def test_blanks_count_only_within_quotes(one: str, other: str, are_equal: bool) -> None:
    first, second = (collect(Host("/", {"XLA_FLAGS": flags}, [], {})) for flags in (one, other))
    assert (first["XLA_FLAGS"] == second["XLA_FLAGS"]) is are_equal


@pytest.mark.parametrize(
    "row", [row for row in table("environ") if "packages" in row], ids=lambda row: str(row["name"])
)
def test_a_variable_of_a_package_is_a_fact_where_the_package_is(tmp_path: Path, row: dict[str, Any]) -> None:
    environ = {row["name"]: "1"}
    assert row["name"] not in collect(machine(tmp_path, environ=environ))
    found = collect(Host(path=[str(site_of(tmp_path, row["packages"][-1]))], environ=environ))
    assert found[row["name"]] == make_recordable("1", row)


def site_of(tmp_path: Path, package: str) -> Path:
    folder = tmp_path / "site-packages"
    (folder / f"{package.replace('-', '_')}-1.0.dist-info").mkdir(parents=True)
    (folder / f"{package.replace('-', '_')}-1.0.dist-info/METADATA").write_text("Version: 1.0\n", encoding="utf-8")
    return folder
