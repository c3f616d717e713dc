"""From a lock to an image on a real engine: verified inside, refused when tampered with, the same when rebuilt."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envlock.image import image_build
from envlock.image.image_build import EMPTY_LAYER
from tests.exhaustive import exhaustive
from tests.image.bed.fixtures import StartEngine
from tests.image.bed.podman import Podman
from tests.image.bed.session import ROOT, Bed
from tests.image.plans import planned
from tests.image.project import Project
from tests.image.stocked import captured, demo_wheel, identity, published, written

pytestmark = pytest.mark.engine

ENGINES = ["buildx", "docker"]


@pytest.fixture(scope="session")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stock")
    demo_wheel(folder, "alpha", "1.0")
    demo_wheel(folder, "beta", "2.5")
    return folder


@pytest.fixture(scope="session")
def ngc_lock(bed: Bed, stock: Path) -> dict[str, Any]:
    """Return a lock of NVIDIA's image with two packages more."""
    return captured(bed, bed.ngc, stock, system=True)


@pytest.fixture(scope="session")
def plain_lock(bed: Bed, stock: Path) -> dict[str, Any]:
    """Return a lock of a plain Python with two packages."""
    return captured(bed, bed.python, stock, system=False)


def project(bed: Bed, folder: Path, lock: dict[str, Any], stock: Path) -> Project:
    made = Project(bed, folder, lock)
    shutil.copytree(stock, folder / "wheelhouse")
    return made


@pytest.fixture
def ngc(bed: Bed, tmp_path: Path, ngc_lock: dict[str, Any], stock: Path) -> Project:
    return project(bed, tmp_path / "ngc", ngc_lock, stock)


@pytest.fixture(scope="session")
def image(bed: Bed, ngc_lock: dict[str, Any], stock: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a built image, for tests that only run it."""
    made = project(bed, tmp_path_factory.mktemp("image") / "project", ngc_lock, stock)
    done = made("build", "--base", bed.ngc)
    assert done.returncode == 0, done.stderr
    return str(made.image["id"])


@pytest.mark.parametrize("engine", ENGINES)
def test_the_locked_environment_is_built_and_verified_inside(engine: str, ngc: Project, bed: Bed) -> None:
    done = ngc("build", "--base", bed.ngc, "--engine", engine, "--tag", f"test/train:{engine}")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert f"test/train:{engine} was verified inside: it matches under policy strict\n" in done.stderr
    assert done.stderr.endswith("wrote envlock.lock: base and image\n")
    assert (ngc.image["engine"], ngc.image["base"]) == (engine, bed.ngc.rpartition("@")[2])
    ran = bed.engine.docker("run", "--rm", "--network=none", f"test/train:{engine}", "beta")
    assert ran.stdout == "2.5\n"
    assert "== TensorFlow == NVIDIA Release" in ran.stderr  # the base's own entrypoint is in front
    script = "import envlock, os, tensorflow; print(os.getuid(), tensorflow.__version__, envlock.assert_locked().match)"
    ran = bed.engine.docker("run", "--rm", "--network=none", f"test/train:{engine}", "python", "-c", script)
    assert ran.stdout == "1000 2.17.0 True\n"


LOADED = {
    "imports": ["tensorflow"],
    "interpreter": {"python": "0" * 16},
    "standard": {"json": f"{'0' * 16} __init__ decoder"},
}
"""Of another build of the same Python than the base's."""
LIBRARY = f"1 sha256:{'0' * 64}"


def test_an_image_is_held_to_the_python_and_the_libraries_of_its_base(ngc: Project, bed: Bed, tmp_path: Path) -> None:
    held = json.loads((ngc.folder / "envlock.lock").read_bytes())
    libraries = {"data": [f"libz.so.1 {LIBRARY}"], "libm": [f"libm.so.6 {LIBRARY}"]}
    held["facts"]["loaded"] = {**LOADED, **libraries, "unexplained": []}
    ngc.write(held)
    done = ngc("build", "--base", bed.ngc, "--tag", "test/loaded:1")
    assert "test/loaded:1 was verified inside: it matches under policy strict\n" in done.stderr, done.stderr
    script = "import envlock; envlock.assert_locked(); import tensorflow, json; print(envlock.assert_locked().match)"
    run = ["run", "--rm", "--network=none"]
    program = ["test/loaded:1", "python", "-c", script]
    assert bed.engine.docker(*run, *program).stdout == "True\n"
    for place, said in [
        ("/usr/lib/x86_64-linux-gnu/libm.so.6", "loaded.libm: not the locked file"),
        ("/usr/lib/x86_64-linux-gnu/libz.so.1", "loaded.data: not the locked file"),
        ("/usr/lib/python3.11/json/__init__.py", "loaded.standard.json: not the locked file"),
    ]:
        file = tmp_path / Path(place).name
        container = bed.engine.docker("create", "test/loaded:1").stdout.strip()
        bed.engine.docker("cp", "--follow-link", f"{container}:{place}", file)
        bed.engine.docker("rm", container)
        file.write_bytes(file.read_bytes() + b"\n")
        other = ["--volume", f"{file}:{place}:ro"]
        assert f"1 fact differs: {said}: {place}" in refused(bed, "test/loaded:1", *other)
        # Where the entrypoint is another one, the program's own look refuses.
        done = bed.engine.docker(
            *run, *other, "--entrypoint=/opt/venv/bin/python", program[0], *program[2:], check=False
        )
        assert (done.returncode, f"{said}: {place}" in done.stderr) == (1, True), done.stderr
    # Where its own verdict would be no, the image gets no name.
    held["facts"]["loaded"]["openmp"] = [f"libgomp.so.1 {LIBRARY}"]
    ngc.write(held)
    done = ngc("build", "--base", bed.ngc, "--tag", "test/loaded:2")
    assert done.returncode == 1, done.stderr
    assert "x loaded.openmp: not the locked file: libgomp.so.1 is not loaded" in done.stderr
    assert bed.engine.docker("image", "inspect", "test/loaded:2", check=False).returncode == 1


def derived(bed: Bed, image: str, command: str, folder: Path) -> str:
    """Return an image that somebody has made of ours."""
    (folder / "tampered").mkdir()
    text = f"FROM tampered-from:{folder.name}\nUSER 0\nRUN {command}\nUSER 1000:1000\n"
    (folder / "tampered" / "Dockerfile").write_text(text, encoding="utf-8")
    bed.engine.docker("tag", image, f"tampered-from:{folder.name}")
    built = bed.engine.docker("build", "-q", "--network=none", folder / "tampered")
    return built.stdout.strip()


def refused(bed: Bed, image: str, *options: str) -> str:
    """Return what the entrypoint says when it refuses."""
    done = bed.engine.docker("run", "--rm", "--network=none", *options, image, "echo", "started", check=False)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("envlock: ")]
    return line


