"""Paths of the API that several functions serve."""

from collections import defaultdict

from starlette.routing import Route

from hooksaga.api.problem_answers import SHARED_PATHS
from hooksaga.aws.deployment_order import API_FUNCTIONS
from hooksaga.aws.function_files import routes_of_function


def test_each_is_known_with_all_its_methods() -> None:
    """Or the answer 405 of one function would not name the methods of the other."""
    functions, methods = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for name in API_FUNCTIONS:
        for route in routes_of_function(name):
            if isinstance(route, Route):
                functions[route.path].add(name)
                methods[route.path] |= route.methods or set()
    shared = {path: tuple(sorted(methods[path])) for path, names in functions.items() if len(names) > 1}
    assert shared == SHARED_PATHS
