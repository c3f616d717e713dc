"""Ask TensorFlow itself which CUDA libraries it gets, in a child process with a bounded wait.

libtensorflow_framework exports `cudnnGetVersion` and its like as wrappers that load the library through TensorFlow's
own loader. Calling them loads the library as the first operation would, so it is never done in the user's process.

Not for the start of a script: `json`, `subprocess` and `ctypes` are imported here, inside the functions, and the child
imports tensorflow (seconds).
"""

from __future__ import annotations

import sys

from envlock.runtime.facts import Unavailable
from envlock.runtime.report import ABSENT, DEEP, ERROR, UNKNOWN, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Union

    from envlock.runtime.host import Host

    Answers = Dict[str, Optional[str]]

TIMEOUT = 120.0  # seconds: a cold `import tensorflow` was seen to take 8, on a busy network disk far more
GRACE = 0.2  # seconds for each of terminate and kill; a task stuck in the driver answers to neither
_MARK = "envlock-answers:"

# (key, symbol, how): "value" returns the number, "pointer" writes it, "handle" writes it behind a null handle.
_ASK = (
    ("cudart", "cudaRuntimeGetVersion", "pointer"),
    ("cudnn", "cudnnGetVersion", "value"),
    ("nccl", "ncclGetVersion", "pointer"),
    ("cublas", "cublasGetVersion_v2", "handle"),
    ("cublasLt", "cublasLtGetVersion", "value"),
    ("cufft", "cufftGetVersion", "pointer"),
)

_CHILD = """
import ctypes, json, os, sys
path, asked, mark = json.loads(sys.argv[1])
sys.path[:] = path or sys.path
import tensorflow
library = ctypes.CDLL(os.path.join(os.path.dirname(tensorflow.__file__), "libtensorflow_framework.so.2"))
answers = {}
for key, symbol, how in asked:
    try:
        ask = getattr(library, symbol)
    except AttributeError:
        continue
    number = ctypes.c_int(0)
    if how == "value":
        ask.restype = ctypes.c_size_t
        answers[key] = ask()
    elif how == "pointer":
        answers[key] = 0 if ask(ctypes.byref(number)) else number.value
    else:
        answers[key] = 0 if ask(None, ctypes.byref(number)) else number.value
print(mark + json.dumps(answers), flush=True)
os._exit(0)
"""


def ask_tensorflow(host: Host, timeout: float = TIMEOUT, python: Optional[str] = None) -> Union[Answers, Unavailable]:
    """Return the version of each library that TensorFlow loads, None for one that it cannot load.

    The child starts with this process's start variables for the dynamic loader and its present ones otherwise. It
    waits at most `timeout` seconds, and 2 x 0.2 s more where the child does not die.

    Args:
        host: gives the variables and the import path.
        timeout: seconds.
        python: the interpreter; this one when not given.
    """
    import json
    import subprocess

    start = host.start_environ()
    environ = {name: value for name, value in host.environ.items() if not name.startswith("LD_")}
    environ.update({name: value for name, value in start.items() if name.startswith("LD_")})
    environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    path = host.path if python is None else None  # another interpreter has an import path of its own
    words = [python or sys.executable, "-c", _CHILD, json.dumps([path, _ASK, _MARK])]
    try:
        child = subprocess.Popen(
            words,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return Unavailable("the child process that asks TensorFlow could not be started", "child-not-started")
    try:
        output, _ = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        return _stop(child, timeout)
    if child.returncode != 0:
        return Unavailable(
            f"the child process that asks TensorFlow ended with status {child.returncode}", "child-failed"
        )
    line = output.decode("utf-8", "replace").rpartition(_MARK)[2].partition("\n")[0]
    try:
        numbers = json.loads(line)
        return {key: spell(key, int(number)) for key, number in numbers.items()}
    except (ValueError, TypeError, AttributeError):
        return Unavailable("the child process that asks TensorFlow gave no answer", "child-failed")


def _stop(child: Any, timeout: float) -> Unavailable:
    """End a child that did not answer; no wait here is unbounded."""
    import subprocess

    for end in (child.terminate, child.kill):
        end()
        try:
            child.wait(GRACE)
            break
        except subprocess.TimeoutExpired:
            continue
    if child.stdout is not None:
        child.stdout.close()
    return Unavailable(f"TensorFlow did not answer within {timeout:g} s", "child-timeout")


def spell(key: str, number: int) -> Optional[str]:
    """Return a library's version number as text, None for 0, which says that it could not be loaded.

    cuDNN counts major x 10000 + minor x 100 + patch from 9 on and major x 1000 before (cudnn_version.h), as NCCL does
    from 2.9 on (nccl.h); CUDA's runtime major x 1000 + minor x 10; cuFFT major x 1000 + minor x 100 + patch; cuBLAS
    major x 10000 + minor x 100 + patch.
    """
    if number <= 0:
        return None
    if key == "cudart":
        return f"{number // 1000}.{number % 1000 // 10}"
    thousands = key == "cufft" or (key in ("cudnn", "nccl") and number < 10000)
    unit = 1000 if thousands else 10000
    return f"{number // unit}.{number % unit // 100}.{number % 100}"


def contradictions(cuda: Mapping[str, Any], answers: Answers) -> List[Finding]:
    """Return a finding for every library on which the files and TensorFlow's own answer disagree.

    Args:
        cuda: the section `cuda` of the live facts, collected from files.
        answers: what `ask_tensorflow` gave. A library that something else loaded into *this* process first
            (`resolved_by` "loaded") is left out: the child has not got it.
    """
    found: List[Finding] = []
    for key, answer in answers.items():
        facts = cuda.get(key)
        if not isinstance(facts, dict) or facts.get("resolved_by") == "loaded" or facts.get("linkage") == "absent":
            continue
        usable = facts.get("version") if "problem" not in facts else None
        if "version" in facts and not _agree(usable, answer):
            found.append(_finding(f"cuda.{key}.version", usable, answer))
    return found


def unanswered(reason: Unavailable) -> Finding:
    """Return the finding that TensorFlow could not be asked."""
    return _finding("cuda", ABSENT, reason, UNKNOWN)


def _finding(path: str, expected: Any, actual: Any, severity: str = ERROR) -> Finding:
    return Finding(
        path,
        rule=DEEP,
        expected=expected,
        actual=actual,
        severity=severity,
        why="What TensorFlow's own loader gets is what computes; the answer of the files is not the whole story.",
        fix="Report it with the output of `envlock show`, and look for LD_AUDIT, a sitecustomize or a .pth file.",
        source="https://man7.org/linux/man-pages/man3/dlopen.3.html",
        weight=100,
    )


def _agree(version: Optional[str], answer: Optional[str]) -> bool:
    """Return whether two versions are equal as far as both tell."""
    if version is None or answer is None:
        return version is answer
    one, other = version.split("."), answer.split(".")
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]
