"""What stands in TensorFlow's CUDA wheel itself: for which GPUs it has code, and which variables and flags it names.

And which CUDA reads its PTX, by a table in NVIDIA's own wheel.
"""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import Version

from envlock.data.runtime_tables import load_cuda_table
from envlock.data.specifiers import matches_version
from envlock.diagnosis.fatbin import read_gpu_code
from envlock.runtime.errors import OutsideError
from envlock.runtime.release import minor, parse_release
from refresh.rows import Asked, Found, Row, columns
from refresh.tensorflow import choose, list_linux, list_newest
from refresh.web import Web

OLDEST = (2, 14)
LIBRARY = re.compile(r".*\.so(\.\d+)*")
PREFIXES = (b"TF_", b"TENSORFLOW_", b"XLA_", b"CUDNN_", b"xla_", b"tf_xla_")
WORD = re.compile(rb"[A-Za-z0-9_]+")
VARIABLE = re.compile(r"TF_[A-Z0-9_]+")
FLAG = re.compile(r"(tf_)?xla_[a-z0-9_]+")
ISA = re.compile(r'"(\d+\.\d+)": \((\d+), (\d+)\)')
READERS = ("tf-core", "tf-python", "xla")
"""Those whose code is in the wheel; `nobody` is said of a name that is in none."""
BUILT = "TF_FLAG_"
"""Such names are put together while TensorFlow runs."""
TELLING = re.compile(
    r"^TF_|determin|autotun|fast|precision|reduc|scatter|rng|nan|ftz|tf32|algorithm"
)
"""Of the names that are new, those that may change bits; XLA gets a hundred flags with each TensorFlow."""
CHUNK = 4 * 1024 * 1024


@dataclass(frozen=True)
class Wheel:
    """A wheel that was looked at.

    Attributes:
        version: of TensorFlow.
        name: of the file.
        targets: what all its fat binaries have code for.
        isa: the newest version of the PTX ISA in them.
        names: of variables and flags.
    """

    version: str
    name: str
    targets: list[str]
    isa: str
    names: frozenset[str]


def ask_code(web: Web, table: dict[str, Any], day: str) -> Found:
    """Return the row of tensorflow_builds.toml for the GPUs that the newest wheel has code for."""
    wheel = look(web)
    lines = [row["tensorflow"] for row in table["code"]]
    line = next((each for each in lines if minor(wheel.version) in each), [minor(wheel.version)])
    row = {"tensorflow": line, "targets": wheel.targets, "source": _cite(wheel, day)}
    return Found([Asked("code", [row], _get_line, _order)], moves_horizon=False)


def ask_ptx(web: Web, table: dict[str, Any], day: str) -> Found:
    """Return the row of compatibility.toml for the CUDA that reads the PTX of the newest wheel."""
    wheel = look(web)
    major, number = parse_release(wheel.version)[:2]
    lines = [row["tensorflow"] for row in table["ptx"]]
    line = next(
        (each for each in lines if matches_version(each, wheel.version)),
        [f">={major}.{number},<{major}.{number + 1}"],
    )
    cuda = {row.isa: row.cuda for row in load_cuda_table().ptx_isa}.get(wheel.isa)
    found = Found(moves_horizon=False)
    if cuda is None:
        found.decide = [
            f"PTX ISA {wheel.isa} of {wheel.name}: `ptx_isa` of cuda.toml lacks its CUDA"
        ]
        return found
    row = {"tensorflow": line, "cuda": cuda, "source": _cite(wheel, day)}
    found.lists = [Asked("ptx", [row], _get_line, lambda row: 0)]
    return found


def ask_isa(web: Web, table: dict[str, Any], day: str) -> Found:
    """Return the rows of cuda.toml for the CUDA that reads a version of the PTX ISA."""
    by_version = web.list_wheels("cuda-bindings")
    version = max(each for each in by_version if not each.is_prerelease)
    wheel = choose(list_linux(by_version[version]), version)
    oldest = parse_release(table["ptx_isa"][0]["isa"])
    source = f"ptx-utils: {wheel.name}, asked on {day}"
    rows = [
        {"isa": isa, "cuda": f"{major}.{number}", "source": source}
        for isa, major, number in ISA.findall(web.read_member(wheel, "/_ptx_utils.py"))
        if parse_release(isa) >= oldest
    ]
    if not rows:
        raise OutsideError(f"{wheel.name} has no table of the PTX ISA", hint="look at the wheel")
    asked = Asked("ptx_isa", rows, columns("isa"), lambda row: parse_release(row["isa"]))
    return Found([asked], through=max((row["isa"] for row in rows), key=parse_release))


