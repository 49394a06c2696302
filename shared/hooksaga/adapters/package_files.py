"""Data folders of the package: beside its modules in a wheel or a bundle, at the root of a checkout."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def package_folder(name: str) -> Path:
    installed = PACKAGE / name
    return installed if installed.is_dir() else PACKAGE.parents[1] / name
