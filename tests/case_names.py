"""Names of a test's cases."""


def case_name(value: object) -> str:
    """Return the beginning of the value in ASCII, without backslashes: pytest escapes these again each time that a
    process collects the test, and does not find it by the name that it had before."""
    return ascii(value)[:80].replace("\\", "|")
