"""What this process has loaded, by role and owner."""

from __future__ import annotations

from envlock.runtime.loaded.description import Description
from envlock.runtime.loaded.identities import Identities
from envlock.runtime.loaded.look import list_mapped, list_module_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from envlock.runtime.host import Host


def observe(host: Host) -> Description:
    """Describe the files that this process runs code from.

    Raises:
        OSError: the kernel does not say which are mapped.
    """
    identities = Identities(host.environ)
    found = Description(host, identities)
    found.add_mapped(list_mapped())
    found.add_modules(list_module_files())
    identities.save()
    return found
