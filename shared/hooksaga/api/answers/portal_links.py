"""Links to the portal."""

from typing import Annotated

from msgspec import Meta

from hooksaga.api.answers.answer import Answer, TenantId, Time, described


class PortalLink(Answer):
    """A link to the portal of one tenant."""

    url: Annotated[
        str,
        Meta(pattern="^https?://"),
        described(
            "Open it in a browser, or in a frame of `embed_origin`. Anyone who has it is signed in. It begins with "
            "HOOKSAGA_PUBLIC_URL.",
            "https://hooks.example.com/portal/enter?token=gAAAAA",
        ),
    ]
    tenant_id: Annotated[TenantId, described("The tenant whose pages it opens.", "acme")]
    expires_at: Annotated[
        Time,
        described(
            "Time when it expires. Pages opened before stay signed in for an hour.",
            "2026-03-14T09:36:53.000000Z",
        ),
    ]
