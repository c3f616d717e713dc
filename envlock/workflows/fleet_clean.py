"""What finished jobs have left in a shared folder is removed: files that envlock wrote, and nothing else."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from envlock.fleet.job_files import NONCE, could_be_ours, is_draft, is_ours
from envlock.runtime import strict_json
from envlock.runtime.errors import UsageError
from envlock.runtime.report import clean, count

DAYS = 7.0
MOST_FILES = 1_000_000  # looked at in one call
LARGEST = 1 << 26  # bytes of a file that is read
SHOWN = 20  # lines on single jobs
DAY = 86_400.0  # seconds
HERE = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass
class Cleaned:
    """What has been removed, or would be.

    Attributes:
        jobs: files and bytes by job.
        kept: why something stays, by job; a job that is not old enough is not named.
        failed: how many files could not be removed.
        is_whole: whether the whole folder was looked at.
    """

    jobs: dict[str, tuple[int, int]] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    failed: int = 0
    is_whole: bool = True

    def lines(self, *, dry_run: bool = False) -> list[str]:
        """Return a line for each of the first jobs, and the sum."""
        found = [f"  job {clean(job)}: {_amount(*amount)}" for job, amount in self.jobs.items()]
        found += [f"  job {clean(job)} is kept: {why}" for job, why in self.kept.items()]
        left = len(found) - SHOWN
        found[SHOWN:] = [f"  and {count(left, 'more line')}"] if left > 0 else []
        files, size = (sum(each[part] for each in self.jobs.values()) for part in (0, 1))
        verb = "would remove" if dry_run else "removed"
        found.append(f"{verb} {_amount(files, size)} of {count(len(self.jobs), 'job')}")
        return (
            found
            if self.is_whole
            else [*found, f"stopped after {MOST_FILES:,} files: run it again"]
        )


def _amount(files: int, size: int) -> str:
    return f"{count(files, 'file')}, {size / 1000:,.1f} kB"


@dataclass
class _Job:
    """The files of one job, as (folder of the attempt or empty, name).

    Drafts come first: where a removal is cut short, the files that are left still show whose folder it is.
    """

    files: list[tuple[str, str]] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
    size: int = 0
    newest: float = 0.0
    is_known: bool = False
    others: int = 0


def clean_fleet(path: str, days: float = DAYS, *, dry_run: bool = False) -> Cleaned:
    """Remove what envlock wrote to the folders of jobs whose newest file is older than `days`; links are not followed.

    Raises:
        UsageError: the folder cannot be read.
    """
    done = Cleaned()
    left = MOST_FILES
    try:
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        hint = "name the folder that jobs share: ENVLOCK_FLEET_DIR"
        raise UsageError(f"cannot read {path}: {error.strerror}", hint=hint) from None
    try:
        for name in _names(top):
            with _opened(name, top) as folder:
                if folder is None:
                    continue
                job = _looked(folder, left)
                left -= len(job.files) + job.others
                if left <= 0:
                    done.is_whole = False
                    break
                if job.is_known and time.time() - job.newest >= days * DAY:
                    _remove(name, job, folder, done, dry_run=dry_run)
            if name in done.jobs and name not in done.kept and not dry_run:
                _remove_folder(name, top, done)
    finally:
        os.close(top)
    return done


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)


@contextmanager
def _opened(name: str, parent: int) -> Iterator[int | None]:
    """Open a folder that is no link; None where it is something else."""
    try:
        found = os.open(name, HERE, dir_fd=parent)
    except OSError:
        yield None
        return
    try:
        yield found
    finally:
        os.close(found)


def _looked(folder: int, left: int) -> _Job:
    """Return what is in the folder of a job; at most `left` files are looked at."""
    job = _Job()
    _add(job, folder, "", left)
    job.files.sort(
        key=lambda each: (not is_draft(each[1], in_attempt=bool(each[0])), not each[0], each)
    )
    return job


def _add(job: _Job, folder: int, attempt: str, left: int) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if len(job.files) + job.others >= left:
                return
            found = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode) and not attempt and NONCE.fullmatch(entry.name):
                with _opened(entry.name, folder) as inside:
                    if inside is not None:
                        job.attempts.append(entry.name)
                        _add(job, inside, entry.name, left)
                continue
            job.newest = max(job.newest, found.st_mtime)
            is_known = stat.S_ISREG(found.st_mode) and _is_known(
                entry.name, folder, found.st_size, attempt
            )
            if is_known or (
                stat.S_ISREG(found.st_mode) and is_draft(entry.name, in_attempt=bool(attempt))
            ):
                job.files.append((attempt, entry.name))
                job.size += found.st_size
                job.is_known = job.is_known or is_known
            else:
                job.others += 1


def _is_known(name: str, folder: int, size: int, attempt: str) -> bool:
    """Return whether a file has a name and JSON values that envlock writes."""
    if not could_be_ours(name, in_attempt=bool(attempt)) or size > LARGEST:
        return False
    try:
        file = os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
        )
        with os.fdopen(file, "rb") as stream:
            return is_ours(name, strict_json.parse(stream.read(LARGEST)), in_attempt=bool(attempt))
    except (OSError, ValueError):
        return False


def _remove(name: str, job: _Job, folder: int, done: Cleaned, *, dry_run: bool) -> None:
    """Remove the files of a job, and the folders of its attempts that are empty then."""
    failed = 0
    for attempt, file in () if dry_run else job.files:
        with _opened(attempt or ".", folder) as inside:
            try:
                os.unlink(file, dir_fd=inside)
            except OSError:
                failed += 1
    done.jobs[name] = (len(job.files) - failed, job.size)
    done.failed += failed
    if job.others:
        done.kept[name] = f"{count(job.others, 'file')} of another kind"
    if failed:
        done.kept[name] = f"{count(failed, 'file')} cannot be removed"
    for attempt in () if dry_run else job.attempts:
        with suppress(OSError):  # something else is in it, and has been counted
            os.rmdir(attempt, dir_fd=folder)


def _remove_folder(name: str, top: int, done: Cleaned) -> None:
    try:
        os.rmdir(name, dir_fd=top)
    except OSError as error:
        done.kept[name] = f"its folder stays: {error.strerror}"
