"""Change what a variable names, or what no variable names, and see whether envlock notices.

    python benchmarks/held.py PYTHON [--only TEXT] [--jobs N]

PYTHON is the interpreter of a virtual environment with TensorFlow, scikit-learn and envlock. Each row of
oracle/held.toml is a pair of states: the first is locked, and a program computes in it twice; in the second,
`assert_locked()` is asked on line 1 of the same program (or `envlock verify --deep` before it). A table of
the rows is printed. Exit code 1: bits changed, or the label says that they can, and the verdict was a match; or
nothing can change, and it was refused.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import tomllib

HERE = Path(__file__).parent / "oracle"
TIMEOUT = 600  # seconds
PRELUDE = r"""
set -eu
via= options= PY=$ENV/bin/python
shim() { rm -f "$1"; printf '%b' "$2" > $S/shim.c; cc -O1 -shared -fPIC -o "$1" $S/shim.c -lm; }
edited() { python3 - "$1" "$2" <<'END'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
place = data.index(struct.pack("<d", -0.16666666666666666))
data[place] ^= 1
open(sys.argv[2], "wb").write(data)
END
}
planted() {
mkdir $S/plant; FAKE=$S/plant/$(basename $1); echo "$2" > $FAKE; PYTHONPATH= $PY - "$1" $FAKE <<'END'
import importlib._bootstrap_external as b, importlib.util, os, sys
real, fake = sys.argv[1:]
status = os.stat(real)
code = compile(open(fake).read(), real, "exec")
target = importlib.util.cache_from_source(real)
os.makedirs(os.path.dirname(target), exist_ok=True)
open(target, "wb").write(b._code_to_timestamp_pyc(code, int(status.st_mtime), status.st_size))
END
}
over() { mkdir -p $S/upper $S/work; mount -t overlay overlay -o lowerdir=$1,upperdir=$S/upper,workdir=$S/work $1; }
"""
ASK = """
import hashlib, io, json, os, sys
lock, probe, *asked = sys.argv[1:]
said = {}
if asked:
    import envlock
    for policy in ("strict", "bits"):
        try:
            report = envlock.assert_locked(lock, policy)
        except envlock.EnvironmentMismatch as refusal:
            report = refusal.report
        said[policy] = {"match": report.match, "where": sorted(
            str(each.where) for each in report.findings if each.severity in report.breaking
        ), "told": sorted(str(each.where) for each in report.findings if each.severity == "info")}
out, sys.stdout = sys.stdout, io.StringIO()
try:
    exec(probe, {"__name__": "__main__"})
    bits = hashlib.sha256(sys.stdout.getvalue().encode()).hexdigest()[:12]
except Exception as error:
    bits = f"{type(error).__name__}: {error}"[:80]
out.write(json.dumps({"said": said, "bits": bits}) + "\\n")
out.flush()
os._exit(0)
"""


def main() -> int:
    """Ask every row, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("python", type=Path, help="interpreter of a virtual environment")
    parser.add_argument("--only", action="append", default=[], help="rows with this text")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    with (HERE / "held.toml").open("rb") as file:
        table = tomllib.load(file)
    rows = [
        row
        for row in table["row"]
        if not options.only or any(text in f"{row['class']}: {row['id']}" for text in options.only)
    ]
    environment = options.python.absolute().parent.parent
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(options.jobs) as pool:
        answers = pool.map(lambda row: ask(row, environment, table["probe"][row["probe"]]), rows)
        for row, answer in zip(rows, answers, strict=True):
            cell = judge(row, answer)
            counts[cell] += 1
            print(f"{cell:28} {row['class']:10} {row['id']}: {describe(answer)}", flush=True)
    print()
    for cell, number in sorted(counts.items()):
        print(f"{number:4} {cell}")
    return int(any(cell.startswith(("FALSE", "RED", "broken")) for cell in counts))


