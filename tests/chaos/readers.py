"""Every reader of what others wrote, and what it must not do with a damaged input: the table of the attacks."""

from __future__ import annotations

import base64
import gzip
import io
import json
import shutil
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from envlock.diagnosis.fatbin import read_gpu_code
from envlock.evidence import results
from envlock.evidence.canary import canary_run as canary
from envlock.evidence.diverge.trace import Trace, TraceError
from envlock.evidence.repeat.outcome import Outcome, report
from envlock.fleet.statement import is_document, root_of
from envlock.guest import launch
from envlock.guest.environment import collect_markers
from envlock.image.bases import logins, manifest
from envlock.image.bases.manifest import RegistryError
from envlock.image.bases.reference import parse as reference_of
from envlock.image.bases.registry import Registry
from envlock.linter import files as lint_files
from envlock.lock import document as documents
from envlock.lock import settings as project_settings
from envlock.lock.paste_text import render_paste
from envlock.lock.pastes import read_paste
from envlock.packages import index
from envlock.packages.installation import Installation, collect_distributions, iter_requirements
from envlock.packages.web.client import Answer, Client, _split_credentials
from envlock.packages.web.web_errors import make_address_error
from envlock.packages.wheel_files import BadWheel, read_wheel_record
from envlock.reports import FORMATS, render
from envlock.runtime import lockfile
from envlock.runtime.collectors import Snapshot, take_snapshot
from envlock.runtime.errors import FactError, LockfileError, OutsideError, UsageError
from envlock.runtime.facts import is_same, iter_leaves, split
from envlock.runtime.files import record_rows
from envlock.runtime.gpu import devices, probe
from envlock.runtime.judgement import build_policy, judge
from envlock.runtime.loader.elf import find_exports, read_elf
from envlock.runtime.loader.ld_cache import LdCache
from envlock.runtime.policies import Policy
from envlock.runtime.tooling import find_tooling
from envlock.workflows.diff import diff
from envlock.workflows.fleet import check_fleet
from tests.chaos.attack import AcceptedError, Reader
from tests.chaos.damage import as_json, as_json_lines, bytewise, linewise, numbers
from tests.evidence.canaries import section, with_program
from tests.evidence.diverge.test_trace import HEADER as TRACE_HEADER
from tests.evidence.diverge.test_trace import MATMUL, written
from tests.evidence.test_results import END, HEADER, STEP
from tests.fakes.elf_writer import elf
from tests.fakes.fake_nvml import profile
from tests.fakes.replay import capture
from tests.fleet.ranks import rank
from tests.image.bases.registries import Shelf
from tests.lock.test_pastes import STATED
from tests.locks import document, encode
from tests.machines import complete
from tests.packages.wheels import make_wheel
from tests.runtime.loader.test_search import cache as ld_cache

SECRET = "s3cret"
HEX = "0a" * 32


# --- the lockfile


@cache
def live() -> Snapshot:
    """Return the machine that the sound lockfile is of."""
    with tempfile.TemporaryDirectory() as folder:
        found = take_snapshot(complete(Path(folder)))
    gpu, _ = split(devices.convert_answer({**capture(profile("h200__590__mig")), **ANSWERED}, wsl2=False))
    return Snapshot({**found.facts, "gpu": {"kernel_module": None, "surroundings": [], **gpu}}, found.unavailable)


ANSWERED = {
    "status": "ok",
    "library_version": None,
    "binding": {"distribution": "nvidia-ml-py", "version": "13.590.48", "problem": None},
}


