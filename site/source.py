"""Pages of source files, with numbered lines that can be linked to, and of their folders."""
import html
import os

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

import accessible

CUDA = {".cu", ".cuh", ".hpp", ".cpp", ".h"}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - CUDA, day by day</title>
<link rel="icon" href="{top}/_static/favicon.svg">
<link rel="stylesheet" href="{top}/_static/pygments.css"><link rel="stylesheet" href="{top}/_static/styles/furo.css">
<link rel="stylesheet" href="{top}/_static/course.css"><script src="{top}/_static/course.js"></script></head>
<body class="source"><script>document.body.dataset.theme = localStorage.getItem("theme") || "auto"</script>
<nav aria-label="Site"><a href="{top}/index.html">CUDA, day by day</a>{up}
<form action="{top}/search.html" method="get" role="search"><input type="search" name="q" aria-label="Search" placeholder="Search"> <button type="submit">Search</button></form></nav>
<main>
<h1>{heading}</h1>
{body}
</main>{beside}</body></html>
"""


def coloured_lines(text, name):
    """HTML of each line, coloured as in the file `name`."""
    return highlight(text, lexer_for(name), HtmlFormatter(nowrap=True)).rstrip("\n").split("\n")


class Lines(HtmlFormatter):
    """Each line in a span of its own, with a number that links to it."""

    def wrap(self, source):
        yield 0, '<div class="highlight course-source" tabindex="0" role="region" aria-label="Source"><pre>'
        for number, (_, line) in enumerate(source, 1):
            style = accessible.indentation(line)
            yield 1, f'<span class="line" id="L{number}"{style}><a class="number" href="#L{number}" data-line="{number}" aria-label="Line {number}"></a>{line}</span>'
        yield 0, "</pre></div>"


def lexer_for(name):
    try:
        lexer = get_lexer_by_name("cuda") if os.path.splitext(name)[1] in CUDA else get_lexer_for_filename(name)
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    lexer.stripnl = False
    return lexer


def whole_page(address, title, body, day=None, beside=""):
    """`day`: name and title of the day that the file belongs to; `beside`: links to the files before and after."""
    top = os.path.relpath(".", os.path.dirname(address))
    up = f' <a href="{top}/{day[0]}/index.html">{html.escape(day[1])}</a>' if day else ""
    return PAGE.format(title=html.escape(title), heading=html.escape(title).replace("/", "/<wbr>"), top=top, up=up, body=body, beside=beside)


def neighbours(name, files):
    """Links to the files before and after this one among `files`, and to their list."""
    place, here = files.index(name), f"source/{os.path.dirname(name)}"

    def link(other, what):
        return f'<a href="{os.path.relpath(f"source/{other}.html", here)}" rel="{what}">{what.title()}: {html.escape(os.path.basename(other))}</a>'
    links = [link(files[place - 1], "prev")] if place else []
    links += [link(files[place + 1], "next")] if place + 1 < len(files) else []
    links = [text.replace(">Prev: ", ">Previous: ") for text in links]
    return f'\n<nav aria-label="Files beside this one">{" ".join(links)}</nav>' if links else ""


def around(name, day=None, files=()):
    """What the page of the file `name` has before and after its source. `files`: those of the same day that have a page, in order."""
    beside = neighbours(name, files) if name in files else ""
    return whole_page(f"source/{name}.html", name, "\0", day, beside).split("\0")


def page(root, name, day=None, files=()):
    """The page of the file root/name. `day` and `files`: as those of around()."""
    before, after = around(name, day, files)
    return before + highlight((root / name).read_text(encoding="utf-8"), lexer_for(name), Lines()) + after


def folder_page(name, files, day=None):
    """The page of a folder. `files`: names, and addresses inside the site."""
    here = f"source/{name}"
    items = "".join(f'<li><a href="{os.path.relpath(address, here)}">{html.escape(file)}</a></li>' for file, address in files)
    return whole_page(f"{here}/index.html", name, f"<ul>{items}</ul>", day)
