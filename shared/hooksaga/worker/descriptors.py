"""How many files, sockets among them, this process may have open."""

import sys

from hooksaga.runtime.settings import InvalidSettings

MOST_OF_MACOS = 10_240
"""What macOS grants at the most where it says that there is no limit (OPEN_MAX)."""

UNKNOWN = 8192
"""For Windows, whose sockets have no such limit; what its C library grants to files at the most."""

BESIDE_POSTS = 64
"""Sessions of the database, the log, the listening socket, what the interpreter has open, and some to spare."""


def descriptors_for(concurrency: int) -> int:
    """Those for POSTs in flight, for as many connections that are kept for the next ones, and for everything beside."""
    return 2 * concurrency + BESIDE_POSTS


def check_descriptors(concurrency: int) -> None:
    """Raises InvalidSettings where so many POSTs in flight cannot be: each would end as its receiver's fault."""
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
