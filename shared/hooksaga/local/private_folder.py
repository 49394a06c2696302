"""Folders for keys and data."""

from pathlib import Path


def make_private(folder: Path) -> None:
    """Create the folder and missing parents, accessible to their owner only.

    Path.mkdir applies its mode to the last folder only, so the data folder would be open if a subfolder was created
    first.
    """
    for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
