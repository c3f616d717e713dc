"""What this process has loaded, by role and owner."""

from __future__ import annotations

from envlock.runtime.loaded.description import Description
from envlock.runtime.loaded.identities import Identities
from envlock.runtime.loaded.look import list_mapped, list_module_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List, Mapping, Optional

    from envlock.runtime.host import Host


def observe(host: Host) -> Description:
    """Describe the files that this process runs code from.

    Raises:
        OSError: the kernel does not say which are mapped.
    """
    return describe(host, list_mapped(), list_module_files())


def describe(
    host: Host,
    mapped: Iterable[str],
    modules: Iterable[str],
    parts: Optional[Mapping[str, List[str]]] = None,
) -> Description:
    """Describe mapped files and files of modules, and note what they are; see `Description`."""
    identities = Identities(host.environ)
    found = Description(host, identities, parts)
    found.add_mapped(mapped)
    found.add_modules(modules)
    identities.save()
    return found
