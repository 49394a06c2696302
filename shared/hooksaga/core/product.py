"""Name and version of the product."""

VERSION = "0.1.0"
USER_AGENT = f"hooksaga/{VERSION}"