@cache
def locks() -> list[bytes]:
    """Return a lockfile with facts only, and one with every section."""
    wheel = {"name": "numpy-1.26.4-py3-none-any.whl", "sha256": HEX, "size": 9, "url": None, "index": None}
    proven = {"version": "1.26.4", "content": HEX, "origin": "index", "proof": "file", "wheel": wheel, "reason": None}
    facts = {"facts": live().facts, "unavailable": live().unavailable}
    whole = document(
        **facts,
        identity={"packages": {"numpy": proven}},
        numerics=with_program(section()),
        project={"name": "mine", "commit": "0a" * 20, "dirty": False, "entry": ["train.py"], "held": {"numpy": "it"}},
        base_image={
            "name": "nvcr.io/nvidia/tensorflow",
            "tag": "25.02-tf2-py3",
            "digest": f"sha256:{HEX}",
            "manifest": None,
            "platform": "linux/amd64",
            "route": "ngc",
            "reason": "the same TensorFlow",
        },
        policy={"name": "same-arch", "overrides": {"cpu.*": "ignore", "packages.numpy.version": "at_least"}},
    )
    return [encode(document(**facts)), encode(whole)]


def read_lock(data: bytes, folder: Path) -> None:
    """Parse, judge, show in all formats, validate and dump; no changed fact may go unnamed, none be exact and fine."""
    read = lockfile.parse(data, "x.lock")
    found = judge(read, live())
    for format_ in FORMATS:
        text = render(found, format_)
        if not all(line.isprintable() for line in text.split("\n")):
            raise AcceptedError(f"a character that a terminal obeys is shown as {format_}")
    if not read.get("machines") and "name" not in read.get("project", {}):
        _all_named(read, {str(each.where) for each in found.findings})
    if found.match and any(each.rule == "exact" and each.severity == "info" for each in found.findings):
        raise AcceptedError("another value, although the rule is exact")
    lock = documents.validate(read, "x.lock")
    if documents.dump(documents.parse(documents.dump(lock), "x.lock")) != documents.dump(lock):
        raise AcceptedError("a lockfile that is another one when it is written again")


def read_pasted(data: bytes, folder: Path) -> None:
    """Read a pasted text and show what it states, as `envlock show` does."""
    paste = read_paste(data.decode("utf-8", "replace"))
    if paste is None:
        return
    facts = [(each.path, each.value, each.line) for each in paste.statements]
    lines = render_paste(paste.describe(), facts, "", disputed=paste.disputed, unversioned=paste.unversioned)
    shown = [line for _, line in lines]
    shown += [each.source for each in diff(paste, locks()[0]).findings]
    if not all(line.isprintable() for line in shown):
        raise AcceptedError("a character that a terminal obeys is shown")


def _is_younger(path: str, valued: set[str], rules: Policy) -> bool:
    """Return whether a fact, or its group, is judged only where the lockfile has a value, and it has none."""
    steps = path.split(".")
    nodes = [".".join(steps[:end]) for end in range(1, len(steps) + 1)]
    absent = [node for node in nodes if not any(f"{each}.".startswith(f"{node}.") for each in valued)]
    return any(
        rules.row(node)["rule"] in ("exact_where_asked", "exact_where_locked", "exact_or_unset") for node in absent
    )


def _all_named(read: dict[str, Any], named: set[str]) -> None:
    locked, here = dict(iter_leaves(read["facts"])), dict(iter_leaves(live().facts))
    rules = build_policy(read)
    valued = {path for path, value in locked.items() if value is not None}
    younger = {path for path in {*locked, *here} - valued if _is_younger(path, valued, rules)}
    for path in {*locked, *here} - {*read["unavailable"], *live().unavailable} - younger:
        known = path in locked and path in here and is_same(locked[path], here[path])
        steps = path.split(".")
        if not known and not any(".".join(steps[:end]) in named for end in range(1, len(steps) + 1)):
            below = any(each.startswith(f"{path}.") for each in named)
            untold = any(each.startswith(f"{path}.") or path.startswith(f"{each}.") for each in read["unavailable"])
            if not below and not untold:
                raise AcceptedError("a changed fact that no finding names")


# --- machines


