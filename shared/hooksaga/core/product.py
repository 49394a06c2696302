"""What hooksaga calls itself."""

VERSION = "0.1.0"
USER_AGENT = f"hooksaga/{VERSION}"
