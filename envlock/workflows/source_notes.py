"""Notes on the sources of editable installs, so that line 1 of a script need not read them again."""

from __future__ import annotations

import os
import time
from pathlib import Path

from envlock.packages.installation import collect_distributions
from envlock.packages.live_environment import LiveEnvironment
from envlock.packages.sources import as_installed, find_source
from envlock.runtime.data_contents import is_settled, read_note
from envlock.runtime.facts import Unavailable
from envlock.runtime.source_files import read_source, survey_source
from envlock.workflows.content_notes import write_note


def note_sources(environment: LiveEnvironment) -> None:
    """Note the digest of the source of each editable install in the user's cache, with the sizes and
    times of its files.
    """
    names = _list_editable(environment)
    if not names:
        return
    distributions = collect_distributions(environment.installation)
    for name in names:
        installed = as_installed(distributions[name]) if name in distributions else None
        source = find_source(distributions[name]) if name in distributions else None
        if installed is None or source is None or source.kind != "folder":
            continue
        began = time.time_ns()
        found = survey_source(installed, source.place)
        if isinstance(found, Unavailable) or not is_settled(found, began):
            continue
        if read_note(os.environ, installed.info, found) is not None:
            continue
        try:
            content = read_source(found)
        except OSError:
            continue
        again = survey_source(installed, source.place)
        if not isinstance(again, Unavailable) and again.state == found.state:
            write_note(str(Path(installed.info)), found, content, began)


def _list_editable(environment: LiveEnvironment) -> list[str]:
    packages = environment.snapshot.facts.get("packages")
    if not isinstance(packages, dict):
        return []
    names = []
    for name, facts in packages.items():
        if "source" in facts and (facts.get("origin") or {}).get("editable"):
            names.append(name)
    return names