def _machine_file(name: str, *seeds: str, damages: Any = (bytewise, linewise), inputs: int = 1500) -> Reader:
    """Return the reader of one file of a machine: whatever is in it, the facts fit into a lockfile."""

    def read(data: bytes, folder: Path) -> None:
        host = _machine(folder)
        path = _place(folder, name)
        before = path.read_bytes() if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent.suffix == ".dist-info":
            (path.parent / "METADATA").touch()  # without it, it is no package
        path.write_bytes(data)
        try:
            found = take_snapshot(host())
        finally:
            path.unlink() if before is None else path.write_bytes(before)
        _lockable(found)
        if b"://user:s3cret@" in data and SECRET in json.dumps(found.facts):
            raise AcceptedError("a secret")

    return Reader(lambda: [each.encode() for each in seeds], damages, read, (), inputs)


def _lockable(found: Snapshot) -> None:
    try:
        documents.validate(json.loads(encode(document(facts=found.facts, unavailable=found.unavailable))), "x.lock")
    except LockfileError as error:
        raise AcceptedError(f"facts that no lockfile can hold: {error.message.split('`')[1]}") from None


@cache
def _machine(folder: Path) -> Callable[[], Any]:
    whole = complete(folder)

    def fresh() -> Any:
        return type(whole)(whole.root, dict(whole.environ), list(whole.path), dict(whole.start_environ()))

    return fresh


def _place(folder: Path, name: str) -> Path:
    return folder / name


def read_metadata(data: bytes, folder: Path) -> None:
    """Read the METADATA of a package: who only envlock needs, what is required under which markers."""
    host = _machine(folder)
    path = folder / SITE / "mine-1.0.dist-info" / "METADATA"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    find_tooling(host())
    for found in collect_distributions(Installation(folder, (folder / SITE,), collect_markers())).values():
        list(iter_requirements(found, collect_markers()))


