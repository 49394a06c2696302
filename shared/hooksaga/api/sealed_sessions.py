"""Sessions of the console and the portal as sealed text: in a cookie, or in a link into the portal.

The secret box seals them with separate keys per purpose, so that neither kind of session, nor a portal's link, can be
used as another.
"""

import base64
import binascii
import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

from hooksaga.adapters.secret_box import SecretBox, UnreadableSecret
from hooksaga.api.services import Services
from hooksaga.core.portal_links import DEFAULT_RADIUS

MAX_COOKIE = 3500
"""Browsers keep 4,096 characters of a cookie, its name included."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Look of a portal, and the origin that may show it in a frame. Empty: the default look, and no origin.

    radius: of corners, in pixels. scheme: auto, light or dark. language: auto, or that of the pages.
    """

    name: str = ""
    logo_url: str = ""
    colour: str = ""
    origin: str = ""
    radius: int = DEFAULT_RADIUS
    font: str = ""
    scheme: str = "auto"
    header: bool = True
    language: str = "auto"

    @property
    def version(self) -> str:
        """Short digest, which changes with the look."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Session:
    """Content of a cookie, or of a portal's link. tenant_id: of a portal; a console has the tenant of its key.

    link_id: the id of the portal's link that the session began with; it ends with the session.
    """

    key_hash: bytes
    expires_at: int
    tenant_id: str | None = None
    theme: Theme = Theme()
    link_id: str | None = None
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))

    def text(self) -> str:
        content = {
            "key": base64.b64encode(self.key_hash).decode(),
            "ends": self.expires_at,
            "tenant": self.tenant_id,
            "theme": astuple(self.theme),
            "link": self.link_id,
            "csrf": self.csrf,
            "id": self.id,
        }
        return json.dumps(content, separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> "Session":
        content: Mapping[str, Any] = json.loads(text)
        return cls(
            key_hash=base64.b64decode(content["key"]),
            expires_at=content["ends"],
            tenant_id=content["tenant"],
            theme=Theme(*content["theme"]),
            link_id=content["link"],
            csrf=content["csrf"],
            id=content["id"],
        )


def box_for(services: Services, purpose: str) -> SecretBox:
    assert services.box is not None, "who has these routes has the keys"
    return services.box.for_purpose(purpose)


def opened(services: Services, purpose: str, sealed: str) -> Session | None:
    """Return the session of a sealed text if it has not ended; None for any other text."""
    if not sealed or len(sealed) > MAX_COOKIE:
        return None
    try:
        session = Session.read(box_for(services, purpose).open(sealed))
    except (UnreadableSecret, ValueError, KeyError, TypeError, binascii.Error):
        return None
    return session if session.expires_at > time.time() else None


def sealed_session(services: Services, purpose: str, session: Session) -> str:
    """Seal a session as text that `opened` can read."""
    return box_for(services, purpose).seal(session.text())