def test_a_tampered_package_is_refused(bed: Bed, image: str, tmp_path: Path) -> None:
    site = "/opt/venv/lib/python3.11/site-packages"
    other = derived(bed, image, f"mv {site}/beta-2.5.dist-info {site}/beta-2.6.dist-info", tmp_path)
    assert refused(bed, other) == (
        "envlock: refusing to start: does not match under policy strict: 1 fact differs: "
        "packages.beta.version: locked 2.5, live 2.6 (`envlock verify` in this image has the details)"
    )


@exhaustive
def test_another_value_of_a_variable_is_refused(bed: Bed, image: str) -> None:
    said = refused(bed, image, "-e", "TF_ENABLE_ONEDNN_OPTS=1")
    assert "environ.TF_ENABLE_ONEDNN_OPTS: locked 0, live 1 (" in said


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("PYTHONHASHSEED=7", "environ.PYTHONHASHSEED: set by the image to 0, live 7"),
        ("PATH=/usr/bin:/bin", "environ.PATH: set by the image to /opt/venv/bin, live /usr/bin"),
    ],
)
def test_what_the_image_sets_beside_the_lock_is_a_promise(variable: str, said: str, bed: Bed, image: str) -> None:
    assert f"1 fact differs: {said} (" in refused(bed, image, "-e", variable)


SITE = "/opt/venv/lib/python3.11/site-packages"
SPOIL = (
    "python3 -c \"import marshal, sys; p = sys.argv[1]; head = open(p, 'rb').read(16); "
    "open(p, 'wb').write(head + marshal.dumps(compile('evil = 1', 'x', 'exec')))\""
)
"""Puts other code behind the header that Python checks."""


@exhaustive
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"echo '# edited' >> {SITE}/alpha/__init__.py", "1 file is not as recorded: alpha/__init__.py: longer: "),
        (f"rm -r {SITE}/alpha", "1 file is not as recorded: alpha/__init__.py: is missing"),
        (f"echo 'import os' > {SITE}/foreign.py", "foreign.py: a file that belongs to no package"),
        (
            f"{SPOIL} {SITE}/alpha/__pycache__/__init__.cpython-311.pyc",
            "alpha/__pycache__/__init__.cpython-311.pyc: was written after the build, and differs from the source",
        ),
        (
            f"printf 'x = 1' > {SITE}/alpha/__init__.py; sed -i '/alpha.__init__/d' {SITE}/alpha-1.0.dist-info/RECORD",
            "alpha-1.0.dist-info: its RECORD differs from the locked one",
        ),
    ],
)
def test_a_changed_file_is_refused_when_asked_to_look_deep(
    command: str, said: str, bed: Bed, image: str, tmp_path: Path
) -> None:
    other = derived(bed, image, command, tmp_path)
    assert said in refused(bed, other, "-e", "ENVLOCK_MODE=deep")
    run = ["run", "--rm", "--network=none", other]
    details = bed.engine.docker(*run, "envlock", "verify", "--deep", check=False)
    assert details.returncode == 1
    assert f"  x {said.rpartition('recorded: ')[2]}" in details.stdout
    assert bed.engine.docker(*run, "envlock", "verify").stdout == "matches under policy strict\n"