DIRECT_URL = '{"url": "https://user:s3cret@example.org/x.git", "vcs_info": {"vcs": "git", "commit_id": "%s"}}'
METADATA = """\
Metadata-Version: 2.4
Name: mine
Version: 1.0
License-Expression: MIT
Classifier: License :: OSI Approved :: MIT License
Provides-Extra: x
Requires-Dist: numpy>=1; extra == 'x'
Requires-Dist: keras[y] (>=2.0) ; python_version < '3.8' or platform_release >= '2'

Text.
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: x\nTag: cp311-cp311-manylinux_2_17_x86_64\nTag: py3-none-any\n"
KERAS = '{"backend": "tensorflow", "floatx": "float32", "epsilon": 1e-07, "image_data_format": "channels_last"}'
CPUINFO = (
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Xeon\nstepping\t: 8\n"
    "flags\t\t: fpu avx avx2 fma avx512f hypervisor\n"
)
BUILD_INFO = 'build_info = {"cuda_compute_capabilities": ["sm_60", "compute_90"], "cuda_version": "12.5.1"}\n'
NUMPY = 'CONFIG = {"blas": {"name": "openblas64", "version": "0.3.23", "openblas configuration": r"HASWELL"}}\n'


def lie(data: bytes, draw: Any) -> bytes:
    """Return the profile of a GPU that lies: other numbers, texts and codes, of the types that C has."""
    facts = json.loads(data)
    for _ in range(draw.choice((1, 2, 4))):
        nodes = [facts["system"], facts, *(each for each in facts["devices"] if each)]
        nodes += [one for each in facts["devices"] for one in each.get("mig_devices", ()) if one]
        node = draw.choice(nodes)
        errors = node.setdefault("errors", {})
        if draw.random() < 0.3:
            asked = draw.choice(QUESTIONS)
            errors[asked] = draw.choice((1, 2, 3, 4, 6, 7, 9, 13, 15, 18, 25, 999, 1234))
            continue
        name = draw.choice(
            [key for key in node if isinstance(node[key], str | int | list) and key != "symbols"] or ["x"]
        )
        if isinstance(node.get(name), str):
            node[name] = draw.choice(
                ("", "x" * 79, "\x1b[31m", "Straße", "535.x y", "\udcff", "\u202e", "1" * 70, "a b")
            )
        elif isinstance(node.get(name), int):
            node[name] = draw.choice((0, 1, 2, 2**31 - 1, 2**32 - 1, 77))
        elif name not in ("mig_devices", "devices") and isinstance(node.get(name), list):
            node[name] = [draw.choice((0, 1, 2**31 - 1, 2**32 - 1, 5)) for _ in node[name]]
    return json.dumps(facts).encode()


TEXTS = ("", "x" * 79, "\x1b[31m", "Straße", "535.x y", "\udcff", "\u202e", "1" * 70, "a b")
QUESTIONS = (
    *("nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion", "nvmlSystemGetCudaDriverVersion_v2"),
    *("nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetName", "nvmlDeviceGetUUID"),
    *("nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetMigMode", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetEccMode"),
    *("nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetNumGpuCores"),
    *("nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetAttributes_v2", "nvmlDeviceGetVbiosVersion"),
)


def read_gpu(data: bytes, folder: Path) -> None:
    """Ask a lying GPU; whatever it says, the facts fit into a lockfile."""
    answer = {**capture(json.loads(data)), **ANSWERED}
    _gpu_facts(answer)


def _gpu_facts(answer: dict[str, Any]) -> None:
    facts, untold = split(
        {"gpu": {"kernel_module": None, "surroundings": [], **devices.convert_answer(answer, wsl2=False)}}
    )
    _lockable(Snapshot(facts, untold))


def read_answer(data: bytes, folder: Path) -> None:
    """Read what the process that asks NVML has printed."""
    probe._judge(data, True, 0, 1.0)


def gpus() -> list[bytes]:
    """Return the profiles of whole GPUs, of a divided one, and of a machine where one is lost."""
    names = ("h100-80gb-hbm3__590__whole", "h200__590__mig", "h100-80gb-hbm3__535__lost-1-of-2")
    return [json.dumps(profile(name)).encode() for name in names]


def gpu_answers() -> list[bytes]:
    """Return what the process prints for a sound GPU."""
    return [json.dumps({**capture(profile("h200__590__mig")), **ANSWERED}).encode()]


# --- libraries


SOUND = elf("libx.so.1", needed=("liby.so.2",), runpath="$ORIGIN:/opt", build_id=bytes(20), symbols=("one", "two"))


def read_library(data: bytes, folder: Path) -> None:
    """Read a library as the loader, as `exported` and as the reader of GPU code."""
    path = folder / "libx.so.1"
    path.write_bytes(data)
    for ask in (read_elf, read_gpu_code, lambda name: find_exports(name, ["one", "four"])):
        with suppress(ValueError, OSError):
            ask(str(path))


def read_cache(data: bytes, folder: Path) -> None:
    """Look names up in the loader's cache."""
    known = LdCache(data, 62, ("x86-64-v3", "x86-64-v2"))
    for name in ("libfoo.so.1", "libbar.so", ""):
        found = known.lookup(name)
        if found is not None and "\0" in found:
            raise AcceptedError("a path with a NUL byte")


# --- results


def read_trace(data: bytes, folder: Path) -> None:
    """Read lines as a trace that a sound program packed."""
    list(Trace(io.BytesIO(gzip.compress(data, 1)), "a.trace"))


TRACE = written((MATMUL, [1, 2], [3]), ("loss", 5, "float32[]"), (MATMUL, [None, 2], [7]))


def read_packed(data: bytes, folder: Path) -> None:
    """Read a trace as it is on the disk: another one is never taken for the one that was written."""
    found = Trace(io.BytesIO(data), "a.trace")
    if (
        list(found) != list(Trace(io.BytesIO(TRACE), "a.trace"))
        or found.header.tensorflow != TRACE_HEADER["tensorflow"]
    ):
        raise AcceptedError("a changed trace")


