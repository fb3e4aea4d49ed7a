#!/usr/bin/env python3
"""Does every link of the Markdown files below a directory lead to a file there, and to a heading of
it? Links to the web are not followed.

    check_links.py DIRECTORY      exit code 1, and a list, where one does not
"""

import pathlib
import re
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def anchors(text):
    """Of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken_links(root):
    root = root.resolve()
    for page in sorted(root.rglob("*.md")):
        text = page.read_text()
        # A link's text may be code, but code has no links.
        for target in LINK.findall(CODE.sub("", text)):
            if re.match(r"\w+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.is_relative_to(root):
                yield page, target, "leads out of the directory"
            elif not file.exists():
                yield page, target, "does not exist"
            elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
                yield page, target, "has no such heading"


def main():
    root = pathlib.Path(sys.argv[1])
    if not any(root.rglob("*.md")):
        raise SystemExit(f"{root} has no Markdown file")
    broken = list(broken_links(root))
    for page, target, why in broken:
        print(f"{page.relative_to(root.resolve())}: {target} {why}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
