"""Pages of source files, with numbered lines that can be linked to, and of their folders."""
import html
import os

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

CUDA = {".cu", ".cuh", ".hpp", ".cpp", ".h"}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - CUDA, day by day</title>
<link rel="stylesheet" href="{top}/_static/pygments.css"><link rel="stylesheet" href="{top}/_static/styles/furo.css">
<link rel="stylesheet" href="{top}/_static/course.css"></head>
<body class="source"><script>document.body.dataset.theme = localStorage.getItem("theme") || "auto"</script>
<nav aria-label="Site"><a href="{top}/index.html">CUDA, day by day</a>{up}</nav>
<main>
<h1>{title}</h1>
{body}
</main></body></html>
"""


def coloured_lines(text, name):
    """HTML of each line, coloured as in the file `name`."""
    return highlight(text, lexer_for(name), HtmlFormatter(nowrap=True)).rstrip("\n").split("\n")


class Lines(HtmlFormatter):
    """Each line in a span of its own, with a number that links to it."""

    def wrap(self, source):
        yield 0, '<div class="highlight course-source" tabindex="0" role="region" aria-label="Source"><pre>'
        for number, (_, line) in enumerate(source, 1):
            yield 1, f'<span class="line" id="L{number}"><a class="number" href="#L{number}" data-line="{number}" aria-label="Line {number}"></a>{line}</span>'
        yield 0, "</pre></div>"


def lexer_for(name):
    try:
        lexer = get_lexer_by_name("cuda") if os.path.splitext(name)[1] in CUDA else get_lexer_for_filename(name)
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    lexer.stripnl = False
    return lexer


def whole_page(address, title, body):
    folder = os.path.dirname(address)
    top = os.path.relpath(".", folder)
    parent = title.split("/")[0]
    day = parent[:5] if parent.startswith("day") else parent if parent in ("gemm_ladder", "bug_hunts") else ""
    up = f' <a href="{top}/{day}/index.html">{day.replace("_", " ")}</a>' if day else ""
    return PAGE.format(title=html.escape(title), top=top, up=up, body=body)


def page(root, name):
    """The page of the file root/name."""
    text = (root / name).read_text(encoding="utf-8")
    return whole_page(f"source/{name}.html", name, highlight(text, lexer_for(name), Lines()))


def folder_page(name, files):
    """The page of a folder. `files`: names, and addresses inside the site."""
    here = f"source/{name}"
    items = "".join(f'<li><a href="{os.path.relpath(address, here)}">{html.escape(file)}</a></li>' for file, address in files)
    return whole_page(f"{here}/index.html", name, f"<ul>{items}</ul>")