@exhaustive
def test_a_file_that_python_runs_at_each_start_is_refused_without_looking_deep(
    bed: Bed, image: str, tmp_path: Path
) -> None:
    other = derived(bed, image, f"echo 'import os' > {SITE}/x.pth", tmp_path)
    run = ["run", "--rm", "--network=none", other]
    found = bed.engine.docker(*run, "envlock", "verify", check=False)
    assert found.returncode == 1
    assert "python.startup.pth.x: " in found.stdout
    details = bed.engine.docker(*run, "envlock", "verify", "--deep", check=False)
    assert "  x x.pth: belongs to no package, and runs `import os`" in details.stdout


@exhaustive
def test_an_untouched_image_starts_when_asked_to_look_deep(bed: Bed, image: str) -> None:
    run = ["run", "--rm", "--network=none", "-e", "ENVLOCK_MODE=deep", image]
    assert bed.engine.docker(*run, "echo", "started").stdout == "started\n"
    script = "import envlock; print(envlock.assert_locked().match)"
    assert bed.engine.docker(*run, "python", "-c", script).stdout == "True\n"
    found = json.loads(bed.engine.docker(*run, "envlock", "verify", "--deep", "-f", "json").stdout)
    assert (found["match"], found["policy"]["name"]) == (True, "strict")


BASE = "/usr/local/lib/python3.11/dist-packages"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"echo '# edited' >> {BASE}/keras/__init__.py", f"{BASE}/keras/__init__.py: was changed after"),
        (f"echo 'fast = False' > {BASE}/patches/quick.py", f"{BASE}/patches: was changed after"),
        (f"touch {BASE}/patches/more.py", f"{BASE}/patches: was changed after"),
        (f"echo '# edited' >> {BASE}/numpy/__init__.py", f"{BASE}/numpy/__init__.py: longer: "),
    ],
)
def test_what_the_base_had_is_known_and_a_change_to_it_is_refused(
    command: str, said: str, bed: Bed, image: str, tmp_path: Path
) -> None:
    other = derived(bed, image, command, tmp_path)
    assert f"1 file is not as recorded: {said}" in refused(bed, other, "-e", "ENVLOCK_MODE=deep")


@exhaustive
def test_a_replaced_tensorflow_is_refused(bed: Bed, image: str, tmp_path: Path) -> None:
    site = "/usr/local/lib/python3.11/dist-packages"
    move = f"mv {site}/tensorflow-2.17.0+nv25.2.dist-info {site}/tensorflow-2.18.0.dist-info"
    said = refused(bed, derived(bed, image, move, tmp_path))
    assert "tensorflow.version: locked 2.17.0+nv25.2, live 2.18.0; " in said
    assert "tensorflow.nvidia_build: locked nv25.2, live none; " in said


@exhaustive
def test_a_missing_gpu_is_refused(bed: Bed, tmp_path: Path, ngc_lock: dict[str, Any], stock: Path) -> None:
    gpu = {"driver_version": "570.86.10", "devices": {"0": {"name": "NVIDIA H100 80GB HBM3"}}}
    lock = {**ngc_lock, "facts": {**ngc_lock["facts"], "gpu": gpu}}
    made = project(bed, tmp_path / "gpu", lock, stock)
    done = made("build", "--base", bed.ngc)
    assert done.returncode == 0, done.stderr
    assert "it is the locked environment. This machine is not the locked one (gpu), so the image refuses" in done.stderr
    assert "gpu: locked NVIDIA H100 80GB HBM3, driver 570.86.10, live none" in refused(bed, made.image["id"])


def test_the_emergency_switch_is_loud(bed: Bed, image: str) -> None:
    run = ["run", "--rm", "--network=none", "-e", "TF_ENABLE_ONEDNN_OPTS=1"]
    warned = bed.engine.docker(*run, "-e", "ENVLOCK_MODE=warn", image, "echo", "started")
    assert warned.stdout == "started\n"
    told = "warning: ENVLOCK_MODE=warn, so this does not stop the program: does not match"
    assert told in warned.stderr
    off = bed.engine.docker(*run, "-e", "ENVLOCK_MODE=off", image, "echo", "started")
    assert off.stdout == "started\n"
    assert "envlock: warning: ENVLOCK_MODE=off, the environment is not verified\n" in off.stderr


