"""Writes the programs of docs/verifying.md from those that the portal shows.

.venv/bin/python -m docs.generators.verifying_page
"""

from pathlib import Path

from hooksaga.console.snippets import snippets_for

PAGE = Path(__file__).resolve().parents[1] / "verifying.md"
BEGIN, END = "<!-- receivers: python -m docs.generators.verifying_page -->\n", "<!-- end of receivers -->\n"
HIGHLIGHTED = {
    "Node.js": "js",
    "Python": "python",
    "Go": "go",
    "PHP": "php",
    "Ruby": "ruby",
    "Java": "java",
    "C#": "csharp",
}


def filled(page: str) -> str:
    """Return the page with the receivers as they are now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    parts = [
        f"\n## {one.language}\n\n```{HIGHLIGHTED[one.language]}\n{one.text}```\n" for one in snippets_for()
    ]
    return f"{before}{BEGIN}{''.join(parts)}\n{END}{after}"


def main() -> None:
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
