"""The glossary, each term with links back to the pages that use it."""
import html
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
import check_links  # noqa: E402

ROW = re.compile(r"^\| (?P<term>[^|]+) \| (?P<meaning>(?:`[^`]*`|[^|])+) \| \[(?P<day>[^\]]*)\]\(\.\./(?P<folder>[^/)]*)/[^)]*\) \| *(?P<pmpp>[^|]*?) *\|$", re.M)


def anchor_of(term):
    return "term-" + re.sub(r"[^a-z0-9]+", "-", term.lower()).strip("-")


def read(text):
    """The rows of the table: dictionaries with term, meaning, day, folder and pmpp."""
    return [match.groupdict() for match in ROW.finditer(text)]


def names_of(term):
    """The names in the first column: "warp, lane" has two. What stands in brackets belongs to none."""
    return [name.strip(" `").lower() for name in re.sub(r"\([^)]*\)", "", term).split(",") if len(name.strip(" `")) > 1]


def uses(terms, texts):
    """Term -> the pages, in the order of `texts`, whose prose has it."""
    prose = {}
    for path, text in texts.items():
        text = check_links.blank(check_links.without_blocks(text), check_links.INLINE_CODE)
        prose[path] = re.sub(r"\s+", " ", text.lower())
    found = {}
    for row in terms:
        names = [(name, re.compile(rf"(?<![\w-]){re.escape(name)}(?:e?s)?(?![\w-])")) for name in names_of(row["term"])]
        found[row["term"]] = [path for path, text in prose.items() if any(name in text and pattern.search(text) for name, pattern in names)]
    return found


def entry(row, pages, labels, run):
    """A term as a Markdown section of a list."""
    here = "docs/glossary.md"
    links = []
    for path in pages:
        kind = "" if path.endswith("/README.md") and path.count("/") == 1 else f", {os.path.basename(os.path.dirname(path)) if path.endswith('README.md') else 'exercises'}"
        links.append(f"[{labels[path]}{kind}]({run.address(os.path.relpath(path, 'docs'), here)})")
    first = run.address(f"../{row['folder']}/README.md", here)
    book = f" In PMPP: *{row['pmpp']}*." if row["pmpp"] else ""
    used = f'\n\n<details class="uses"><summary>On {len(links)} page{"" if len(links) == 1 else "s"}</summary>\n\n{" · ".join(links)}\n\n</details>' if links else ""
    return (f'<div class="term" id="{anchor_of(row["term"])}">\n\n**{row["term"].strip()}**: {row["meaning"].strip()}.{book} '
            f'Introduced on [day {row["day"]}]({first}).{used}\n\n</div>\n')


def page(text, terms, used, labels, run):
    """Markdown of the glossary's page: the table's rows as entries, each with its links."""
    body = run.page(text, "docs/glossary.md")
    begin = body.find("| term |")
    rows = list(re.finditer(r"^\|.*$", body, re.M))
    head, tail = body[:begin], body[rows[-1].end():]
    letters = sorted(terms, key=lambda row: row["term"].lower().strip("`*_("))
    index = " · ".join(f'<a href="#{anchor_of(row["term"])}">{html.escape(row["term"].replace("`", "").strip())}</a>' for row in letters)
    return (head + '<details class="uses" open><summary>All terms by letter</summary>\n\n<p>' + index + "</p>\n\n</details>\n\n"
            + "\n".join(entry(row, used.get(row["term"], []), labels, run) for row in terms) + tail)


def of_day(terms, day):
    """A line for the page of a day: the terms that it introduces."""
    new = [row for row in terms if row["folder"] == day]
    if not new:
        return ""
    links = ", ".join(f'<a href="../glossary/index.html#{anchor_of(row["term"])}">{html.escape(row["term"].replace("`", "").strip())}</a>' for row in new)
    return f'\n\n<p class="new-terms"><strong>Terms of this day:</strong> {links}</p>\n'
