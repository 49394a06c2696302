"""URL and key of the API. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

URL_VARIABLE = "HOOKSAGA_API_URL"
KEY_VARIABLE = "HOOKSAGA_API_KEY"
USER_AGENT = "hooksaga-client"


@dataclass(frozen=True, slots=True)
class Access:
    """A validated base URL without a trailing slash, and a validated key."""

    url: str
    key: str = field(repr=False)

    def headers(self, more: Mapping[str, str]) -> dict[str, str]:
        own = {"authorization": f"Bearer {self.key}", "user-agent": USER_AGENT}
        return {**own, "accept": "application/json", "content-type": "application/json", **more}


def access_to(url: str | None, key: str | None, environment: Mapping[str, str]) -> Access:
    """Return the given URL and key, or those of the environment. Raises ValueError for invalid ones."""
    return Access(
        _checked_url(url if url is not None else environment.get(URL_VARIABLE)),
        _checked_key(key if key is not None else environment.get(KEY_VARIABLE)),
    )


def _checked_url(url: str | None) -> str:
    if not url:
        raise ValueError(f"base_url is required: pass it, or set {URL_VARIABLE}")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            f"base_url ({URL_VARIABLE}) must be a URL such as https://hooks.example.com, not {url!r}"
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError(f"base_url ({URL_VARIABLE}) must not have a user, query or fragment")
    return url.rstrip("/")


def _checked_key(key: str | None) -> str:
    if not key:
        raise ValueError(f"api_key is required: pass it, or set {KEY_VARIABLE}")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError(f"api_key ({KEY_VARIABLE}) contains characters that are not allowed in a key")
    return key
