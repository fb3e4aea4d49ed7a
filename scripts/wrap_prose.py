#!/usr/bin/env python3
"""Wraps prose at 100 columns: paragraphs of Markdown, and comments of C++ that have a line of their
own. Tables, code, diagrams and comments behind code stay as they are; so does every paragraph that
has no line over 100 columns.

    scripts/wrap_prose.py FILE...   rewrites these
    scripts/wrap_prose.py           rewrites what git knows of
    scripts/wrap_prose.py --check   changes nothing; exit code 1, and a list, when a line would change
"""

import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH = 100
CPP = {".cu", ".cuh", ".cpp", ".hpp", ".h"}
NOT_PROSE = ("docs/measured/", "tools/course/test/wrong_answers/")  # generated; settings, a line each
UNBREAKABLE = re.compile(r"(`[^`]*`|\]\([^)]*\))")
LIST_ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s+")
LABEL = re.compile(r"(?:[A-Z][\w-]*)(?: \w+){0,2}: ")  # "Cost removed: "


def wrap(lines, first_indent, next_indent):
    """The words of `lines`, wrapped; inline code and the targets of links are not broken."""
    text = " ".join(line.strip() for line in lines)
    text = UNBREAKABLE.sub(lambda match: match.group().replace(" ", "\0"), text)
    wrapped = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first_indent,
        subsequent_indent=next_indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in wrapped]


def begins_paragraph(line, before):
    """Does `line`, without the `//` of a comment, begin another paragraph than the line before it?"""
    ends = before.rstrip().endswith((".", ":", "?", "!")) and len(before) < 70
    return ends or LIST_ITEM.match(line) or LABEL.match(line)


def is_long(lines):
    return any(len(line) > WIDTH for line in lines)


def wrapped_comments(text):
    """C++: runs of `//` lines with the same indentation, a blank comment line or a list item
    between two paragraphs.
    """
    out, paragraph = [], []

    def flush():
        if not is_long(paragraph):
            out.extend(paragraph)
        else:
            prefix = re.match(r"\s*// ", paragraph[0]).group()
            item = LIST_ITEM.match(paragraph[0][len(prefix) :])
            deeper = " " * len(item.group()) if item else ""
            body = [line.strip().removeprefix("//") for line in paragraph]
            out.extend(wrap(body, prefix, prefix + deeper))
        paragraph.clear()

    for line in text.split("\n"):
        comment = re.match(r"(\s*)// (?=\S)(.*)", line)
        # Several blanks in a row, bars and arrows: a table or a drawing. Directives belong to tools.
        is_prose = comment and not re.search(
            r"\S {2,}\S|\||---|NOLINT|clang-format|https?://", comment.group(2)
        )
        hangs = paragraph and re.match(r"\s*//  +\S", line) and LIST_ITEM.match(paragraph[0].strip()[3:])
        if hangs and not re.search(r"\S {2,}\S", line.strip()[2:].strip()):
            paragraph.append(line)
        elif not is_prose:
            flush()
            out.append(line)
        else:
            same = paragraph and re.match(r"\s*", paragraph[0]).group() == comment.group(1)
            if not same or begins_paragraph(comment.group(2), paragraph[-1]):
                flush()
            paragraph.append(line)
    flush()
    return "\n".join(out)


def wrapped_markdown(text):
    out, paragraph, in_code, is_generated = [], [], False, False

    def flush():
        # Sentences between `<!--` markers are written by ./course tables.
        if not is_long(paragraph) or any("<!--" in line for line in paragraph):
            out.extend(paragraph)
        else:
            item = LIST_ITEM.match(paragraph[0])
            indent = item.group() if item else re.match(r"\s*", paragraph[0]).group()
            out.extend(wrap([paragraph[0][len(indent) :], *paragraph[1:]], indent, " " * len(indent)))
        paragraph.clear()

    for line in text.split("\n"):
        if line.startswith("<!-- end"):
            is_generated = False
        elif line.startswith(("<!-- measurements", "<!-- table", "<!-- sweep", "<!-- ladder", "<!-- scaling")):
            is_generated = True
        if line.lstrip().startswith("```"):
            in_code = not in_code
            flush()
            out.append(line)
        elif (
            is_generated
            or in_code
            or not line.strip()
            or re.match(r"\s*(\||#|<|!\[)|- \w+: |    \s*\S", line)
            and not paragraph
        ):
            flush()
            out.append(line)
        elif re.match(r"\s*\||#+ |<", line):
            flush()
            out.append(line)
        else:
            if paragraph and begins_paragraph(line, paragraph[-1]):
                flush()
            paragraph.append(line)
    flush()
    return "\n".join(out)


def wrapped(path):
    text = path.read_text()
    return text, wrapped_markdown(text) if path.suffix == ".md" else wrapped_comments(text)


def files_of_git():
    names = subprocess.run(
        ["git", "-C", ROOT, "ls-files"], check=True, capture_output=True, text=True
    ).stdout.split("\n")
    return [
        ROOT / name
        for name in names
        if pathlib.Path(name).suffix in CPP | {".md"}
        and not name.startswith(NOT_PROSE)
        and (ROOT / name).is_file()
    ]


def main():
    arguments = sys.argv[1:]
    check = "--check" in arguments
    unknown = [a for a in arguments if a.startswith("-") and a != "--check"]
    if unknown:
        sys.exit(f"wrap_prose.py: unknown option '{unknown[0]}'; expected --check or names of files")
    changed = 0
    for path in [pathlib.Path(a) for a in arguments if a != "--check"] or files_of_git():
        if not path.is_file():
            sys.exit(f"wrap_prose.py: '{path}' is no file; expected C++, CUDA or Markdown")
        before, after = wrapped(path)
        if before == after:
            continue
        changed += 1
        if check:
            row = next(i for i, (a, b) in enumerate(zip(before.split("\n"), after.split("\n")), 1) if a != b)
            print(f"{path}:{row}: expected prose of at most {WIDTH} columns; scripts/wrap_prose.py wraps it")
        else:
            path.write_text(after)
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
