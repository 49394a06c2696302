"""All error codes of the HTTP API with status, cause and cure: the only place that explains them.

The table in docs/api.md and the sections of /v1/docs are generated from it. Each code has one status. Tests compare the
table with every place that raises a code, so a new code needs an entry.
"""

from hooksaga.core.problem import Problem
from hooksaga.core.request_problems import REQUEST_PROBLEMS
from hooksaga.core.server_problems import SERVER_PROBLEMS
from hooksaga.core.state_problems import STATE_PROBLEMS

__all__ = ["BY_CODE", "PROBLEMS", "Problem"]

PROBLEMS = tuple(
    sorted((*REQUEST_PROBLEMS, *STATE_PROBLEMS, *SERVER_PROBLEMS), key=lambda problem: problem.status)
)
"""By status, then in the order in which the API checks a request."""

BY_CODE = {problem.code: problem for problem in PROBLEMS}
