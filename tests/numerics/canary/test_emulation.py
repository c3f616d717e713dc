"""Another processor by emulation: what it is called, and what its /proc/cpuinfo says."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from envlock.guest import launch
from envlock.numerics.canary import emulation
from envlock.numerics.canary.canary_run import Settings
from envlock.numerics.canary.emulation import find_emulator, find_model, list_models, open_emulation
from envlock.numerics.canary.processor_identity import decode_signature, render_cpuinfo
from envlock.runtime.errors import FactError, UsageError
from tests.conftest import absent

HASWELL = {
    "0.0": [0xD, 0x756E6547, 0x6C65746E, 0x49656E69],
    "1.0": [0x306C4, 0x800, 0xFED83203, 0x78BFBFD],
    "7.0": [0x0, 0x3A9, 0x0, 0x0],
    "7.1": [0, 0, 0, 0],
    "80000001.0": [0x306C4, 0x0, 0x21, 0x28100800],
    "80000002.0": [0x65746E49, 0x6F43206C, 0x50206572, 0x65636F72],
    "80000003.0": [0x726F7373, 0x61482820, 0x6C657773, 0x296C],
    "80000004.0": [0, 0, 0, 0],
}
"""As QEMU 7.2 answers for its model Haswell."""


def test_the_answer_of_cpuid_becomes_what_linux_would_write() -> None:
    text = render_cpuinfo(HASWELL, 2)
    first, second = text.split("\n\n")
    assert (first.splitlines()[0], second.splitlines()[0]) == ("processor\t: 0", "processor\t: 1")
    assert first.splitlines()[1:] == [
        "vendor_id\t: GenuineIntel",
        "cpu family\t: 6",
        "model\t\t: 60",
        "model name\t: Intel Core Processor (Haswell)",
        "stepping\t: 4",
        "flags\t\t: sse sse2 pni pclmulqdq ssse3 fma sse4_1 sse4_2 movbe popcnt aes xsave avx f16c bmi1 avx2 bmi2 abm",
    ]


@pytest.mark.parametrize(
    ("signature", "family", "model"),
    [(0x306C4, 6, 60), (0x800F12, 23, 1), (0x0543, 5, 4), (0xA20F10, 25, 33)],
)
def test_the_signature_has_family_and_model(signature: int, family: int, model: int) -> None:
    """Haswell, Zen, a Pentium, whose upper parts do not count, and Zen 3."""
    assert decode_signature(signature) == (family, model)


def test_a_model_is_found_in_any_case() -> None:
    names = ["Haswell", "Haswell-v4", "EPYC", "EPYC-Rome"]
    assert find_model("haswell", names) == "Haswell"
    assert find_model("EPYC", names) == "EPYC"
    with pytest.raises(UsageError) as caught:
        find_model("epyx", names)
    assert caught.value.hint == "such as EPYC, EPYC-Rome"
    with pytest.raises(UsageError) as caught:
        find_model("zen", names)
    assert caught.value.hint == "such as Haswell, Haswell-v4, EPYC, EPYC-Rome"


def test_without_an_emulator_there_is_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with pytest.raises(UsageError, match="QEMU's user-mode emulator is missing"):
        find_emulator()
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(UsageError, match="on x86_64 only, and this is aarch64"):
        find_emulator()


def test_an_emulator_that_does_not_answer_is_no_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulation, "find_emulator", lambda: Path("/usr/bin/qemu-x86_64"))
    monkeypatch.setattr(emulation, "list_models", lambda emulator: ["Haswell"])
    ended = launch.Ended(-11, b"", b"Error: no\n", 1.0)
    monkeypatch.setattr(launch, "ask_emulated", lambda *_, **__: ended)
    with (
        pytest.raises(FactError, match="qemu-x86_64 was ended by SIGSEGV as a Haswell"),
        open_emulation("haswell", None),
    ):
        pass


def test_the_battery_finds_its_variables_set_already() -> None:
    """Or it would begin again, outside of the emulator."""
    variables = {"CUDA_VISIBLE_DEVICES": "-1", "TF_DETERMINISTIC_OPS": "0"}
    assert Settings(None, None).variables == {"CUDA_VISIBLE_DEVICES": "-1"}
    assert Settings(None, determinism=False).variables == variables
    assert Settings().variables["OPENBLAS_NUM_THREADS"] == "1"


@pytest.mark.slow
@pytest.mark.processes
def test_a_program_runs_on_another_processor() -> None:
    if not any(map(shutil.which, emulation.PROGRAMS)):
        absent("QEMU's user-mode emulator is missing: apt-get install qemu-user")
    emulator = find_emulator()
    assert {"Haswell", "Nehalem", "EPYC"} <= set(list_models(emulator))
    program = (
        "import json,os,sys\nasked=json.loads(sys.argv[1])\n"
        "text=open('/proc/cpuinfo').read()\n"
        "os.write(1,(asked['mark']+json.dumps({'text':text})).encode())\n"
    )
    with open_emulation("nehalem", None, {"ENVLOCK_TEST": "1"}) as found:
        assert found.model == "Nehalem"
        assert found.environ["ENVLOCK_TEST"] == "1"
        ended = found.ask(launch.build_text_arguments(program, {}), None)
    (answer,) = ended.answers
    assert "Nehalem" in answer["text"]
    assert "avx" not in answer["text"]
    native = subprocess.run(["cat", "/proc/cpuinfo"], capture_output=True, text=True, check=True)
    assert native.stdout != answer["text"]
