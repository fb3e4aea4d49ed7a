#!/usr/bin/env python3
"""Do the relative links of Markdown files lead somewhere: to a file or folder that git knows, and to a heading there?
Anchors are those that GitHub makes of headings. Addresses of the web are not looked up.

usage: scripts/check_links.py [FILE...]    default: all Markdown files that git knows

Exit codes: 0 all links lead somewhere, 1 a list of those that do not, 2 a file that cannot be read.
"""
import functools
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"""\]\(\s*(?:<(?P<angled>[^>\n]*)>|(?P<plain>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*))(?:\s+"[^"]*")?\s*\)"""
                  r"""|^ {0,3}\[[^\]\n]+\]:\s*(?P<defined>\S+)"""
                  r"""|<[a-z]+\s[^>]*?\b(?:href|src|srcset)\s*=\s*["'](?P<html>[^"']*)["']""", re.M)
CODE = (re.compile(r"^( *)(```+|~~~+).*?^ *\2[^\n]*$", re.S | re.M), re.compile(r"<!--.*?-->", re.S))
INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)\1(?!`)", re.S)


def blank(text, pattern):
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def without_blocks(text):
    """No fenced code and no comments, but lines and columns as before."""
    return functools.reduce(blank, CODE, text)


def anchor_of(heading):
    """As GitHub makes it: the text that one sees, in lower case, without punctuation, with hyphens for blanks."""
    heading = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", heading)
    heading = re.sub(r"`([^`]*)`|</?[a-zA-Z][^>]*>", r"\1", heading)
    heading = re.sub(r"(?<!\w)_(\S(?:.*?\S)?)_(?!\w)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@functools.cache
def anchors_of(path):
    text = without_blocks(path.read_text(encoding="utf-8"))
    anchors, seen = set(), {}
    for match in re.finditer(r"^ {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$|^(\S.*)\n(?:=+|--+)[ \t]*$", text, re.M):
        anchor = anchor_of(match[1] or match[2] or "")
        seen[anchor] = seen.get(anchor, -1) + 1
        anchors.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
    return anchors | set(re.findall(r"""<a\s[^>]*?\b(?:id|name)\s*=\s*["']([^"']+)["']""", text))


@functools.cache
def known_to_git(root):
    """Files of the tree, those that could be added among them, and their folders."""
    out = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True,
                         text=True, check=True).stdout
    files = {name for name in out.split("\0") if name}
    return files | {str(folder) for name in files for folder in pathlib.PurePosixPath(name).parents}


def wrong_with(target, path, root):
    """Why a link of `path` leads nowhere, or None."""
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//", target):
        return None
    name, _, anchor = target.partition("#")
    name, anchor = urllib.parse.unquote(name), urllib.parse.unquote(anchor)
    if name.startswith("/"):
        return "is not relative"
    there = path if not name else pathlib.Path(os.path.normpath(path.parent / name))
    if not there.is_relative_to(root):
        return "leads out of the repository"
    if str(there.relative_to(root)) not in known_to_git(root) or not there.exists():
        return "there is no such file"
    if not anchor:
        return None if target else "is empty"
    if there.suffix == ".md":
        return None if anchor in anchors_of(there) else f"{there.relative_to(root)} has no heading with that anchor"
    lines = re.fullmatch(r"L(\d+)(?:-L(\d+))?", anchor)
    if lines is None or there.is_dir():
        return "only Markdown has headings; expected #L and a line"
    count = there.read_text(encoding="utf-8").count("\n")
    return None if int(lines[1]) >= 1 and int(lines[2] or lines[1]) <= count else f"the file has {count} lines"


def main(arguments, root=ROOT):
    if any(argument in ("-h", "--help") for argument in arguments):
        print(__doc__.strip())
        return 0
    files = [pathlib.Path(name).resolve() for name in arguments]
    files = files or sorted(root / name for name in known_to_git(root) if name.endswith(".md") and (root / name).is_file())
    links = wrong = 0
    for path in files:
        try:
            text = blank(without_blocks(path.read_text(encoding="utf-8")), INLINE_CODE)
        except (OSError, UnicodeDecodeError) as error:
            print(f"check_links.py: {path}: {error}", file=sys.stderr)
            return 2
        for match in LINK.finditer(text):
            target = next((group for group in match.groups() if group is not None), "")
            reason = wrong_with(target, path, root)
            links += 1
            wrong += reason is not None
            if reason is not None:
                line = text.count("\n", 0, match.end()) + 1
                print(f"{path.relative_to(root) if path.is_relative_to(root) else path}:{line}: {target}: {reason}")
    print(f"{len(files)} files, {links} links, {wrong} lead nowhere")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
