"""For mkdocs.yml: links to files outside docs/, which the site does not have, become the path of the file in the repository."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTSIDE = re.compile(r"\[([^\]]+)\]\((\.\./[^)#\s]+)(#[^)]*)?\)")


def on_page_markdown(markdown, page, config, files):
    """MkDocs calls it with each page's text."""
    def named(link):
        path = link.group(2)[3:]
        if not (ROOT / path).exists():
            return link.group(0)   # the strict build reports it
        return f"{link.group(1)} (`{path}`)" if link.group(1) != path else f"`{path}`"
    return OUTSIDE.sub(named, markdown)