def read_results(data: bytes, folder: Path) -> None:
    """Read the results of a repetition and tell them, in every format."""
    (folder / "runs.jsonl").write_bytes(data)
    found = results.read(folder)
    if found.finished or found.failed:
        runs, cut = results.select_comparable(found.runs)
        shown = results.collect_quantities(runs, 2)
        told = report(
            Outcome(runs, found.failed, 3, results.find_first(runs), shown, [], {"runs": found.environment}, cut=cut)
        )
        for format_ in FORMATS:
            text = render(told, format_)
            if not all(line.isprintable() for line in text.split("\n")):
                raise AcceptedError(f"a character that a terminal obeys is shown as {format_}")


def canary_lines() -> list[bytes]:
    """Return what the battery says."""
    whole = section()
    head = {key: whole[key] for key in ("battery", "tensorflow", "numpy")}
    said: list[dict[str, Any]] = [{"head": {**head, "groups": list(whole["groups"]), "devices": []}}]
    for name, group in whole["groups"].items():
        execution = group["conditions"]["execution"]
        said.append({"begin": [name, execution]})
        said.append({"group": name, "execution": execution, "operations": group["operations"]})
    said.append({"seconds": 1.0, "cpu_seconds": 2.0})
    return [json_lines(*said)]


def json_lines(*documents_: Any) -> bytes:
    """Return a line of JSON for each."""
    return "".join(f"{json.dumps(each)}\n" for each in documents_).encode()


def read_canary(data: bytes, folder: Path) -> None:
    """Read what a process said that computed the canary."""
    lines = b"".join(launch.MARK.encode() + line + b"\n" for line in data.splitlines())
    before = launch.ask
    try:
        launch.ask = lambda *_, **__: launch.Ended(0, lines, b"", 1.0)
        canary.compute(None, canary.Settings(), program="")
    finally:
        launch.ask = before


# --- settings


PYPROJECT = """\
[project]
name = "mine"

[tool.envlock]
lock = "locks/train.lock"
entry = ["train.py", "mine.cli:main"]

[tool.envlock.policy]
name = "same-arch"
"cpu.*" = "ignore"
"packages.numpy.version" = "at_least"

[tool.envlock.lint]
select = ["ENV1"]
exclude = ["tests"]

[tool.envlock.container]
workdir = "/srv"
user = "1000:1000"
"""


def read_pyproject(data: bytes, folder: Path) -> None:
    """Read the settings of a project."""
    (folder / "pyproject.toml").write_bytes(data)
    project_settings.load(folder)


UV = """\
[[index]]
name = "own"
url = "https://user:s3cret@own.example/simple"
default = true
explicit = false
[[index]]
url = "wheels"
format = "flat"
"""


def _silent(read: Callable[[], object]) -> None:
    try:
        read()
    except UsageError as error:
        if SECRET in str(error):
            raise AcceptedError("a secret in an error") from None
        raise


def read_uv(data: bytes, folder: Path) -> None:
    """Read a uv.toml."""
    (folder / "uv.toml").write_bytes(data)

    def read() -> None:
        for _, url in index._list_uv_indexes({}, folder):
            if len(index._check_address(url).splitlines()) != 1:
                raise AcceptedError("an address of several lines")

    _silent(read)


# --- answers


REFERENCE = reference_of("registry.example/nvidia/tensorflow:25.02")


@cache
def registry_answers() -> list[bytes]:
    """Return a manifest, an index, a config and a token, as a registry sends them."""
    shelf = Shelf()
    digest = shelf.image("one")
    shelf.index("both", amd64=digest, arm64=digest)
    return [*shelf.documents.values(), b'{"token": "let.me-in", "expires_in": 300}']


def read_registry(data: bytes, folder: Path) -> None:
    """Read an answer as each document of a registry; one that is not the one of its digest is noticed."""
    original = registry_answers()[0]
    if data != original:
        with suppress(RegistryError):
            manifest.check(data, manifest.compute_digest(original), REFERENCE)
            raise AcceptedError("another document under a digest")
    document_ = manifest.parse(data, "a manifest", REFERENCE)
    for ask in (
        lambda: manifest.find_manifest("linux/amd64", document_, REFERENCE),
        lambda: manifest.get_config_digest(document_, REFERENCE),
        lambda: manifest.read_versions(manifest.config(document_)),
    ):
        with suppress(RegistryError):
            ask()


