"""Every link inside the built site leads to a page, and to a place that it has: `python tools/site_links.py build/site`."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The links of a page and the places that can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value or "")
            elif name in {"href", "src"} and value:
                self.links.append(value)


def broken_links(site: Path) -> list[str]:
    """'page → link' for every link inside the site that leads nowhere."""
    pages: dict[Path, _Page] = {}
    for path in site.rglob("*.html"):
        if "_static" in path.relative_to(site).parts:  # templates of the theme
            continue
        pages[path.resolve()] = page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = pages.get(target)
            missing = parts.fragment and there is not None and unquote(parts.fragment) not in there.places
            if not target.exists() or missing:
                broken.append(f"{path.relative_to(site.resolve())} → {link}")
    return broken


def main() -> None:
    """Name the broken links of a site, if there are some."""
    broken = broken_links(Path(sys.argv[1]))
    sys.exit("\n".join(["Links that lead nowhere:", *broken]) if broken else 0)


if __name__ == "__main__":
    main()
