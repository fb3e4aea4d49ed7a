#!/usr/bin/env python3
"""Prints what a release of a tag says: that version's section of the changelog.

usage: scripts/release_notes.py TAG [--repository URL] [--title]

  TAG               v2.1.0: the section "## 2.1.0" of CHANGELOG.md; second-edition: "## Second edition";
                    cuda_on_cpu-1.0.0: "## 1.0.0" of cuda_on_cpu/CHANGELOG.md
  --repository URL  links to files lead to them at that tag, which a release needs; default: links stay
  --title           prints the title of the release instead

A line per paragraph: a release shows the ends of lines. A section whose title says (in progress) is no release.

Exit codes: 0 printed, 1 the changelog lacks the version, 2 a wrong argument.
"""
import argparse
import pathlib
import posixpath
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COURSE, ENGINE = "CHANGELOG.md", "cuda_on_cpu/CHANGELOG.md"
ENGINE_TAG = "cuda_on_cpu-"
SECTION = re.compile(r"^## (?P<title>[^\n]*)\n(?P<text>.*?)(?=^## |\Z)", re.M | re.S)
LINK = re.compile(r"(?<=\]\()(?![a-zA-Z][a-zA-Z0-9+.-]*:|#)(?P<path>[^)\s]+)(?=\))")
ITEM = re.compile(r"(?:[-*+]|\d+\.) ")


class MissingVersion(Exception):
    """The changelog has no such section."""


def changelog_of(tag):
    """(the file, the version): cuda_on_cpu-1.0.0 -> cuda_on_cpu/CHANGELOG.md, 1.0.0."""
    if tag.startswith(ENGINE_TAG):
        return ENGINE, tag.removeprefix(ENGINE_TAG)
    return COURSE, tag


def name_of(title):
    """ "Second edition (2027-01-15)" -> "second-edition", "v2.1.0" -> "2.1.0"."""
    name = re.sub(r"\([^)]*\)", "", title).strip().lower()
    return re.sub(r"^v(?=\d)", "", re.sub(r"[^a-z0-9.]+", "-", name).strip("-"))


def section(text, version, file):
    """(title, text) of a version. Throws MissingVersion."""
    found = [(match["title"].strip(), match["text"].strip()) for match in SECTION.finditer(text)]
    for title, body in found:
        if name_of(title) == name_of(version):
            if "(in progress)" in title.lower():
                raise MissingVersion(f"{file}: '{title}' is in progress; expected a section without that, or with a date")
            if not body:
                raise MissingVersion(f"{file}: '{title}' is empty; expected what is new")
            return title, body
    raise MissingVersion(f"{file}: there is no section for {version}; expected one of {', '.join(name_of(title) for title, _ in found) or 'none'}")


def unwrapped(text):
    """The text with a line for each paragraph and each item of a list; code stays."""
    lines, in_code, goes_on = [], False, False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            in_code, goes_on = not in_code, False
            lines.append(line)
        elif in_code or not line.strip() or line.startswith(("#", "|", ">")):
            lines.append(line)
            goes_on = False
        elif goes_on and not ITEM.match(line.lstrip()):
            lines[-1] += " " + line.strip()
        else:
            lines.append(line)
            goes_on = True
    return "\n".join(lines)


def with_addresses(text, file, tag, repository):
    """The text in which links to files lead to them in the repository, at that tag."""
    folder = posixpath.dirname(file)
    return LINK.sub(lambda match: f"{repository.rstrip('/')}/blob/{tag}/{posixpath.normpath(posixpath.join(folder, match['path']))}", text)


def notes(root, tag, repository=None):
    """(title, text) of the release of a tag. Throws MissingVersion."""
    file, version = changelog_of(tag)
    title, body = section((root / file).read_text(encoding="utf-8"), version, file)
    body = unwrapped(body)
    return title, with_addresses(body, file, tag, repository) if repository else body


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tag", metavar="TAG")
    parser.add_argument("--repository", metavar="URL")
    parser.add_argument("--title", action="store_true")
    options = parser.parse_args(arguments)
    if options.repository and not re.fullmatch(r"https?://[^\s()]+", options.repository):
        parser.error(f"--repository is '{options.repository}'; expected an address that starts with https://")
    try:
        title, text = notes(ROOT, options.tag, options.repository)
    except MissingVersion as error:
        print(f"release_notes.py: {error}", file=sys.stderr)
        return 1
    is_engine = changelog_of(options.tag)[0] == ENGINE
    print(f"{'cuda_on_cpu' if is_engine else 'CUDA, day by day'}: {title}" if options.title else text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
