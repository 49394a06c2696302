"""Data of the package: beside its modules in a wheel or a bundle, at the root of a checkout."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def package_folder(name: str) -> Path:
    """Return the path of a data folder, or of a file at the root of a checkout."""
    installed = PACKAGE / name
    return installed if installed.exists() else PACKAGE.parents[1] / name
