"""The console: pages for operators and, behind a signed link, for one tenant. A layer on the stages that the API uses.

Only `routes` is imported from outside: a function without pages contains neither these modules nor Jinja2.
"""