def judge(row: dict[str, Any], answer: dict[str, Any]) -> str:
    """Return the cell of the table for a row."""
    if "error" in answer:
        return "broken"
    matches = answer["match"]
    if row["moves"] == "reads":
        if not matches:
            return "RED: refused, only read"
        return "told" if answer["told"] else "FALSE GREEN: not told"
    moved = "changed" if answer["changed"] else "can change"
    if row["moves"] and matches:
        return f"FALSE GREEN: {moved}"
    if not row["moves"] and not matches:
        return "RED: refused, harmless"
    if not row["moves"] and answer["changed"]:
        return "broken"
    return "refused" if row["moves"] else "matched"


def describe(answer: dict[str, Any]) -> str:
    """Return what was said, in short."""
    if "error" in answer:
        return str(answer["error"])
    return f"{' '.join(answer['bits'])} {answer['where'] or answer['told'] or ''}"


def ask(row: dict[str, Any], environment: Path, probe: str) -> dict[str, Any]:
    """Return what was said of a row, and what was computed."""
    with tempfile.TemporaryDirectory(prefix="envlock-held-") as scratch:
        folder = Path(scratch)
        if row.get("apart") == "environment":
            subprocess.run(["cp", "-al", environment, folder / "env"], check=True)
            environment = folder / "env"
        try:
            return compare(row, environment, folder, probe)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired, ValueError) as error:
            words = str(getattr(error, "stderr", "")).strip().splitlines()
            return {"error": words[-1] if words else str(error)}


def compare(row: dict[str, Any], environment: Path, folder: Path, probe: str) -> dict[str, Any]:
    """Lock the first state, ask in the second, and return both answers."""
    lock = str(folder / "envlock.lock")
    (folder / "work").mkdir()
    program = folder / "work" / "ask.py"
    program.write_text(ASK, encoding="utf-8")

    def run(lines: str, *words: str, check: bool = True) -> str:
        command = ["bash", "-c", f'{PRELUDE}{lines}\nexec $via $PY $options "$@"', "-", *words]
        if row.get("apart") == "system":
            command = ["unshare", "-m", *command]
        done = subprocess.run(
            command,
            cwd=folder / "work",
            env=variables(environment, folder),
            capture_output=True,
            text=True,
            check=check,
            timeout=TIMEOUT,
        )
        return done.stdout

    def ask_here(lines: str, *asked: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(
            run(lines, str(program), lock, probe, *asked).splitlines()[-1]
        )
        return answer

    def find_deep(lines: str) -> list[str]:
        words = ("-m", "envlock", "verify", "--deep", "-p", "strict", "--format", "json", lock)
        findings = json.loads(run(lines, *words, check=False))["findings"]
        return [str(each["where"]) for each in findings if each["severity"] in ("error", "unknown")]

    before, after = row.get("before", ""), row.get("after", "")
    run(before, "-m", "envlock", "capture", "-q", "-o", lock)
    # What `before` makes in an environment of its own is there already.
    again = "" if row.get("apart") == "environment" else before
    first, second = (ask_here(again)["bits"] for _ in range(2))
    if first != second:
        return {"error": f"the first state does not repeat: {first} {second}"}
    if row.get("deep"):
        usual = find_deep(again)  # of an environment that is damaged already
        where = [each for each in find_deep(after) if each not in usual]
        return {
            "match": not where,
            "where": where[:4],
            "told": [],
            "changed": (bits := ask_here(after)["bits"]) != first,
            "bits": [first, bits],
        }
    found = ask_here(after, "ask")
    strict, bits = found["said"]["strict"], found["said"]["bits"]
    told = [path for path in strict["told"] if path.startswith("python.")]
    return {
        "match": strict["match"] or bits["match"],
        "where": strict["where"],
        "told": told,
        "changed": found["bits"] != first,
        "bits": [first, found["bits"]],
    }


def variables(environment: Path, folder: Path) -> dict[str, str]:
    """Return the variables of a row's processes."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    library = next((environment / "lib").glob("python3.*"))
    base = subprocess.run(
        [environment / "bin" / "python", "-c", "import os; print(os.path.dirname(os.__file__))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "-1",
        "PYTHONHASHSEED": "0",
        "S": str(folder),
        "ENV": str(environment),
        "SITE": str(library / "site-packages"),
        "LIBRARY": base,
        "VERSION": library.name[len("python") :],
    }


if __name__ == "__main__":
    sys.exit(main())