def full(image: dict[str, Any]) -> list[str]:
    """Return the layers that hold something: of WORKDIR only BuildKit makes one."""
    return [layer for layer in image["layers"] if layer != EMPTY_LAYER]


@exhaustive
def test_the_same_image_from_another_place_umask_and_builder(
    bed: Bed, tmp_path: Path, ngc_lock: dict[str, Any], stock: Path
) -> None:
    images = {}
    for place, engine, umask in [("a", "buildx", 0o022), ("b/c", "buildx", 0o077), ("d", "docker", 0o027)]:
        made = project(bed, tmp_path / place, ngc_lock, stock)
        done = made("build", "--base", bed.ngc, "--engine", engine, "--no-cache", umask=umask)
        assert done.returncode == 0, done.stderr
        images[place] = made.image
    assert images["a"]["id"] == images["b/c"]["id"]
    assert images["a"]["layers"] == images["b/c"]["layers"]
    assert full(images["a"]) == full(images["d"])
    assert images["a"]["config"] == images["d"]["config"]


def list_nameless(bed: Bed, image: str) -> set[str]:
    """Return the images without a name that have the lockfile of this one; tests beside this one make others."""
    label = "io.github.tf-envlock.lock"
    held = bed.engine.docker("image", "inspect", "-f", f'{{{{index .Config.Labels "{label}"}}}}', image).stdout.strip()
    assert held.startswith("sha256:")
    filters = ("--filter", "dangling=true", "--filter", f"label={label}={held}")
    return set(bed.engine.docker("images", "-q", "--no-trunc", *filters).stdout.split())


@exhaustive
def test_check_says_identical_or_which_files_differ(ngc: Project, bed: Bed, ngc_lock: dict[str, Any]) -> None:
    # A lockfile of its own: those of tests beside this one would have the same label.
    ngc.write({**ngc_lock, "project": {"commit": "ab" * 20}})
    assert ngc("build", "--base", bed.ngc).returncode == 0
    done = ngc("build", "--rebuild")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("identical: the same image ID\n")  # after lines of a builder that takes long
    image = ngc.image["id"]
    before = list_nameless(bed, image)
    done = ngc("build", "--rebuild", "--engine", "docker")
    assert (done.returncode, done.stdout, list_nameless(bed, image) - before) == (0, "", set())
    assert done.stderr.splitlines()[-1].startswith("identical in layers and configuration (its ID differs: docker ")
    held = json.loads((ngc.folder / "envlock.lock").read_bytes())
    wheel = demo_wheel(ngc.folder / "wheelhouse", "alpha", "1.1")
    (ngc.folder / "wheelhouse" / "alpha-1.0-py3-none-any.whl").unlink()
    ngc.write({**held, "identity": identity(wheel.parent)})
    done = ngc("build", "--rebuild")
    lines = done.stderr.splitlines()
    assert done.returncode == 1
    assert "the image differs from the locked one:" in lines  # after lines of a builder that takes long
    assert "  the layers differ" in lines
    assert "  different content: /opt/venv/lib/python3.11/site-packages/alpha/__init__.py" in lines
    assert "  only in the new image: /opt/venv/lib/python3.11/site-packages/alpha-1.1.dist-info/METADATA" in lines


@exhaustive
def test_a_plain_python_with_wheels(bed: Bed, tmp_path: Path, plain_lock: dict[str, Any], stock: Path) -> None:
    images = []
    for engine in ENGINES:
        made = project(bed, tmp_path / engine, plain_lock, stock)
        done = made("build", "--base", bed.python, "--engine", engine, "--no-cache")
        assert done.returncode == 0, done.stderr
        assert "it matches under policy strict" in done.stderr
        images.append(made.image)
    assert [[layer for layer in image["layers"] if layer != EMPTY_LAYER] for image in images] == [
        images[1]["layers"]
    ] * 2
    ran = bed.engine.docker("run", "--rm", "--network=none", images[0]["id"], "alpha")
    assert ran.stdout == "1.0\n"


