"""Rows that are drawn: each takes a place among what a process has loaded or searches, and changes it.

`draw(seed, number, seen)` returns rows of the form of held.toml; the same seed and machine give the same rows. A seed is
a day, so that each day tries others. A row's label follows from its kind, before anything has run: what puts other
code into the process can change bits, what nothing reads cannot, and what one changed bit does is not known (`unknown`).
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]
BEFORE = "mkdir -p $S/path $S/lib $HOME; export PYTHONPATH=$S/path LD_LIBRARY_PATH=$S/lib"
"""The state that is locked: two search paths whose folders are empty."""
EFFECT = "import math; math.sin = (lambda f: lambda x: f(x) * (1 + 2**-52))(math.sin)"
HIDING = (
    "import os, sys, importlib.machinery as m; here = os.path.dirname(os.path.abspath(__file__)); "
    "s = m.PathFinder.find_spec(__name__, [p for p in sys.path if os.path.abspath(p) != here]); "
    "__path__ = s.submodule_search_locations or []; exec(s.loader.get_code(__name__)); " + EFFECT
)
"""A module that runs the one it hides, and something more."""
ROUNDING = "#include <fenv.h>\\n__attribute__((constructor)) static void f(void) { fesetround(FE_UPWARD); }"
LOADER = "ld-linux"  # the shell that prepares a row needs it as well
LARGE = 60 << 20  # bytes of a library that is not copied for a row
LOOK = """
import importlib.util, json, sys, tensorflow
maps = [line.split(maxsplit=5)[-1].strip() for line in open("/proc/self/maps") if "x" in line.split()[1]]
modules = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
print(json.dumps({
    "mapped": sorted({path for path in maps if path.startswith("/")}),
    "modules": {name: file for name, file in modules.items() if file and file.endswith(".py")},
    "standard": sorted(sys.stdlib_module_names),
    "sitecustomize": getattr(importlib.util.find_spec("sitecustomize"), "origin", None),
}))
"""


@dataclass(frozen=True)
class Seen:
    """What a process of the environment has loaded after `import tensorflow`.

    Attributes:
        libraries: libraries of the system, and of Python itself.
        packaged: libraries of packages.
        standard: files of the standard library that ran, by the module.
        modules: files of packages that ran, by the module.
        sitecustomize: the file that Python finds by this name; Debian's Python has one of its own, which hides any
            in site-packages.
    """

    libraries: tuple[str, ...]
    packaged: tuple[str, ...]
    standard: dict[str, str]
    modules: dict[str, str]
    sitecustomize: str | None


def look(python: Path) -> Seen:
    """Return what the interpreter of an environment loads with TensorFlow."""
    environ = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run([python, "-c", LOOK], env=environ, capture_output=True, check=True)
    found = json.loads(done.stdout.decode().splitlines()[-1])
    mapped = [path for path in found["mapped"] if LOADER not in path]
    small = [path for path in mapped if Path(path).stat().st_size < LARGE]
    files = found["modules"].items()
    is_standard = {*found["standard"]}
    return Seen(
        tuple(path for path in small if "/site-packages/" not in path),
        tuple(path for path in small if "/site-packages/" in path),
        {
            name: file
            for name, file in files
            if name.partition(".")[0] in is_standard and "/site-packages/" not in file
        },
        {name: file for name, file in files if "/site-packages/" in file},
        found["sitecustomize"],
    )


def draw(seed: str, number: int, seen: Seen) -> list[Row]:
    """Return different rows, in equal shares of each kind."""
    rng = random.Random(seed)
    rows: dict[str, Row] = {}
    kinds = list(KINDS.items())
    for turn in range(20 * number):
        name, make = kinds[turn % len(kinds)]
        row = make(rng, seen)
        rows.setdefault(row["id"], {"class": name, "before": BEFORE, "probe": "everything", **row})
        if len(rows) == number:
            break
    return list(rows.values())


def _change_standard(rng: random.Random, seen: Seen) -> Row:
    name = rng.choice(sorted(seen.standard))
    path = seen.standard[name]
    return {
        "id": f"the standard library's {name} does something more",
        "moves": True,
        "apart": "system",
        "after": f"{BEFORE}; over {Path(path).parent}; echo '{EFFECT}' >> {path}",
    }


def _change_module(rng: random.Random, seen: Seen) -> Row:
    name = rng.choice(sorted(seen.modules))
    inner = seen.modules[name].partition("/site-packages/")[2]
    return {
        "id": f"{name} of a package does something more",
        "moves": True,
        "apart": "environment",
        "deep": True,
        "after": f"{BEFORE}; own $SITE/{inner}; printf '\\n{EFFECT}\\n' >> $SITE/{inner}",
    }


def _change_library(rng: random.Random, seen: Seen) -> Row:
    path = rng.choice(seen.libraries)
    return {
        "id": f"{Path(path).name} brings another library along",
        "moves": True,
        "apart": "system",
        "after": f"{BEFORE}; joined {path} $S/joined; mount --bind $S/joined {path}",
    }


def _change_constant(rng: random.Random, seen: Seen) -> Row:
    path = rng.choice([each for each in seen.libraries if "/lib-dynload/" not in each])
    place = rng.random()
    return {
        "id": f"one bit of {Path(path).name}, {place:.4f} through its constants",
        "moves": "unknown",
        "apart": "system",
        "after": f"{BEFORE}; flipped {path} $S/flipped {place}; mount --bind $S/flipped {path}",
    }


def _change_packaged(rng: random.Random, seen: Seen) -> Row:
    inner = rng.choice(seen.packaged).partition("/site-packages/")[2]
    return {
        "id": f"{inner} of a package brings another library along",
        "moves": True,
        "apart": "environment",
        "after": f"{BEFORE}; joined $SITE/{inner} $S/joined; rm $SITE/{inner}; cp $S/joined $SITE/{inner}",
    }


SITES = {
    "the folder of PYTHONPATH": "$S/path",
    "site-packages": "$SITE",
    "the script's folder": "$S/work",
}
LIBRARIES = {
    "the folder of LD_LIBRARY_PATH": "$S/lib",
    "its folder for this processor": "$S/lib/glibc-hwcaps/x86-64-v2",
    "its folder for x86_64": "$S/lib/x86_64",
}
PLUGINS = {
    "site-packages": "$SITE",
    "the home folder's site-packages": "$HOME/.local/lib/python$VERSION/site-packages",
}
UNREAD = ("README.txt", "zz_nobody.py", "zz_nobody.so", "zz_nobody-1.0.data", "zz.cfg")


def _put(text: str, path: str) -> str:
    return f"{BEFORE}; mkdir -p {Path(path).parent}; echo '{text}' > {path}"


def _add_module(rng: random.Random, seen: Seen) -> Row:
    where, folder = rng.choice(list(SITES.items()))
    names = {name.partition(".")[0] for name in seen.standard}
    if folder == "$S/path":
        names |= {name.partition(".")[0] for name in seen.modules}
    name = rng.choice(sorted(names - {"__main__"}))
    return {
        "id": f"a module {name} appears in {where}",
        # site-packages comes after the standard library, and the script's folder only counts for what is not imported yet.
        "moves": folder != "$SITE" and "unknown",
        "apart": "environment",
        "after": _put(HIDING, f"{folder}/{name}.py"),
    }


def _add_startup(rng: random.Random, seen: Seen) -> Row:
    name = rng.choice(["sitecustomize.py", "usercustomize.py", "zz.pth", "zz/__init__.py"])
    where, folder = rng.choice(
        [("the folder of PYTHONPATH", "$S/path"), ("site-packages", "$SITE")]
    )
    runs = {
        "sitecustomize.py": folder == "$S/path" or seen.sitecustomize is None,
        "zz.pth": folder == "$SITE",
    }.get(name, False)
    return {
        "id": f"{name} appears in {where}",
        "moves": runs,
        "apart": "environment",
        "after": _put(EFFECT, f"{folder}/{name}"),
    }


def _add_library(rng: random.Random, seen: Seen) -> Row:
    where, folder = rng.choice(list(LIBRARIES.items()))
    names = [path for path in seen.libraries if path.startswith("/usr/lib/")]
    path = rng.choice(names)
    changed = rng.random() < 0.7
    words = "that brings another one along" if changed else "that is the system's own"
    made = f"joined {path} {folder}/$soname" if changed else f"cp {path} {folder}/$soname"
    return {
        "id": f"{Path(path).name} {words} appears in {where}",
        "moves": "unknown" if changed else False,  # not every folder counts on every system
        "after": f"{BEFORE}; mkdir -p {folder}; soname=$(soname {path}); {made}",
    }


def _add_plugin(rng: random.Random, _seen: Seen) -> Row:
    where, folder = rng.choice(list(PLUGINS.items()))
    name = rng.choice(["libp.so", "p.so", "libzz_pluggable.so", "notes.txt"])
    plugins = f"{folder}/tensorflow-plugins"
    made = f"shim {plugins}/{name} '{ROUNDING}'"
    if name.endswith(".txt"):
        made = f"echo nothing > {plugins}/{name}"
    return {
        "id": f"{name} appears among the plug-ins of {where}",
        "moves": "unknown",
        "apart": "environment",
        "after": f"{BEFORE}; mkdir -p {plugins}; {made}",
    }


def _add_unread(rng: random.Random, _seen: Seen) -> Row:
    folders = {**SITES, **LIBRARIES, "the home folder": "$HOME", "the cache": "$HOME/.cache"}
    where, folder = rng.choice(list(folders.items()))
    name = rng.choice(UNREAD)
    return {
        "id": f"{name}, which nothing reads, appears in {where}",
        "moves": False,
        "apart": "environment",
        "after": _put("nothing", f"{folder}/{name}"),
    }


FILES = {
    "XLA_FLAGS": ("--xla_cpu_enable_fast_math=false", "--xla_cpu_enable_fast_math=true"),
    "TF_XLA_FLAGS": ("--tf_xla_auto_jit=0", "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"),
    "NCCL_CONF_FILE": ("NCCL_ALGO=Ring", "NCCL_ALGO=Tree"),
    "CUDNN_ERRATA_JSON_FILE": ('{"version": 1, "rules": []}', '{"version": 1, "rules": [{}]}'),
}


def _change_named(rng: random.Random, _seen: Seen) -> Row:
    name = rng.choice(sorted(FILES))
    first, second = FILES[name]
    changed = rng.random() < 0.6
    export = f"export {name}=$S/named"
    place = rng.choice(["named", "elsewhere/named", "named too"])
    where = "in place" if place == "named" else f"at {place}"
    return {
        "id": f"the file of {name}, {'other' if changed else 'same'} content, {where}",
        "moves": "unknown" if changed else False,
        "before": f"echo '{first}' > $S/named; {export}",
        "after": f'mkdir -p $S/elsewhere; echo \'{second if changed else first}\' > "$S/{place}"; export {name}="$S/{place}"',
    }


OPTIONS: dict[str, bool | str] = {
    "-O": True,
    "-OO": True,
    "-R": True,
    "-E": True,  # it ignores PYTHONHASHSEED
    "-I": True,
    "-B": False,
    "-b": False,
    "-q": False,
    "-u": False,
    "-s": False,
    "-W ignore": False,
    "-X faulthandler": False,
    "-X importtime": False,
    "-X int_max_str_digits=5000": False,
    "-X no_debug_ranges": False,
    "-X frozen_modules=off": False,
    "-X utf8=0": "unknown",
    "-X dev": "unknown",
    "-P": "unknown",
}


def _add_option(rng: random.Random, _seen: Seen) -> Row:
    option, moves = rng.choice(list(OPTIONS.items()))
    return {
        "id": f"python {option}",
        "moves": moves,
        "after": f"{BEFORE}; options='{option}'",
    }


KINDS: dict[str, Callable[[random.Random, Seen], Row]] = {
    "standard": _change_standard,
    "library": _change_library,
    "constant": _change_constant,
    "packaged": _change_packaged,
    "module": _add_module,
    "startup": _add_startup,
    "search": _add_library,
    "plug-in": _add_plugin,
    "unread": _add_unread,
    "named": _change_named,
    "option": _add_option,
    "package": _change_module,
}
"""Who makes the rows of each kind."""
