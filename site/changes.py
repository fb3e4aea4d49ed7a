"""The pages of the changelogs: an anchor for each version and for each of its subjects, which the Markdown has as "**Subject.** Text".
"""
import html
import re

FILES = ("CHANGELOG.md", "cuda_on_cpu/CHANGELOG.md")
PIECE = re.compile(r"^(?:## (?P<version>.*)|\*\*(?P<subject>[^*\n]+?)\.?\*\*(?= ))", re.M)


def slug(text):
    """ "Second edition (in progress)" -> "second-edition"; "1.0.0" -> "1-0-0"."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\([^)]*\)", "", text).strip().lower()).strip("-")


def page(text):
    """The Markdown with an index of its versions and subjects, and their anchors: version-second-edition, second-edition-lessons."""
    entries, version = [], ""

    def anchored(match):
        nonlocal version
        if match["version"]:
            version = slug(match["version"])
            entries.append((match["version"].strip(), f"version-{version}", []))
            return f'<span id="version-{version}"></span>\n\n{match[0]}'
        if not entries:
            return match[0]
        anchor = f"{version}-{slug(match['subject'])}"
        entries[-1][2].append((match["subject"], anchor))
        return f'<span id="{anchor}"></span>{match[0]}'

    body = PIECE.sub(anchored, text)
    items = "\n".join(f'<li><a href="#{anchor}">{html.escape(name)}</a>'
                      + (": " + " · ".join(f'<a href="#{to}">{html.escape(subject)}</a>' for subject, to in subjects) if subjects else "") + "</li>"
                      for name, anchor, subjects in entries)
    title = re.match(r"\s*# .*\n", body)
    return f"{body[:title.end()]}\n<ul class=\"versions\">\n{items}\n</ul>\n{body[title.end():]}" if title and entries else body