def read_challenge(data: bytes, folder: Path) -> None:
    """Show a registry what its header says that it wants to be shown; the login goes to no other host."""
    asking = _Challenging(data.decode("latin-1"))
    Registry(cast("Client", asking), lambda _: ("me", SECRET)).find(REFERENCE, "linux/amd64")


class _Challenging:
    """A client of a registry that wants to be shown what a header says; whoever else it asks makes a token."""

    def __init__(self, header: str) -> None:
        self.header = header
        self.shelf = Shelf()
        self.shelf.image("25.02")

    def get(self, url: str, *, headers: Mapping[str, str], limit: int) -> Answer:
        plain, _ = _split_credentials(url)
        try:
            shown, there = headers.get("Authorization", ""), parse_url(plain).host == REFERENCE.registry
        except LocationParseError:
            raise make_address_error(url) from None
        if shown.startswith("Basic") and not there:
            raise AcceptedError("a login for another host")
        if plain.startswith(f"https://{REFERENCE.registry}/v2/") and not shown:
            return Answer(401, plain, {"WWW-Authenticate": self.header}, b"")
        found = self.shelf.documents.get(plain.rpartition("/")[2]) if there else None
        return Answer(200, plain, {}, found or b'{"token": "let.me-in"}')


def docker_configs() -> list[bytes]:
    """Return what `docker login` writes, and what names credential helpers."""
    auth = base64.b64encode(f"me:{SECRET}".encode()).decode()
    rows: list[dict[str, Any]] = [
        {"auths": {"nvcr.io": {"auth": auth}, "https://index.docker.io/v1/": {"auth": auth, "email": "a@b"}}},
        {"auths": {"nvcr.io": {"username": "me", "password": SECRET}}, "credHelpers": {"gcr.io": "gcloud"}},
        {"auths": {"nvcr.io": {"identitytoken": SECRET}}, "credsStore": "", "HttpHeaders": {"A": "b"}},
    ]
    return [json.dumps(each).encode() for each in rows]


def read_docker(data: bytes, folder: Path) -> None:
    """Look a login up in Docker's configuration."""
    path = folder / "config.json"
    path.write_bytes(data)
    try:
        logins.find_login("nvcr.io", path)
    except RegistryError as error:
        if SECRET in str(error):
            raise AcceptedError("a secret in an error") from None
        raise


def pip_reports() -> list[bytes]:
    """Return what pip says that it would install."""
    row = {
        "download_info": {"url": "https://u:s3cret@files.example/t.whl", "archive_info": {"hashes": {"sha256": HEX}}},
        "is_yanked": False,
        "metadata": {"name": "thing", "version": "1"},
    }
    return [json.dumps({"version": "1", "install": [row]}).encode()]


def read_report(data: bytes, folder: Path) -> None:
    """Read a report of pip: each hash in it becomes a part of a line."""
    (folder / "report.json").write_bytes(data)
    for offer in index._read_report(folder / "report.json", "").values():
        if len(offer.sha256) != 64 or not offer.sha256.isalnum():
            raise AcceptedError("a hash that is none")


@cache
def wheels() -> list[bytes]:
    """Return two wheels."""
    with tempfile.TemporaryDirectory() as folder:
        made = [make_wheel(Path(folder), "thing"), make_wheel(Path(folder), "big", files={"big.py": b"x = 1\n" * 900})]
        return [each.read_bytes() for each in made]


def read_wheel(data: bytes, folder: Path) -> None:
    """Take the RECORD out of a wheel, and read it."""
    (folder / "a.whl").write_bytes(data)
    listed = record_rows.parse_rows(read_wheel_record(folder / "a.whl").decode("utf-8", "replace"))
    record_rows.hash_content(record_rows.get_common_content(listed))


