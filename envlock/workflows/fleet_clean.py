"""Remove the files of finished jobs from a shared folder; only files that envlock wrote are
removed.
"""

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

DAYS = 7.0  # clusters commonly limit a job to less, so its folder is not that of a running one
MOST_FILES = 1_000_000  # files examined in one call
LARGEST = 1 << 26  # bytes that are read of a file
SHOWN = 20  # lines about single jobs
DAY = 86_400.0  # seconds
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass
class Cleaned:
    """What has been removed, or would be.

    Attributes:
        jobs: files and bytes by job.
        kept: why files were kept, by job; jobs that are not old enough are not listed.
        failed: how many files could not be removed.
        is_whole: whether the whole folder was examined.
    """

    jobs: dict[str, tuple[int, int]] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    failed: int = 0
    is_whole: bool = True

    def describe(self, *, dry_run: bool = False) -> list[str]:
        """Return a line for each of the first jobs, and one with the totals."""
        texts = []
        all_files = 0
        all_bytes = 0
        for job, (files, size) in self.jobs.items():
            texts.append(f"  job {clean(job)}: {_format_amount(files, size)}")
            all_files += files
            all_bytes += size
        for job, reason in self.kept.items():
            texts.append(f"  job {clean(job)} is kept: {reason}")
        left = len(texts) - SHOWN
        if left > 0:
            texts[SHOWN:] = [f"  and {count(left, 'more line')}"]
        verb = "would remove" if dry_run else "removed"
        amount = _format_amount(all_files, all_bytes)
        texts.append(f"{verb} {amount} of {count(len(self.jobs), 'job')}")
        if not self.is_whole:
            texts.append(f"stopped after {MOST_FILES:,} files: run it again")
        return texts


def _format_amount(files: int, size: int) -> str:
    return f"{count(files, 'file')}, {size / 1000:,.1f} kB"


@dataclass
class _Job:
    """The files of one job, as (folder of the attempt or empty, name).

    Drafts come first: where a removal is cut short, the files that are left still show whose folder
    it is.
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
        for name in _list_names(top):
            with _open_folder(name, top) as folder:
                if folder is None:
                    continue
                job = _survey_job(folder, left)
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


def _list_names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)


@contextmanager
def _open_folder(name: str, parent: int) -> Iterator[int | None]:
    """Open a folder that is not a link; yield None if it is something else."""
    try:
        folder = os.open(name, FOLDER, dir_fd=parent)
    except OSError:
        yield None
        return
    try:
        yield folder
    finally:
        os.close(folder)


def _survey_job(folder: int, left: int) -> _Job:
    """Return the files in the folder of a job; at most `left` files are examined."""
    job = _Job()
    _add_entries(job, folder, "", left)
    job.files.sort(key=_get_order)
    return job


def _get_order(file: tuple[str, str]) -> tuple[bool, bool, tuple[str, str]]:
    """Return the position of a file in the order of removal: drafts first, then the files of
    attempts.
    """
    attempt, name = file
    return not is_draft(name, in_attempt=bool(attempt)), not attempt, file


def _add_entries(job: _Job, folder: int, attempt: str, left: int) -> None:
    """Add what is in the folder of a job, or of one attempt at it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if len(job.files) + job.others >= left:
                return
            found = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode) and not attempt and NONCE.fullmatch(entry.name):
                with _open_folder(entry.name, folder) as inside:
                    if inside is not None:
                        job.attempts.append(entry.name)
                        _add_entries(job, inside, entry.name, left)
                continue
            job.newest = max(job.newest, found.st_mtime)
            _add_file(job, folder, entry.name, attempt, found)


def _add_file(job: _Job, folder: int, name: str, attempt: str, found: os.stat_result) -> None:
    """Add one file to those of the job, or count what is neither a file nor the folder of an
    attempt.
    """
    if stat.S_ISREG(found.st_mode):
        is_known = _is_known(name, folder, found.st_size, attempt)
        if is_known or is_draft(name, in_attempt=bool(attempt)):
            job.files.append((attempt, name))
            job.size += found.st_size
            # A draft alone does not show whose folder this is: its content can be anything.
            job.is_known = job.is_known or is_known
            return
    job.others += 1


def _is_known(name: str, folder: int, size: int, attempt: str) -> bool:
    """Return whether a file has a name and JSON values that only envlock writes."""
    if not could_be_ours(name, in_attempt=bool(attempt)) or size > LARGEST:
        return False
    try:
        # Opening must not block if the file is replaced by a FIFO at this moment.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as stream:
            return is_ours(name, strict_json.parse(stream.read(LARGEST)), in_attempt=bool(attempt))
    except (OSError, ValueError):
        return False


def _remove(name: str, job: _Job, folder: int, done: Cleaned, *, dry_run: bool) -> None:
    """Remove the files of a job, and then the folders of its attempts that are empty."""
    failed = 0
    if not dry_run:
        failed = _remove_files(job, folder)
    done.jobs[name] = (len(job.files) - failed, job.size)
    done.failed += failed
    if job.others:
        done.kept[name] = f"{count(job.others, 'file')} of another kind"
    if failed:
        done.kept[name] = f"{count(failed, 'file')} cannot be removed"
    if not dry_run:
        for attempt in job.attempts:
            # A folder that contains something else is kept; that has been counted.
            with suppress(OSError):
                os.rmdir(attempt, dir_fd=folder)


def _remove_files(job: _Job, folder: int) -> int:
    """Remove the files of a job, and return how many of them could not be removed."""
    failed = 0
    for attempt, file in job.files:
        # Through the folder's descriptor, not by a path, in which another user of the shared folder
        # could have put a link since the survey.
        with _open_folder(attempt or ".", folder) as inside:
            try:
                os.unlink(file, dir_fd=inside)
            except OSError:
                failed += 1
    return failed


def _remove_folder(name: str, top: int, done: Cleaned) -> None:
    try:
        os.rmdir(name, dir_fd=top)
    except OSError as error:
        done.kept[name] = f"its folder stays: {error.strerror}"
