"""What conf.py hooks into Sphinx: the navigation, links to files, and the pages of source files."""
import html
import os

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

CUDA = {".cu", ".cuh", ".hpp", ".cpp", ".h"}


def relative(target, page):
    """The address of a file of the site, seen from a page."""
    name, _, anchor = target.partition("#")
    return os.path.relpath(name, os.path.dirname(page) or ".") + (f"#{anchor}" if anchor else "")


def add_navigation(app, pagename, templatename, context, doctree):
    """The parts and their pages. The theme makes its sidebar from it; pages of a day are listed only where it is shown."""
    navigation = app.config.course_navigation

    def entry(name, title, children, level):
        shown = pagename == name or pagename.startswith(os.path.dirname(name) + "/") or any(child[0] == pagename for child in children)
        if level == 2 and not children:
            shown = pagename == name
        css = f"toctree-l{level}" + (" current" if shown else "") + (" current-page" if pagename == name else "")
        inner = "".join(entry(*child, [], level + 1) for child in children) if shown else ""
        link = relative(f"{name}.html", f"{pagename}.html")
        return (f'<li class="{css}"><a class="{"current " if pagename == name else ""}reference internal" href="{link}">{html.escape(title)}</a>'
                + (f"<ul>{inner}</ul>" if inner else "") + "</li>")

    def tree(**_):
        return "".join(f'<p class="caption" role="heading"><span class="caption-text">{html.escape(part)}</span></p><ul>'
                       + "".join(entry(*each, 1) for each in days) + "</ul>" for part, days in navigation)
    context["toctree"] = tree


def resolve_files(app, doctree, docname):
    """Addresses that stage.py wrote as course:PATH become relative to the page."""
    for node in doctree.findall(nodes.reference):
        target = node.get("refuri", "")
        if target.startswith("course:"):
            node["refuri"] = relative(target.removeprefix("course:"), f"{docname}.html")
            node["classes"] = [name for name in node["classes"] if name != "external"] + ["internal"]


def lexer_for(name):
    suffix = os.path.splitext(name)[1]
    if suffix in CUDA:
        return get_lexer_by_name("cuda")
    try:
        return get_lexer_for_filename(name)
    except ClassNotFound:
        return get_lexer_by_name("text")


class Lines(HtmlFormatter):
    """Each line in a span of its own, with a number that links to it."""

    def wrap(self, source):
        yield 0, '<div class="highlight course-source"><pre>'
        for number, (_, line) in enumerate(source, 1):
            yield 1, f'<span class="line" id="L{number}"><a class="number" href="#L{number}" aria-label="line {number}">{number}</a>{line}</span>'
        yield 0, "</pre></div>"


def source_page(root, name):
    text = (root / name).read_text(encoding="utf-8")
    lexer = lexer_for(name)
    lexer.stripnl = False
    return f"<h1><code>{html.escape(name)}</code></h1>\n" + highlight(text, lexer, Lines())


def collect(app):
    import pathlib
    import json
    site = json.loads((pathlib.Path(app.srcdir) / "site.json").read_text(encoding="utf-8"))
    root = pathlib.Path(site["root"])
    for name in site["sources"]:
        yield f"source/{name}", {"title": name, "body": source_page(root, name), "course_source": name}, "page.html"
    for folder, files in site["folders"].items():
        page = f"source/{folder}/index"
        items = "".join(f'<li><a href="{relative(address, page + ".html")}">{html.escape(file)}</a></li>' for file, address in files)
        yield page, {"title": f"{folder}/", "body": f"<h1><code>{html.escape(folder)}/</code></h1>\n<ul>{items}</ul>"}, "page.html"