def read_record(data: bytes, folder: Path) -> None:
    """Read the RECORD of an installed package."""
    with suppress(FactError):
        record_rows.hash_content(
            record_rows.get_common_content(record_rows.parse_rows(data.decode("utf-8", "replace")))
        )


def statements() -> list[bytes]:
    """Return what three ranks have written into the folder of their job, with the facts that it stands for."""
    made = [rank(0, 3, job="j1"), rank(1, 3, job="j1"), rank(2, 3, job="j1", TF_ENABLE_ONEDNN_OPTS="0")]
    return [json.dumps([list(each) for each in made]).encode()]


def _word(value: object) -> str:
    return "".join(each for each in str(value) if each.isascii() and each.isalnum())[:99]


def read_fleet(data: bytes, folder: Path) -> None:
    """Read the folder of a job into which somebody else can write, too: with the digests that its content has."""
    place = folder / "j1"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        found = json.loads(data)
    except ValueError:  # no statements, so there is no folder to read
        return
    for number, each in enumerate(found if isinstance(found, list) else []):
        stated, facts = each if isinstance(each, list) and len(each) == 2 else (each, None)
        who = stated if isinstance(stated, dict) else {}
        if facts is not None and is_document(facts):
            with suppress(UnicodeEncodeError):  # half a character: nobody has a digest for it
                who["root"] = root_of(facts)
            (place / f"facts.{_word(who.get('root'))}.json").write_text(json.dumps(facts), encoding="utf-8")
        own = who.get("rank") if type(who.get("rank")) is int and 0 <= who["rank"] < 2**70 else number
        (place / f"rank-{own}.json").write_text(json.dumps(stated), encoding="utf-8")
    report = check_fleet(str(folder), job="j1", wait=0)
    for node in report.attachments["fleet"]["vetted"]:
        if not (node.isascii() and node.isprintable()):
            raise AcceptedError("a node that is more than a line")
    for format_ in FORMATS:
        if not all(line.isprintable() for line in render(report, format_).split("\n")):
            raise AcceptedError(f"a character that a terminal obeys is shown as {format_}")


# --- code


NOTEBOOK = json.dumps(
    {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"language": "python", "name": "python3"}},
        "cells": [
            {"cell_type": "markdown", "source": ["# x"], "metadata": {}},
            {"cell_type": "code", "source": ["%pip list\n", "import tensorflow as tf"], "metadata": {}, "outputs": []},
            {"cell_type": "code", "source": "x = !ls\nx?", "metadata": {}, "outputs": [], "execution_count": 1},
        ],
    }
)
SOURCE = """\
# -*- coding: utf-8 -*-
import os, random
import tensorflow as tf

def step(x: "tf.Tensor") -> float:
    os.environ["TF_DETERMINISTIC_OPS"] = "1"
    for each in {1, 2, *x}:
        tf.random.set_seed(hash(str(each)))
    return tf.reduce_sum([random.random() for _ in range(3)])
"""


def read_source(data: bytes, folder: Path) -> None:
    """Read a Python file, as the linter does."""
    path = folder / "train.py"
    path.write_bytes(data)
    lint_files.read(str(path))


def read_notebook(data: bytes, folder: Path) -> None:
    """Read a notebook, as the linter does."""
    path = folder / "train.ipynb"
    path.write_bytes(data)
    lint_files.read(str(path))


def _of(*texts: str | bytes) -> Callable[[], list[bytes]]:
    return lambda: [each.encode() if isinstance(each, str) else each for each in texts]


