"""Limit of open file descriptors, sockets included, of this process."""

import sys

from hooksaga.runtime.settings import InvalidSettings

MOST_OF_MACOS = 10_240
"""Maximum that macOS grants when it reports no limit (OPEN_MAX)."""

UNKNOWN = 8192
"""Limit on Windows, whose sockets have none: the maximum that its C library grants to files."""

BESIDE_POSTS = 64
"""Database sessions, the log, the listening socket, the interpreter's own files, and some to spare."""


def descriptors_for(concurrency: int) -> int:
    """Return the descriptors needed for POSTs in flight, as many kept connections, and the rest of the process."""
    return 2 * concurrency + BESIDE_POSTS


def check_descriptors(concurrency: int) -> None:
    """Raise InvalidSettings when the limit is too low for so many POSTs in flight.

    POSTs without a descriptor would be recorded as failures of their receivers.
    """
    needed, limit = concurrency + BESIDE_POSTS, descriptor_limit()
    if needed > limit:
        raise InvalidSettings(
            f"HOOKSAGA_CONCURRENCY: {concurrency} POSTs at once need {needed} open files, and this process may have "
            f"{limit}: raise the limit (ulimit -n, LimitNOFILE of systemd), or lower the setting"
        )


if sys.platform == "win32":

    def descriptor_limit() -> int:
        """The limit that is in force."""
        return UNKNOWN

    def raise_descriptor_limit() -> None:
        """Raise it as far as this process may."""
else:
    import resource
    from contextlib import suppress

    def descriptor_limit() -> int:
        """The limit that is in force."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return soft if soft != resource.RLIM_INFINITY else sys.maxsize

    def raise_descriptor_limit() -> None:
        """Raise it as far as this process may: many systems grant 1,024 and allow far more."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        for wanted in (hard, MOST_OF_MACOS):
            if soft == hard or (soft > wanted != resource.RLIM_INFINITY):
                return
            with suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
                return
