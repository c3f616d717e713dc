"""The engines on real daemons: what they build and run, what they say when it fails, and that nothing stays behind."""

from __future__ import annotations

import base64
import gc
import io
import json
import os
import re
import signal
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from envlock.image.engines import AUTO, ENGINES
from envlock.image.engines.container_run import Start
from envlock.image.engines.engine import Order, check_name
from envlock.image.engines.engine_errors import EngineError
from envlock.image.engines.find import find, prefer
from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean
from tests.exhaustive import exhaustive
from tests.image import test_build, test_debian
from tests.image.bed import engine as daemons
from tests.image.bed.fixtures import StartEngine, starting, use
from tests.image.bed.session import Bed
from tests.image.engines import test_commands

EPOCH = 315532800
NO_DIGEST = "sha256:" + "0" * 64
Logs = Callable[[], list[str]]
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Docker's SDK leaves sockets of connections that failed, or were broken off, to the garbage collector."""

DAEMON = ("buildx", "docker")
both = pytest.mark.parametrize("name", DAEMON)
real = pytest.mark.engine


def context(folder: Path, dockerfile: str, *, mtime: int = EPOCH) -> Path:
    """Write a context as envlock does: a Dockerfile and one tar, whose bytes depend on nothing but its content."""
    folder.mkdir(parents=True, exist_ok=True)
    payload = io.BytesIO()
    with tarfile.open(fileobj=payload, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in ("opt", "opt/envlock"):  # those left out would get the time of the build
            member = tarfile.TarInfo(name)
            member.type, member.mtime, member.mode = tarfile.DIRTYPE, EPOCH, 0o755
            tar.addfile(member)
        for name in ("opt/envlock/a.txt", "opt/envlock/b.txt"):
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = 3, EPOCH, 0o644
            tar.addfile(member, io.BytesIO(b"abc"))
    (folder / "payload.tar").write_bytes(payload.getvalue())
    (folder / "Dockerfile").write_text(dockerfile)
    (folder / ".dockerignore").write_text("*\n!payload.tar\n")
    for file in folder.iterdir():
        os.utime(file, (mtime, mtime))
    return folder


def ngc(bed: Bed, *lines: str) -> str:
    """Return a Dockerfile on the stand-in of NVIDIA's image."""
    return "\n".join([f"FROM {bed.ngc}", "ARG SOURCE_DATE_EPOCH", "ADD payload.tar /", *lines, ""])


class State:
    """What a daemon holds, to be compared."""

    def __init__(self, daemon: daemons.Engine) -> None:
        self.images = set(daemon.docker("images", "-aq", "--no-trunc").stdout.split())
        self.containers = set(daemon.docker("ps", "-aq").stdout.split())

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Logs:
    """Return what lists the logs that were kept."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return lambda: sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def one_engine(bed: Bed) -> Iterator[daemons.Engine]:
    """Return an engine that has the base images, and that only one test at a time looks at."""
    with starting(bed) as start:
        daemon = start()
        for image in (bed.ngc, bed.python):
            daemon.docker("pull", "-q", image)
        yield daemon


@pytest.fixture
def alone(one_engine: daemons.Engine, monkeypatch: pytest.MonkeyPatch) -> daemons.Engine:
    """Return an engine on which nothing is and happens but what this test does: what stays behind can be seen."""
    return use(one_engine, monkeypatch)


@pytest.fixture(autouse=True)
def _garbage_is_collected_here() -> Iterator[None]:
    """Keep what the SDK leaves from being found in a test that minds."""
    yield
    gc.collect()


@real
@both
def test_a_build_is_what_was_asked_for(
    name: str,
    docker: daemons.Engine,
    bed: Bed,
    tmp_path: Path,
    logs: Logs,
) -> None:
    lines: list[str] = []
    engine = find(name)
    label = 'LABEL org.example.words="two words"'
    dockerfile = ngc(bed, "RUN echo the epoch is $SOURCE_DATE_EPOCH", "ENV A=1", "USER 1000:1000", label)
    order = Order(
        context(tmp_path / "context", dockerfile),
        EPOCH,
        platform="linux/amd64",
        no_cache=True,
    )
    built = engine.build(order, on_line=lines.append)
    engine.tag(built.image_id, f"example.org/team/{name}:1")
    assert (built.engine, built.engine_version) == (name, "26.1.5")
    found = json.loads(docker.docker("inspect", f"example.org/team/{name}:1").stdout)[0]
    assert (found["Id"], tuple(found["RootFS"]["Layers"])) == (built.image_id, built.layers)
    assert built.config["Labels"]["org.example.words"] == "two words"
    assert (built.config["User"], built.config["Entrypoint"]) == ("1000:1000", ["/opt/nvidia/nvidia_entrypoint.sh"])
    assert "A=1" in built.config["Env"]
    assert any(line.endswith(f"the epoch is {EPOCH}") for line in lines)
    assert logs() == []
    docker.docker("rmi", "-f", built.image_id)


@exhaustive
@real
def test_a_second_build_is_the_same_image(docker: daemons.Engine, bed: Bed, tmp_path: Path) -> None:
    """The same ID from BuildKit, the same layers from the classic builder, and the same layers from both."""
    dockerfile = ngc(bed, "ENV A=1", "USER 1000:1000")
    made = {}
    for name in DAEMON:
        for number, mtime in enumerate((1_000_000_000, 1_600_000_000)):
            place = context(tmp_path / f"{name}-{number}/deep/er", dockerfile, mtime=mtime)
            made[name, number] = find(name).build(Order(place, EPOCH, no_cache=True))
    assert made["buildx", 0].image_id == made["buildx", 1].image_id
    assert made["docker", 0].image_id != made["docker", 1].image_id
    assert len({built.layers for built in made.values()}) == 1
    docker.docker("rmi", "-f", *{built.image_id for built in made.values()})


BUILDS = {
    "digest gone": (
        "FROM nvcr.io/nvidia/tensorflow:25.02-tf2-py3@" + NO_DIGEST,
        r"the registry does not have nvcr\.io/nvidia/tensorflow:25\.02-tf2-py3@sha256:0{64}",
        "choose another tag: the publisher may have removed this one",
    ),
    "tag gone": (
        "FROM nvcr.io/nvidia/tensorflow:99.99",
        r"the registry does not have nvcr\.io/nvidia/tensorflow:99\.99",
        "choose another tag: the publisher may have removed this one",
    ),
    "not allowed": (
        "FROM nvcr.io/private/tensorflow:25.02-tf2-py3",
        r"the registry denies access to nvcr\.io/private/tensorflow(:25\.02-tf2-py3)?",
        "run `docker login nvcr.io` with a key that can pull it (for nvcr.io the user is $oauthtoken)",
    ),
    "registry down": (
        "FROM 127.0.0.1:1/nvidia/tensorflow:1",
        r"the container engine cannot reach the registry 127\.0\.0\.1:1",
        "check its network and proxy, or name a mirror",
    ),
    "no Dockerfile": (
        "FROM scratch\nRUNN true",
        r"invalid Dockerfile, line 2: unknown instruction: RUNN \(did you mean RUN\?\)",
        "correct it, or let envlock write it again",
    ),
}


@real
@both
@pytest.mark.parametrize("case", BUILDS)
def test_a_build_that_cannot_begin(name: str, case: str, docker: daemons.Engine, tmp_path: Path, logs: Logs) -> None:
    dockerfile, message, hint = BUILDS[case]
    with pytest.raises(EngineError) as raised:
        find(name).build(Order(context(tmp_path / "context", dockerfile), EPOCH))
    assert re.fullmatch(message, raised.value.message), raised.value.message
    kept = logs()
    where = f"; the whole log is in {tmp_path}/temporary/{kept[0]}" if kept else ""
    assert (raised.value.hint, raised.value.exit_code) == (hint + where, 5)


@exhaustive
@real
@both
def test_a_wrong_key_is_told(
    name: str, docker: daemons.Engine, bed: Bed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = json.loads((docker.folder / "config/config.json").read_text())
    settings["auths"] = {"nvcr.io": {"auth": base64.b64encode(b"$oauthtoken:wrong").decode()}}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with pytest.raises(EngineError) as raised:
        find(name).build(Order(context(tmp_path / "context", f"FROM {bed.private}"), EPOCH))
    assert raised.value.message in (f"the registry rejects the login for {what}" for what in (bed.private, "nvcr.io"))


@real
@both
def test_a_step_that_fails_leaves_its_log_and_nothing_else(
    name: str,
    alone: daemons.Engine,
    bed: Bed,
    tmp_path: Path,
    logs: Logs,
) -> None:
    engine = find(name)
    before = State(alone)
    steps = ("RUN echo one > /one", "RUN echo the last words >&2; exit 3")
    with pytest.raises(EngineError) as raised:
        engine.build(Order(context(tmp_path / "context", ngc(bed, *steps)), EPOCH))
    assert raised.value.message == "a step of the Dockerfile failed with exit code 3: the last words"
    log = tmp_path / "temporary" / logs()[0]
    assert raised.value.hint == f"the whole log is in {log}"
    assert "the last words" in log.read_text()
    assert State(alone) == before
    wrong = "RUN echo THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. >&2; exit 1"
    with pytest.raises(EngineError) as raised:
        engine.build(Order(context(tmp_path / "context", ngc(bed, wrong)), EPOCH))
    assert raised.value.message == "a wheel differs from the locked one: its hash does not match"
    assert State(alone) == before


@real
@both
def test_an_interrupted_build_leaves_nothing(
    name: str,
    alone: daemons.Engine,
    bed: Bed,
    tmp_path: Path,
    logs: Logs,
) -> None:
    before = State(alone)
    steps = ngc(bed, "RUN echo one > /one", "RUN echo now; sleep 77")
    order = Order(context(tmp_path / "context", steps), EPOCH)
    with pytest.raises(KeyboardInterrupt):
        find(name).build(order, on_line=_interrupt_at("now"))
    assert State(alone) == before
    assert logs() == []
    assert _processes("sleep 77") == []


def _interrupt_at(word: str) -> Callable[[str], None]:
    """Return what presses the interrupt key half a second after a program has said a word."""
    pressed: list[str] = []

    def look(line: str) -> None:
        if line.split()[-1:] == [word] and not pressed and "RUN" not in line:
            pressed.append(line)
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()

    return look


def _processes(words: str) -> list[str]:
    found = (Path(f"/proc/{pid}/cmdline") for pid in os.listdir("/proc") if pid.isdigit())
    texts = (_text(file).replace("\0", " ").strip() for file in found)
    return [text for text in texts if text.endswith(words)]


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


@exhaustive
@real
@both
def test_a_full_disk_is_told(
    name: str,
    start_engine: StartEngine,
    bed: Bed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    daemon = use(start_engine(disk="160m"), monkeypatch)
    place = context(tmp_path / "context", ngc(bed, "RUN dd if=/dev/zero of=/big bs=1M count=200"))
    with pytest.raises(EngineError) as raised:
        find(name).build(Order(place, EPOCH))
    assert raised.value.message == "the disk of the container engine is full"
    assert State(daemon).containers == set()


@exhaustive
@real
@both
def test_a_daemon_that_dies_is_told(
    name: str,
    start_engine: StartEngine,
    bed: Bed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    daemon = use(start_engine(), monkeypatch)
    killed: list[str] = []

    def kill(line: str) -> None:
        if line.split()[-1:] == ["now"] and "RUN" not in line and not killed:
            killed.append(line)
            os.kill(daemon.pid, signal.SIGKILL)

    place = context(tmp_path / "context", ngc(bed, "RUN echo now; sleep 78"))
    with pytest.raises(EngineError) as raised:
        find(name).build(Order(place, EPOCH), on_line=kill)
    assert raised.value.message == "the connection to the container engine was lost"
    assert killed != []


@real
def test_an_index_without_the_platform_is_told(docker: daemons.Engine, bed: Bed, tmp_path: Path) -> None:
    with pytest.raises(EngineError) as raised:
        find("buildx").build(Order(context(tmp_path, ngc(bed)), EPOCH, platform="linux/s390x"))
    assert raised.value.message == f"{bed.ngc} does not exist for this platform"


@real
def test_what_is_run(docker: daemons.Engine, bed: Bed) -> None:
    engine = find("docker")
    engine.pull(bed.ngc)
    done = engine.run(bed.ngc, ["sh", "-c", "echo $A; echo told >&2; exit 3"], Start(env={"A": "é $B"}))
    assert (done.exit_code, done.stdout) == (3, "é $B\n")
    assert done.stderr == "== TensorFlow == NVIDIA Release 25.02-tf2 (build 143088766)\ntold\n"
    done = engine.run(bed.ngc, ["-c", "cat /proc/net/dev"], Start(entrypoint=["/bin/sh"]))
    assert [line.split(":")[0].strip() for line in done.stdout.splitlines()[2:]] == ["lo"]
    assert engine.run(bed.ngc, ["echo", "no words of NVIDIA's"], Start(entrypoint=[])).stderr == ""


RUNS = {
    "program": (["nosuch"], False, "the image does not have the program nosuch"),
    "gpus": (["true"], True, "the container engine cannot give a GPU to a container"),
}


@exhaustive
@real
@pytest.mark.parametrize("case", RUNS)
def test_what_cannot_run_leaves_no_container(
    case: str,
    alone: daemons.Engine,
    bed: Bed,
) -> None:
    argv, gpus, message = RUNS[case]
    engine = find("docker")
    before = State(alone)
    with pytest.raises(EngineError) as raised:
        engine.run(bed.python, argv, Start(gpus=gpus))
    assert raised.value.message == message
    assert State(alone) == before


@real
def test_an_interrupted_run_leaves_no_container(
    alone: daemons.Engine,
    bed: Bed,
) -> None:
    engine = find("docker")
    before = State(alone)
    threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        engine.run(bed.python, ["sleep", "79"])
    assert State(alone) == before
    assert _processes("sleep 79") == []


@exhaustive
@real
def test_gpus_reach_the_container(start_engine: StartEngine, bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    use(start_engine(gpus=True), monkeypatch)
    engine = find("docker")
    engine.pull(bed.python)
    program = ["sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES"]
    assert engine.run(bed.python, program, Start(gpus=True)).stdout == "all\n"
    assert engine.run(bed.python, program).stdout == "\n"


@real
def test_pulls_are_told(docker: daemons.Engine, bed: Bed) -> None:
    engine = find("docker")
    lines: list[str] = []
    engine.pull(bed.ngc, lines.append)
    assert lines[-1].startswith("Status: ")
    config = engine.inspect(bed.ngc)["Config"] or {}
    assert (config["Labels"] or {})["com.nvidia.build.id"] == "143088766"
    with pytest.raises(EngineError) as raised:
        engine.pull(f"nvcr.io/nvidia/tensorflow:25.02-tf2-py3@{NO_DIGEST}")
    assert raised.value.message == (f"the registry does not have nvcr.io/nvidia/tensorflow:25.02-tf2-py3@{NO_DIGEST}")
    with pytest.raises(EngineError) as raised:
        engine.inspect("nosuch:1")
    assert raised.value.message == "the container engine does not have the image nosuch:1"


@real
def test_names_are_given_and_unnamed_images_discarded(docker: daemons.Engine, bed: Bed, tmp_path: Path) -> None:
    engine = find("buildx")
    built = engine.build(Order(context(tmp_path, ngc(bed, "ENV TEST=discarded")), EPOCH))
    engine.tag(built.image_id, "discarded:1")
    engine.discard(built)
    assert engine.inspect("discarded:1")["Id"] == built.image_id  # it has a name, and stays
    docker.docker("rmi", "discarded:1")
    again = engine.build(Order(context(tmp_path, ngc(bed, "ENV TEST=discarded")), EPOCH))
    assert again.image_id == built.image_id
    engine.discard(again)
    assert docker.docker("images", "-q", "--filter=dangling=true", "--no-trunc").stdout.find(again.image_id) == -1


@exhaustive
@real
@pytest.mark.slow
def test_docker_20_10_builds_the_same_each_time(
    start_engine: StartEngine,
    bed: Bed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    daemon = use(start_engine("20"), monkeypatch)
    engine = find()
    assert (engine.name, engine.host.version.split(".")[0]) == ("docker", "20")
    dockerfile = ngc(bed, "ENV A=1", "USER 1000:1000")
    one, two = (engine.build(Order(context(tmp_path / n, dockerfile), EPOCH, no_cache=True)) for n in "ab")
    assert one.layers == two.layers
    before = State(daemon)
    with pytest.raises(EngineError):
        engine.build(Order(context(tmp_path / "c", ngc(bed, "RUN touch /x", "RUN exit 3")), EPOCH, no_cache=True))
    assert State(daemon) == before
    other = context(tmp_path / "d", f"FROM {bed.ngc}\nADD payload.tar /\n")
    with pytest.raises(EngineError) as raised:  # it takes the base that is there, whatever its platform
        engine.build(Order(other, EPOCH, platform="linux/s390x"))
    assert raised.value.message == "the image was built for linux/amd64, not for linux/s390x"
    assert State(daemon) == before


@pytest.mark.network
@pytest.mark.processes
def test_no_daemon_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(EngineError) as raised:
        find()
    assert raised.value.message == f"the container engine does not respond: unix://{tmp_path}/none.sock"
    assert raised.value.hint == "start Docker (`docker version` shows its state), or name another host in DOCKER_HOST"


@real
def test_no_permission_is_told(docker: daemons.Engine) -> None:
    os.seteuid(65534)
    try:
        with pytest.raises(EngineError) as raised:
            find("docker")
    finally:
        os.seteuid(0)
    assert raised.value.message == f"no permission to use the container engine: {docker.environ['DOCKER_HOST']}"
    assert raised.value.hint == "join the group of its socket (often `docker`), or run as another user"


def test_a_host_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "nonsense://x")
    with pytest.raises(EngineError) as raised:
        find()
    assert raised.value.message == "the address of the container engine has an unknown scheme: nonsense://x"
    assert raised.value.hint == "set DOCKER_HOST to unix:///path, tcp://host:port or ssh://user@host"


SSH = """\
#!/bin/sh
echo "$*" >{log}
case "$*" in *user*machine*"docker system dial-stdio") ;; *) exit 255;; esac
exec env DOCKER_HOST={host} docker system dial-stdio
"""


@real
def test_an_engine_is_reached_by_ssh(docker: daemons.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ssh").write_text(SSH.format(host=docker.environ["DOCKER_HOST"], log=tmp_path / "log"))
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{docker.environ['PATH']}")
    monkeypatch.setenv("DOCKER_HOST", "ssh://user@machine")
    assert find("docker").host.version == "26.1.5"
    monkeypatch.setenv("DOCKER_HOST", "ssh://user@other")
    with pytest.raises(EngineError) as raised:
        find("docker")
    assert raised.value.message == "no container engine answers on user@other"
    assert raised.value.hint == "check that `ssh user@other docker version` works and asks for no password"


@pytest.mark.processes
@pytest.mark.parametrize("name", ["podman", "buildah"])
def test_a_command_that_is_not_there_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EngineError) as raised:
        find(name)
    assert str(raised.value) == f"cannot start {name}: No such file or directory\nhint: install {name}"


def test_every_engine_builds_an_image_in_some_test() -> None:
    """One that only raises would be offered on the command line otherwise."""
    assert {*test_build.ENGINES, test_debian.ENGINE, test_commands.ENGINE} == set(ENGINES)


def test_an_unknown_engine_is_told() -> None:
    with pytest.raises(UsageError) as raised:
        find("kaniko")
    assert str(raised.value) == f"unknown container engine `kaniko`\nhint: choose from: {', '.join((AUTO, *ENGINES))}"


@real
def test_buildx_that_is_not_there_is_told(docker: daemons.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert find().reason.startswith("docker (`docker buildx` is not installed)")
    with pytest.raises(EngineError) as raised:
        find("buildx")
    assert str(raised.value) == (
        "`docker buildx` is not installed\nhint: install the buildx plugin of Docker, or use `--engine docker`"
    )


def test_the_choice() -> None:
    rows = [
        ("26.1.5", False, "0.13.1", "buildx"),
        ("23.0.0", False, "0.10", "buildx"),
        ("28.5.2", False, "0.29.1", "buildx"),
        ("20.10.24", False, "0.13.1", "docker"),
        ("26.1.5", False, "0.9.1", "docker"),
        ("26.1.5", False, None, "docker"),
        ("4.3.1", True, "0.13.1", "docker"),
    ]
    for version, podman, plugin, name in rows:
        chosen, reason = prefer(version, podman=podman, plugin=plugin)
        assert (chosen, reason.partition(" ")[0]) == (name, name), (version, podman, plugin)


@pytest.mark.parametrize("tag", ["Upper/case", "a b", "a:b:c", "-a", "", "a" * 300, "a\n", "$(x)", "a@sha256:00"])
def test_what_is_no_name_is_refused(tag: str) -> None:
    with pytest.raises(UsageError) as raised:
        check_name(tag)
    assert raised.value.message == f"invalid image name `{clean(tag)}`"


@pytest.mark.processes
def test_buildah_has_no_gpu_to_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "buildah").write_text('#!/bin/sh\necho \'{"version": "1.28.2"}\'\n')
    (tmp_path / "buildah").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(EngineError) as raised:
        find("buildah").run("the:1", ["true"], Start(gpus=True))
    assert str(raised.value) == (
        "buildah gives no GPU to a container\nhint: use `--engine podman`, or leave out `--gpus`"
    )