def ask_names(web: Web, table: dict[str, Any], day: str) -> Found:
    """Return how far the variables and flags of environ.toml or determinism_variables.toml were looked for.

    They are compared with the newest wheel. What is new in it beside the wheel of the horizon is for a person.
    """
    wheel = look(web)
    found = Found(through=wheel.version)
    held = [row for row in [*table["variable"], *table.get("flag", [])] if "tensorflow" in row]
    for row in held:
        name, reader = row["name"].lstrip("-"), row.get("read_by", "xla")
        if (reader not in READERS and reader != "nobody") or name.startswith(BUILT):
            continue
        if matches_version(row["tensorflow"], wheel.version) != (name in wheel.names):
            which = "is not in" if name not in wheel.names else "is in"
            found.decide.append(
                f"{name} {which} {wheel.name}, but its row says {row['tensorflow']}"
            )
    if wheel.version != table["horizon"]["through"]:
        before = look(web, table["horizon"]["through"])
        known = {row["name"].lstrip("-") for row in held} | before.names
        kind = FLAG if "flag" in table else VARIABLE
        fresh = sorted(name for name in wheel.names - known if kind.fullmatch(name))
        telling = [name for name in fresh if TELLING.search(name)]
        if fresh:
            found.decide.append(
                f"{len(fresh)} new since {before.version}: what these do: {', '.join(telling) or 'none by its name'}"
            )
    # What a person has not decided yet is not checked yet.
    found.moves_horizon = not found.decide
    return found


def look(web: Web, wanted: str | None = None) -> Wheel:
    """Return what stands in the wheel of a version, the newest when not given.

    Raises:
        OutsideError: the index does not answer, or sends another file.
    """
    by_version = web.list_wheels("tensorflow")
    version = Version(wanted) if wanted else list_newest(by_version, OLDEST)[-1]
    file = choose(list_linux(by_version.get(version, [])), version)
    told = json.loads(web.examine(file, scan))
    return Wheel(str(version), file.name, told["targets"], told["isa"], frozenset(told["names"]))


def scan(file: Path) -> str:
    """Return what stands in the libraries and Python files of a wheel.

    Raises:
        ValueError, BadZipFile: the wheel is damaged, or has no GPU code.
    """
    names: set[str] = set()
    targets: list[set[str]] = []
    isa = (0, 0)
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if member.filename.endswith(".py"):
                names |= set(_list_names(archive.read(member), b"\"'= "))
            elif LIBRARY.fullmatch(member.filename):
                with (
                    tempfile.NamedTemporaryFile(dir=file.parent) as library,
                    archive.open(member) as stream,
                ):
                    rest = b""
                    while chunk := stream.read(CHUNK):
                        library.write(chunk)
                        names |= set(_list_names(rest + chunk, b"\0"))
                        rest = chunk[-200:]
                    library.flush()
                    code = read_gpu_code(library.name)
                if code is not None:
                    targets.append(set(code.list_targets()))
                    isa = max(isa, code.ptx_isa or isa)
    if not targets:
        raise ValueError("none of its libraries has GPU code")
    every = set.intersection(*targets)
    # A build info names only the second of the two.
    every -= {f"sm_{name.partition('_')[2]}" for name in every if name.startswith("compute_")}
    return json.dumps(
        {
            "targets": sorted(every, key=lambda name: int(name.partition("_")[2])),
            "isa": ".".join(map(str, isa)),
            "names": sorted(names),
        }
    )


def _list_names(data: bytes, ends: bytes) -> Iterator[str]:
    """Yield the names in a piece of a file that one of `ends` follows."""
    for prefix in PREFIXES:
        place = data.find(prefix)
        while place >= 0:
            match = WORD.match(data, place)
            assert match is not None  # the prefix is one
            starts = place == 0 or not WORD.match(data, place - 1, place)
            if starts and data[match.end() : match.end() + 1] in {bytes([end]) for end in ends}:
                yield match[0].decode()
            place = data.find(prefix, match.end())


def _cite(wheel: Wheel, day: str) -> str:
    return f"fatbin: {wheel.name}, asked on {day}"


def _get_line(row: Row) -> tuple[str, ...]:
    return tuple(row["tensorflow"])


def _order(row: Row) -> tuple[int, ...]:
    return parse_release(row["tensorflow"][0])
