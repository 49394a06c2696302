"""Files of the Lambda functions, in a checkout or in an installed package."""

from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location

from starlette.routing import BaseRoute

from hooksaga.adapters.package_files import package_folder

FUNCTIONS = package_folder("functions")


def routes_of_function(name: str) -> Sequence[BaseRoute]:
    """Return the routes that the handler of this function serves.

    The handler is loaded from its file: an installed package has no module `functions`, which is the name in a bundle.
    """
    spec = spec_from_file_location(f"functions.{name}.handler", FUNCTIONS / name / "handler.py")
    assert spec is not None
    assert spec.loader is not None
    handler = module_from_spec(spec)
    spec.loader.exec_module(handler)
    return handler.function.routes