LINES = (bytewise, linewise)
JSON = (as_json, as_json, bytewise)
JSON_LINES = (as_json_lines, as_json_lines, *LINES)
SITE = "site-packages"
RUNS = (HEADER, STEP, END, {**STEP, "run": 1}, {**END, "run": 1}, {"run": 2, "end": "failed", "message": "x"})
CACHED = [("libfoo.so.1", "/v3/libfoo.so.1", 0x303, "x86-64-v3"), ("libfoo.so.1", "/l/libfoo.so.1", 0x303, None)]
ORIGIN = DIRECT_URL % ("0a" * 20)
CHALLENGES = (
    'Bearer realm="https://registry.example/token",service="x"',
    'Bearer realm="https://auth.example\\\\@registry.example:443/a?b"',
    'Bearer realm="https://registry.example@[::1]:9/a", Basic realm="b"',
    'Bearer realm="https://nvcr.io/a",service="x",scope="repository:a:pull"',
    'Basic realm="a, b"',
)
LISTED = 'thing.py,sha256=abc_-,12\nthing-1.dist-info/RECORD,,\n"a,b",sha256=x,3\n'

READERS: dict[str, Reader] = {
    "lockfile": Reader(locks, (as_json, as_json, as_json, *LINES), read_lock, (LockfileError,), 12_000),
    "paste": Reader(_of(*map(textwrap.dedent, STATED.values())), LINES, read_pasted, (), 3_000),
    "METADATA": Reader(_of(METADATA), LINES, read_metadata, (), 1_500),
    "WHEEL": _machine_file(f"{SITE}/mine-1.0.dist-info/WHEEL", WHEEL),
    "direct_url.json": _machine_file(f"{SITE}/mine-1.0.dist-info/direct_url.json", ORIGIN, damages=JSON),
    "keras.json": _machine_file("keras-home/keras.json", KERAS, damages=JSON),
    "cpuinfo": _machine_file("root/proc/cpuinfo", CPUINFO),
    "os-release": _machine_file("root/etc/os-release", 'NAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n'),
    "build_info": _machine_file(f"{SITE}/tensorflow/python/platform/build_info.py", BUILD_INFO),
    "numpy config": _machine_file(f"{SITE}/numpy/__config__.py", NUMPY),
    "NVML": Reader(gpus, (lie,), read_gpu, (), 6_000),
    "NVML process": Reader(gpu_answers, JSON, read_answer, (), 2_000),
    "ELF": Reader(_of(SOUND), (numbers, bytewise), read_library, (), 8_000),
    "ld.so.cache": Reader(_of(ld_cache(CACHED)), (numbers, bytewise), read_cache, (), 6_000),
    "trace": Reader(_of(gzip.decompress(TRACE)), JSON_LINES, read_trace, (TraceError,), 6_000),
    "trace on disk": Reader(_of(TRACE), (numbers, bytewise), read_packed, (TraceError,), 4_000),
    "results": Reader(lambda: [json_lines(*RUNS)], JSON_LINES, read_results, (UsageError,), 3_000),
    "canary": Reader(canary_lines, JSON_LINES, read_canary, (FactError, UsageError), 3_000),
    "pyproject.toml": Reader(_of(PYPROJECT), LINES, read_pyproject, (UsageError,), 5_000),
    "uv.toml": Reader(_of(UV), LINES, read_uv, (UsageError,), 4_000),
    "registry": Reader(registry_answers, JSON, read_registry, (RegistryError,), 6_000),
    "challenge": Reader(_of(*CHALLENGES), (bytewise,), read_challenge, (RegistryError,), 4_000),
    "docker config": Reader(docker_configs, JSON, read_docker, (RegistryError,), 3_000),
    "pip report": Reader(pip_reports, JSON, read_report, (OutsideError,), 5_000),
    "wheel": Reader(wheels, (numbers, bytewise), read_wheel, (BadWheel, FactError), 5_000),
    "RECORD": Reader(_of(LISTED), LINES, read_record, (), 4_000),
    "fleet": Reader(statements, (as_json,), read_fleet, (UsageError,), 3_000),
    "notebook": Reader(_of(NOTEBOOK), JSON, read_notebook, (lint_files.Unreadable,), 3_000),
    "source": Reader(_of(SOURCE), LINES, read_source, (lint_files.Unreadable,), 3_000),
}
"""What is attacked, by a name for people."""
