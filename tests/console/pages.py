"""A browser without JavaScript: it keeps cookies, follows no redirect by itself, and sends forms as browsers do."""

import html
import http.client
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from http.cookies import SimpleCookie
from urllib.parse import urlencode

FORM = "application/x-www-form-urlencoded"
SECONDS = 60


@dataclass(frozen=True)
class Shown:
    """One answer. Header names are in lower case; `cookies` are the Set-Cookie headers."""

    status: int
    headers: Mapping[str, str]
    cookies: list[str]
    body: str

    @property
    def text(self) -> str:
        """The visible text of the page."""
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", self.body)).split())

    @property
    def csrf(self) -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', self.body)
        assert found is not None, self.body
        return found[1]

    def links(self, begin: str = "/") -> list[str]:
        """Where the page's links lead."""
        hrefs = [html.unescape(found) for found in re.findall(r'<a[^>]* href="([^"]*)"', self.body)]
        return [href for href in hrefs if href.startswith(begin)]


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def tags(body: str) -> list[tuple[str, dict[str, str | None]]]:
    """Every tag with its attributes, as a browser's parser sees them."""
    parser = _Tags()
    parser.feed(body)
    return parser.found


class Pages:
    """The pages of one port for one visitor."""

    def __init__(self, port: int, base: str = "/console") -> None:
        self.port = port
        self.base = base
        self.cookies: dict[str, str] = {}
        self.headers: dict[str, str] = {}

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def send(self, method: str, path: str, body: str | None = None, **headers: str) -> Shown:
        """One request. A header is named with _ for -."""
        sent = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            given = [(name.lower(), value) for name, value in response.getheaders()]
            cookies = [value for name, value in given if name == "set-cookie"]
            self._keep(cookies)
            return Shown(response.status, dict(given), cookies, response.read().decode())
        finally:
            connection.close()

    def _keep(self, cookies: list[str]) -> None:
        for line in cookies:
            for name, morsel in SimpleCookie(line.replace("; Partitioned", "")).items():
                self.cookies[name] = morsel.value

    def get(self, path: str, **headers: str) -> Shown:
        return self.send("GET", path, **headers)

    def page(self, path: str) -> Shown:
        """A page that must be there."""
        shown = self.get(path)
        assert shown.status == 200, (path, shown.status, shown.text)
        return shown

    def post(self, path: str, *, csrf: str | None = None, **fields: str) -> Shown:
        """A form of this site's page, with the session's token unless another is given."""
        token = self.csrf() if csrf is None else csrf
        return self.post_raw(path, {"csrf": token, **fields}, origin=self.origin)

    def post_raw(self, path: str, fields: Mapping[str, str], **headers: str) -> Shown:
        return self.send("POST", path, urlencode(fields), content_type=FORM, **headers)

    def words(self, console: str, portal: str) -> str:
        """What the pages of this visitor say: the portal has words of its own."""
        return portal if self.base == "/portal" else console

    def csrf(self) -> str:
        return self.page(f"{self.base}/subscriptions/new").csrf

    def signed_in(self, key: str) -> "Pages":
        """This browser, with the key's session."""
        answer = self.post_raw("/console/sign-in", {"key": key}, origin=self.origin)
        assert answer.status == 303, answer.text
        return self


def portal(port: int, path: str) -> Pages:
    """A browser that has opened a portal's link."""
    pages = Pages(port, "/portal")
    assert pages.get(path).status == 303
    assert "hooksaga_portal" in pages.cookies
    return pages