@exhaustive
def test_a_context_builds_without_envlock_on_any_builder(
    ngc: Project,
    tmp_path: Path,
    plain_lock: dict[str, Any],
    stock: Path,
    bed: Bed,
    start_engine: StartEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Unchanged on BuildKit, the classic builder of Docker 26 and that of 20.10: two routes, and the base for teams."""
    plain = project(bed, tmp_path / "plain", plain_lock, stock)
    for made, base in ((ngc, bed.ngc), (plain, bed.python)):
        done = made("build", "--base", base, "--output", "context")
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.endswith("wrote context: Dockerfile, .dockerignore and tars with 2 wheels\n")
    team = tmp_path / "Dockerfile.base"
    team.write_text(re.sub(r"(?m)^FROM \S+", f"FROM {bed.ngc}", (ROOT / "Dockerfile.base").read_text()))
    for engine, buildkit in ((bed.engine, "1"), (bed.engine, "0"), (start_engine("20"), "0")):
        monkeypatch.setenv("DOCKER_BUILDKIT", buildkit)
        for made in (ngc, plain):
            built = engine.docker("build", "-q", "--network=none", made.folder / "context").stdout.strip()
            assert engine.docker("run", "--rm", "--network=none", built, "beta").stdout == "2.5\n"
        built = engine.docker("build", "-q", "--network=none", "-f", team, ROOT).stdout.strip()
        assert built.startswith("sha256:")


@exhaustive
def test_an_image_that_is_not_the_locked_environment_gets_no_name(
    bed: Bed, tmp_path: Path, ngc_lock: dict[str, Any], stock: Path
) -> None:
    facts = {**ngc_lock["facts"], "numpy": {"version": "9.9", "blas": None}}
    made = project(bed, tmp_path / "other", {**ngc_lock, "facts": facts}, stock)
    before = (made.folder / "envlock.lock").read_bytes()
    done = made("build", "--base", bed.ngc, "--tag", "test/wrong:1")
    assert done.returncode == 1
    said = "the image is not the environment of envlock.lock, and test/wrong:1 is not tagged:\ndoes not match"
    assert said in done.stderr
    kept = re.search(
        r"^the image is kept without a name, to look inside: (sha256:[0-9a-f]{64})$", done.stderr, re.MULTILINE
    )
    assert kept is not None
    assert bed.engine.docker("image", "inspect", "-f", "{{.RepoTags}}", kept[1]).stdout == "[]\n"
    assert bed.engine.docker("images", "-q", "test/wrong:1").stdout == ""
    assert (made.folder / "envlock.lock").read_bytes() == before


def test_no_file_of_the_base_is_replaced_and_no_wheel_is_left(image: str, bed: Bed, tmp_path: Path) -> None:
    """In an image of NVIDIA's, but the user's name: the rest is below its own folders, or a line that leads there."""
    files = written(bed, bed.ngc, image, tmp_path)
    own = ("opt/envlock/", "opt/venv/", "home/user/")
    assert [name for name in files if not name.startswith(own)] == [
        *("etc/group", "etc/passwd", "usr/lib/python3/dist-packages/zzz_envlock.pth"),
    ]
    assert [name for name in files if name.endswith((".whl", "install.py"))] == []


@exhaustive
def test_a_base_for_teams_verifies_whatever_lock_is_put_into_it(
    bed: Bed, tmp_path: Path, stock: Path, ngc_lock: dict[str, Any]
) -> None:
    text = (ROOT / "Dockerfile.base").read_text(encoding="utf-8")
    public = next(line.split()[1] for line in text.splitlines() if line.startswith("FROM"))
    (tmp_path / "Dockerfile.base").write_text(text.replace(public, bed.ngc), encoding="utf-8")
    file = tmp_path / "Dockerfile.base"
    assert bed.engine.docker("build", "-q", "--network=none", "-f", file, "-t", "base:1", ROOT).stdout.startswith(
        "sha256:"
    )
    run = ["run", "--rm", "--network=none"]
    bare = bed.engine.docker(*run, "base:1", "true", check=False)
    assert bare.returncode == 3
    assert "lockfile not found: /opt/envlock/envlock.lock" in bare.stderr
    made = Project(bed, tmp_path / "project", ngc_lock)
    done = made("capture", "--image", "base:1", "-o", "../envlock.lock")
    assert done.returncode == 0, done.stderr
    (tmp_path / "Dockerfile").write_text("FROM base:1\nCOPY envlock.lock /opt/envlock/envlock.lock\n", encoding="utf-8")
    ours = bed.engine.docker("build", "-q", "--network=none", tmp_path).stdout.strip()
    assert bed.engine.docker(*run, ours, "echo", "started").stdout == "started\n"
    refused(bed, ours, "-e", "TF_DETERMINISTIC_OPS=0")
    refused(bed, ours, "-e", "PYTHONHASHSEED=7")
    for words in (("envlock", "verify"), ("python3", "-m", "envlock", "verify", "--deep")):
        assert bed.engine.docker(*run, ours, *words).stdout.startswith("matches under policy strict"), words
    done = made("build", "../envlock.lock", "--base", bed.ngc)
    assert "was verified inside: it matches under policy strict\n" in done.stderr, done.stderr


CONTAINER = """
[tool.envlock.container]
copy = ["train.py", "src"]
workdir = "/app"
command = ["python", "train.py"]
environ = { TEAM = "vision" }
"""
TRAIN = """
import getpass, os, pathlib, src.step
for folder in (pathlib.Path.home() / ".keras", pathlib.Path("runs")):
    folder.mkdir()
print(os.getuid(), getpass.getuser(), os.getcwd(), os.environ["TEAM"], src.step.NAME, os.access("train.py", os.W_OK))
"""


@exhaustive
def test_a_project_with_its_code_user_and_command(
    bed: Bed, tmp_path: Path, plain_lock: dict[str, Any], stock: Path
) -> None:
    made = project(bed, tmp_path / "p", plain_lock, stock)
    (made.folder / "pyproject.toml").write_text(CONTAINER, encoding="utf-8")
    (made.folder / "train.py").write_text(TRAIN, encoding="utf-8")
    (made.folder / "src").mkdir()
    (made.folder / "src" / "step.py").write_text("NAME = 'step'\n", encoding="utf-8")
    done = made("build", "--base", bed.python)
    assert done.returncode == 0, done.stderr
    run = ["run", "--rm", "--network=none"]
    assert bed.engine.docker(*run, made.image["id"]).stdout == "1000 user /app vision step False\n"
    ran = bed.engine.docker(*run, "-e", "USER=me", "--user", "4321:99", made.image["id"])
    assert ran.stdout == "4321 me /app vision step False\n"
    (made.folder / "pyproject.toml").unlink()  # the lock knows it all
    done = made("build", "--rebuild")
    assert done.stderr.endswith("identical: the same image ID\n")
    classic = made("build", "--rebuild", "--engine", "docker")
    assert classic.stderr.splitlines()[-1].startswith("identical in layers and configuration"), classic.stderr
    (made.folder / "src" / "step.py").write_text("NAME = 'other'\n", encoding="utf-8")
    done = made("build", "--rebuild")
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (1, ["  different content: /app/src/step.py"])


DONOR = """\
FROM {python}
COPY ldd /usr/bin/ldd
RUN cp -a /usr/lib/python3.11/. /usr/local/lib/python3.11/ && rm /usr/local/bin/python \\
    && cp /usr/bin/python3.11 /usr/local/bin/python3 && rm -rf /usr/bin/python3* /usr/lib/python3*
"""
PYTHONLESS = """\
FROM {python}
COPY ldconfig /sbin/ldconfig
RUN rm -rf /usr/bin/python3* /usr/lib/python3* /usr/local/lib/python3* /usr/local/bin/python /usr/share/python-wheels \\
    && rm -f /usr/lib/x86_64-linux-gnu/libffi.so.8* /usr/lib/x86_64-linux-gnu/libsqlite3.so.0* \\
    && mkdir -p /etc/ld.so.conf.d && echo 'include /etc/ld.so.conf.d/*.conf' > /etc/ld.so.conf
"""


@exhaustive
def test_a_python_from_another_image(bed: Bed, tmp_path: Path, plain_lock: dict[str, Any], stock: Path) -> None:
    donor = published(bed, tmp_path / "donor", DONOR, "nvidia/render-python")
    bare = published(bed, tmp_path / "bare", PYTHONLESS, "nvidia/render-cuda")
    base = {
        "name": "nvcr.io/nvidia/render-cuda",
        "tag": "1",
        "digest": bare,
        "manifest": None,
        "route": "cuda",
        "platform": "linux/amd64",
        "reason": "A test.",
        "python": {"name": "nvcr.io/nvidia/render-python", "tag": "1", "digest": donor, "manifest": None},
    }
    images = []
    made = project(bed, tmp_path / "a", {**plain_lock, "base_image": base}, stock)
    for engine in ("buildx", "buildx", "docker"):
        done = made("build", "--engine", engine, "--no-cache")
        assert done.returncode == 0, done.stderr
        assert "it matches under policy strict" in done.stderr
        images.append(made.image)
    code = "import ctypes, sqlite3, ssl, beta; print(beta.__version__)"
    ran = bed.engine.docker("run", "--rm", "--network=none", images[0]["id"], "python", "-c", code)
    assert ran.stdout == "2.5\n"
    assert images[0]["id"] == images[1]["id"]
    assert full(images[0]) == full(images[2])


STEP = """
import envlock
match = envlock.assert_locked().match
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
tf.keras.utils.set_random_seed(1)
losses = model.fit(tf.random.normal((32, 8)), tf.random.normal((32, 1)), epochs=1, verbose=0).history["loss"]
print(tf.__version__, losses[0] > 0, match)
"""


@exhaustive
@pytest.mark.slow
def test_a_real_tensorflow_trains_in_its_image(bed: Bed, tmp_path: Path) -> None:
    """The wheels come from the package index, the image from nobody's network."""
    wheels = tmp_path / "wheels"
    download = [sys.executable, "-m", "pip", "download", "-q", "-d", str(wheels), "--only-binary=:all:"]
    target = ["--python-version", "3.11", "--platform", "manylinux2014_x86_64", "--platform", "manylinux_2_28_x86_64"]
    subprocess.run([*download, *target, "tensorflow-cpu==2.18.1"], check=True, timeout=600)
    lock = captured(bed, bed.python, wheels, system=False)
    assert lock["facts"]["tensorflow"]["version"] == "2.18.1"
    made = project(bed, tmp_path / "real", lock, wheels)
    started = time.monotonic()
    done = made("build", "--base", bed.python, "--tag", "test/real:1", timeout=1200)
    seconds = time.monotonic() - started
    assert done.returncode == 0, done.stderr
    assert "test/real:1 was verified inside: it matches under policy strict\n" in done.stderr
    started = time.monotonic()
    ran = bed.engine.docker("run", "--rm", "--network=none", "test/real:1", "python", "-c", STEP)
    assert ran.stdout == "2.18.1 True True\n"
    size = int(bed.engine.docker("image", "inspect", "-f", "{{.Size}}", "test/real:1").stdout)
    print(
        f"image {size / 1e9:.2f} GB, built in {seconds:.0f} s, import and a step in {time.monotonic() - started:.0f} s"
    )
    bed.engine.docker("rmi", "-f", made.image["id"])


TRAINING = """
import os, signal, subprocess, sys, time
subprocess.run(["sh", "-c", "sleep 0 &"], check=True)
if "--save" in sys.argv:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(os.write(1, b"saved\\n")))
print("ready", os.getpid() != 1, os.environ["CONFIG"], open("d\u00e4ten/l i\u2013nk.txt", encoding="utf-8").read())
end = time.monotonic() + 60
while time.monotonic() < end:
    time.sleep(0.1)
    names = [name for name in os.listdir("/proc") if name.isdigit()]
    if "--count" in sys.argv and len(names) == 2:
        sys.exit(0)
"""


def train(bed: Bed, image: str, *options: str) -> str:
    """Start a training in the background, wait for its first line, and return the container's name."""
    name = bed.engine.docker("run", "-d", "--network=none", image, "python", "train.py", *options).stdout.strip()
    for _ in range(300):
        log = bed.engine.docker("logs", name).stdout
        if log:
            assert log == 'ready True {"lr": 0.1, "name": "\u00fc"} content\n', "not buffered"
            return name
        time.sleep(0.1)
    raise AssertionError(bed.engine.docker("logs", name).stderr)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_training_ends_when_it_is_told_to(engine: str, ngc: Project, bed: Bed) -> None:
    (ngc.folder / "train.py").write_text(TRAINING, encoding="utf-8")
    (ngc.folder / "d\u00e4ten").mkdir()
    (ngc.folder / "d\u00e4ten" / "a b.txt").write_text("content", encoding="utf-8")
    (ngc.folder / "d\u00e4ten" / "l i\u2013nk.txt").symlink_to("a b.txt")
    settings = """[tool.envlock.container]
copy = ["train.py", "d\u00e4ten"]
workdir = "/app"
environ = { CONFIG = '{"lr": 0.1, "name": "\u00fc"}', PYTHONDONTWRITEBYTECODE = "1" }
"""
    (ngc.folder / "pyproject.toml").write_text(settings, encoding="utf-8")
    tag = f"test/stop:{engine}"
    done = ngc("build", "--base", bed.ngc, "--engine", engine, "--tag", tag)
    assert done.returncode == 0, done.stderr
    for options, code in (((), "143"), (("--save",), "6")):
        name = train(bed, tag, *options)
        start = time.monotonic()
        bed.engine.docker("stop", name)
        seconds = time.monotonic() - start
        found = bed.engine.docker("inspect", "-f", "{{.State.ExitCode}}", name).stdout.strip()
        print(f"docker stop, built by {engine}, {options}: {seconds:.1f} s, exit code {found}")
        assert (found, seconds < 3) == (code, True)
        assert ("saved" in bed.engine.docker("logs", name).stdout) is (code == "6")
    # Only the first process and the training are left: the orphan was waited for.
    name = train(bed, tag, "--count")
    assert bed.engine.docker("wait", name).stdout.strip() == "0"


def test_an_unchanged_build_is_not_done_again(ngc: Project, bed: Bed) -> None:
    (ngc.folder / "train.py").write_text("print(1)\n", encoding="utf-8")
    settings = '[tool.envlock.container]\ncopy = ["train.py"]\nworkdir = "/app"\n'
    (ngc.folder / "pyproject.toml").write_text(settings, encoding="utf-8")
    ngc.environ["XDG_CACHE_HOME"] = str(ngc.folder / "cache")

    def build(*options: str) -> tuple[str, float]:
        start = time.monotonic()
        done = ngc("build", "--base", bed.ngc, "--tag", "test/same:1", *options)
        assert "test/same:1 was verified inside: it matches under policy strict\n" in done.stderr, done.stderr
        return str(ngc.image["id"]), time.monotonic() - start

    first, _ = build()
    again, seconds = build()
    assert again == first
    print(f"an unchanged build: {seconds:.1f} s")
    # Every step again: the same image, so what was taken before was right.
    assert build("--no-cache")[0] == first
    (ngc.folder / "train.py").write_text("print(2)\n", encoding="utf-8")
    changed, _ = build()
    assert changed != first
    ran = bed.engine.docker("run", "--rm", "--network=none", "test/same:1", "python3", "train.py")
    assert ran.stdout == "2\n"
    # A note of another user's, and one that names something else, are not believed.
    (note,) = [file for file in (ngc.folder / "cache" / "envlock" / "images").iterdir() if file.read_text() == changed]
    note.chmod(0o666)
    note.write_text(first)
    assert build()[0] == changed
    bed.engine.docker("rmi", "-f", changed)
    assert build()[0] == changed


def test_only_what_has_changed_is_sent_to_buildkit_again(ngc: Project, bed: Bed) -> None:
    settings = '[tool.envlock.container]\ncopy = ["train.py"]\n'
    (ngc.folder / "pyproject.toml").write_text(settings, encoding="utf-8")
    program = ngc.folder / "train.py"

    # Of no other run of this test.
    made = f"made-{time.monotonic_ns()}"

    def send() -> int:
        done = ngc("build", "--base", bed.ngc, "--output", made)
        assert done.returncode == 0, done.stderr
        words = ["buildx", "build", "--progress=plain", "--provenance=false", "--network=none"]
        said = bed.engine.docker(*words, ngc.folder / made).stderr
        number, unit = re.findall(r"transferring context: ([0-9.]+)([kM]?)B", said)[-1]
        return int(float(number) * {"": 1, "k": 1000, "M": 1_000_000}[unit])

    program.write_text("print(1)\n", encoding="utf-8")
    first = send()
    # Of the same size.
    program.write_text("print(2)\n", encoding="utf-8")
    sizes = {file.name: file.stat().st_size for file in (ngc.folder / made).glob("*.tar")}
    again = send()
    changed = sizes["code.tar"] + sizes["lock.tar"]
    assert first > sizes["runtime.tar"]
    assert again < changed + 2000


def test_a_project_is_sent_from_one_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_build, "write_context", lambda *_: None)
    sent: list[Path] = []
    engine: Any = SimpleNamespace(build=lambda order, on_line: sent.append(order.context))
    chosen: Any = SimpleNamespace(kept=SimpleNamespace(platform=None))
    for folder in ("one", "one", "two"):
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        image_build._build(planned("wheels"), chosen, engine, image_build.Wish(), print)
    assert sent[0] == sent[1]
    assert sent[0].name != sent[2].name


@exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("builder", ["podman", "buildah"])
def test_podman_stops_a_training_too(
    builder: str, bed: Bed, plain_lock: dict[str, Any], stock: Path, store: Podman, tmp_path: Path
) -> None:
    made = Project(bed, tmp_path / "p", plain_lock, store.environ)
    shutil.copytree(stock, made.folder / "wheelhouse")
    (made.folder / "train.py").write_text(TRAINING.replace("d\u00e4ten/l i\u2013nk.txt", "train.py"), encoding="utf-8")
    settings = """[tool.envlock.container]
copy = ["train.py"]
environ = { CONFIG = '{"lr": 0.1, "name": "\u00fc"}' }
"""
    (made.folder / "pyproject.toml").write_text(settings, encoding="utf-8")
    done = made("build", "--base", bed.python, "--engine", builder, "--tag", "test/stop:1")
    assert "test/stop:1 was verified inside: it matches under policy strict\n" in done.stderr, done.stderr

    def call(*words: str) -> str:
        command = [*bed.engine.enter, "podman", *words]
        environ = {**os.environ, **store.environ}
        return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=True).stdout

    for options, code in (((), "143"), (("--save",), "6")):
        name = call("run", "-d", "--network=none", "test/stop:1", "python", "train.py", *options).strip()
        for _ in range(300):
            if "ready" in call("logs", name):
                break
            time.sleep(0.1)
        assert 'ready True {"lr": 0.1, "name": "\u00fc"}' in call("logs", name)
        start = time.monotonic()
        call("stop", name)
        seconds = time.monotonic() - start
        found = call("inspect", "-f", "{{.State.ExitCode}}", name).strip()
        print(f"podman stop, built by {builder}, {options}: {seconds:.1f} s, exit code {found}")
        assert (found, seconds < 5) == (code, True)
