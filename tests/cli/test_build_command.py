"""`envlock build` as a shell sees it, without an engine and without a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envlock.image.engines import AUTO, ENGINES
from tests.conftest import Command
from tests.image.bases.registries import Shelf
from tests.image.plans import DIGEST, lock, without
from tests.locks import encode
from tests.packages.web.hostile import hostile

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
PUBLIC = "sha256:c83b37d26f19ab00d8a13cf974edd079c3d099918ec3110c304a989d6e2f75d5"
HELD = without(lock(), "mine")


def write(envlock: Command, **changes: Any) -> None:
    held = {key: value for key, value in {**HELD, **changes}.items() if value is not ...}
    (envlock.folder / "envlock.lock").write_bytes(encode(held))


def test_a_dry_run_prints_the_dockerfile_and_writes_nothing(envlock: Command) -> None:
    write(envlock, image=...)
    done = envlock("build", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert f"\nFROM nvcr.io/nvidia/tensorflow:25.02-tf2-py3@{DIGEST}\n" in done.stdout
    assert 'ENTRYPOINT ["/opt/nvidia/nvidia_entrypoint.sh", "/opt/venv/bin/python"' in done.stdout
    assert [item.name for item in envlock.folder.iterdir()] == ["envlock.lock"]


def test_a_dry_run_knows_what_the_last_build_read_of_the_base(envlock: Command) -> None:
    write(envlock)
    done = envlock("build", "--dry-run", "--quiet")
    assert 'ENTRYPOINT ["/entry.sh", "/opt/venv/bin/python"' in done.stdout
    assert done.stderr == ""


def test_a_dry_run_takes_a_digest_that_is_known_in_public(envlock: Command) -> None:
    write(envlock, image=..., base_image=...)
    done = envlock("build", "--dry-run", "--base", "nvcr.io/nvidia/tensorflow:25.02-tf2-py3")
    assert done.returncode == 0, done.stderr
    assert (f"\nFROM nvcr.io/nvidia/tensorflow:25.02-tf2-py3@{PUBLIC}\n") in done.stdout


def test_a_release_is_pinned_by_way_of_a_mirror(envlock: Command) -> None:
    write(envlock, image=..., base_image=...)
    shelf = Shelf("mirror/nvidia/tensorflow")
    with hostile(shelf.reply) as server:
        mirror = f"nvcr.io=127.0.0.1:{server.port}/mirror"
        release = "nvcr.io/nvidia/tensorflow:25.02-tf2-py3"
        asked = ("build", "--pin", "--mirror", mirror, "--base", release)
        missing = envlock(*asked)
        assert missing.returncode == 5
        assert missing.stderr.startswith(
            f"error: 127.0.0.1:{server.port} has no mirror/nvidia/tensorflow:25.02-tf2-py3\n"
        )
        digest = shelf.index("25.02-tf2-py3", amd64=shelf.image())
        moved = envlock(*asked)
        assert moved.returncode == 1
        assert (
            f"known {PUBLIC}, served {digest} by 127.0.0.1:{server.port}\nhint: build on the known one" in moved.stderr
        )
        accepted = envlock(*asked[:-1], f"{release}@{digest}")
        assert accepted.returncode == 0, accepted.stderr
    base = json.loads((envlock.folder / "envlock.lock").read_text())["base_image"]
    assert (base["name"], base["tag"], base["digest"]) == ("nvcr.io/nvidia/tensorflow", "25.02-tf2-py3", digest)


def test_a_dry_run_asks_nobody_for_a_digest_and_says_what_is_not_pinned(envlock: Command) -> None:
    write(envlock, image=..., base_image=...)
    done = envlock("build", "--dry-run", "--base", "team/tensorflow:1")
    assert done.returncode == 0, done.stderr
    assert "\nFROM docker.io/team/tensorflow:1 AS built\n" in done.stdout
    assert "not pinned: a tag can move, and --pin records the digest.\n" in done.stdout
    assert "image.base.digest" not in done.stdout
    assert (
        "warning: docker.io/team/tensorflow:1 is not pinned: its digest is unknown offline; "
        "run `envlock build --pin` to record it\n"
    ) in done.stderr


def test_a_dry_run_of_a_fresh_lock_marks_what_is_still_unknown(envlock: Command) -> None:
    (envlock.folder / "pyproject.toml").write_text('[tool.envlock.container]\napt = ["libgl1"]\n')
    packages = {name: {"version": "1.0"} for name in ("aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh")}
    facts = {**UBUNTU, "packages": packages}
    write(envlock, image=..., base_image=..., identity=..., facts=facts, unavailable={})
    done = envlock("build", "--dry-run")
    assert (done.returncode, done.stderr.splitlines()) == (
        0,
        [
            "warning: docker.io/library/ubuntu:22.04 is not pinned: its digest is unknown offline; run `envlock build "
            "--pin` to record it"
        ],
    )
    assert "envlock build finds it: the Debian packages libgl1.\nADD still-unknown-apt.tar /\nRUN [" in done.stdout
    assert (
        "# Not known yet, and envlock build finds it: the wheels of aa, bb, cc, dd, ee, ff and 2 more.\n"
        "ADD still-unknown-wheels.tar /\n\n"
    ) in done.stdout


@pytest.mark.parametrize("other", ["--pin", "--push"])
def test_what_needs_the_network_is_not_offline(other: str, envlock: Command) -> None:
    write(envlock)
    done = envlock("build", "--offline", other)
    assert (done.returncode, done.stderr) == (
        2,
        f"error: `--offline` and `{other}` exclude each other\nhint: remove `{other}`\n",
    )


def test_a_dry_run_asks_no_mirror(envlock: Command) -> None:
    write(envlock)
    done = envlock("build", "--dry-run", "--mirror", "nvcr.io=a.example")
    message = "error: `--dry-run` and `--mirror` exclude each other\nhint: remove `--mirror`\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


UBUNTU: dict[str, Any] = {
    "tensorflow": {"version": "2.19.1", "cuda_build": False},
    "python": {"version": "3.11.13", "compiler": "Clang 20.1.4"},
    "system": {"os": "ubuntu", "os_version": "22.04", "libc": "glibc", "libc_version": "2.35", "machine": "x86_64"},
    "packages": {},
}


def test_a_fresh_lock_of_uvs_python_on_ubuntu_is_rendered_offline(envlock: Command) -> None:
    write(envlock, image=..., base_image=..., facts=UBUNTU, unavailable={}, identity={"packages": {}})
    done = envlock("build", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "\nFROM docker.io/library/ubuntu:22.04\nADD python.tar /\n" in done.stdout
    assert 'RUN ["/opt/python/bin/python3", "-B", "/opt/envlock/install.py", ' in done.stdout


@pytest.mark.parametrize("args", [(), ("--dry-run",), ("--output", "context"), ("--pin",)])
def test_what_cannot_match_is_refused_before_anybody_is_asked(args: tuple[str, ...], envlock: Command) -> None:
    write(envlock, image=..., base_image=..., facts=UBUNTU, unavailable={}, identity={"packages": {}})
    done = envlock(
        "build", "--base", "python:3.11.13-slim-bookworm", *args, environ={"DOCKER_HOST": "tcp://127.0.0.1:1"}
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: cannot match under policy strict: system.libc_version is 2.36, locked 2.35; system.os is debian, "
        "locked ubuntu; system.os_version is 12, locked 22.04 (docker.io/library/python:3.11.13-slim-bookworm)\n"
        "hint: use docker.io/library/ubuntu:22.04, which can: `--base docker.io/library/ubuntu:22.04`\n"
    )


def test_a_lock_from_a_mac_is_refused(envlock: Command) -> None:
    mac = {**UBUNTU, "system": {"kernel": "Darwin", "machine": "arm64"}}
    write(envlock, image=..., base_image=..., facts=mac, unavailable={}, identity={"packages": {}})
    done = envlock("build", "--dry-run")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "error: the lockfile is from macOS (arm64), and images hold Linux",
    )


def test_a_lock_from_stdin(envlock: Command) -> None:
    done = envlock("build", "-", "--dry-run", "-q", stdin=encode(HELD))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ["--engine", "cri-o"],
            f"error: unknown container engine `cri-o`\nhint: choose from: {', '.join((AUTO, *ENGINES))}\n",
        ),
        (["--network", "x"], "error: unknown network `x`\nhint: choose from: none, host, default\n"),
        (
            ["--dry-run", "--base", "python"],
            "error: python has neither a tag nor a digest\nhint: use python:TAG\n",
        ),
        (
            ["--rebuild"],
            "error: envlock.lock has no recorded image\nhint: run `envlock build` to build and record one\n",
        ),
    ],
)
def test_wrong_use(args: list[str], said: str, envlock: Command) -> None:
    write(envlock, image=..., base_image=...)
    done = envlock("build", *args)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_without_an_engine_it_is_exit_5(envlock: Command) -> None:
    write(envlock)
    environ = {"DOCKER_HOST": f"unix://{envlock.folder}/none.sock", "HOME": str(envlock.folder)}
    done = envlock("build", environ=environ)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 2
    assert [item.name for item in envlock.folder.iterdir()] == ["envlock.lock"]
