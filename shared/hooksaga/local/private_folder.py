"""Folders for keys and data."""

from pathlib import Path


def make_private(folder: Path) -> None:
    """Make the folder, and those above it that are missing, so that only their owner may enter.

    Path.mkdir gives its mode to the last one only: the data folder would be open where the first to need it needs a
    folder inside.
    """
    for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
