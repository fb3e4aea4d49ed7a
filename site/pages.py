"""What conf.py hooks into Sphinx: the navigation, links to files, and the page for addresses that do not exist."""
import hashlib
import html
import os
import pathlib

from docutils import nodes


def made_by(folder):
    """A digest of the modules that make the pages: where it is another, Sphinx writes all pages anew, although their sources are the same."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        if not path.name.startswith("test_"):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def relative(target, page):
    """The address of a file of the site, seen from a page."""
    name, _, anchor = target.partition("#")
    return os.path.relpath(name, os.path.dirname(page) or ".") + (f"#{anchor}" if anchor else "")


def no_toctree(app, pagename, templatename, context, doctree):
    """Sphinx's own tree of all pages would take most of the build's time."""
    context["toctree"] = lambda **_: ""


def add_navigation(app, pagename, templatename, context, doctree):
    """The parts and their pages. The theme makes its sidebar from it; pages of a day are listed only where it is shown."""
    navigation = app.config.course_navigation
    context["course_search_form"] = SEARCH_FORM

    def entry(name, title, children, level):
        shown = pagename == name or pagename.startswith(os.path.dirname(name) + "/") or any(child[0] == pagename for child in children)
        if level == 2 and not children:
            shown = pagename == name
        css = f"toctree-l{level}" + (" current" if shown else "") + (" current-page" if pagename == name else "")
        inner = "".join(entry(*child, [], level + 1) for child in children) if shown else ""
        link = relative(f"{name}.html", f"{pagename}.html")
        return (f'<li class="{css}"><a class="{"current " if pagename == name else ""}reference internal" href="{link}">{html.escape(title)}</a>'
                + (f"<ul>{inner}</ul>" if inner else "") + "</li>")

    context["furo_navigation_tree"] = "".join(f'<p class="caption" role="heading"><span class="caption-text">{html.escape(part)}</span></p><ul>'
                       + "".join(entry(*each, 1) for each in days) + "</ul>" for part, days in navigation)
    if app.config.course_repository:
        context["furo_navigation_tree"] += (f'<ul><li class="toctree-l1"><a class="reference external" href="{html.escape(app.config.course_repository)}">'
                                            "The repository</a></li></ul>")


def resolve_files(app, doctree, docname):
    """Addresses that stage.py wrote as course:PATH become relative to the page."""
    for node in doctree.findall(nodes.reference):
        target = node.get("refuri", "")
        if target.startswith("course:"):
            node["refuri"] = relative(target.removeprefix("course:"), f"{docname}.html")
            node["classes"] = [name for name in node["classes"] if name != "external"] + ["internal"]


SEARCH_FORM = """<form class="not-found" action="search.html" method="get" role="search" aria-label="The whole site">
<input type="search" name="q" aria-label="Search"> <button type="submit">Search</button></form>"""
NOT_FOUND = f"""<h1>No such page</h1>
<p>The address leads to no page of this site. Search for what you are looking for:</p>
{SEARCH_FORM}
<p>Or begin at the <a href="index.html">front page</a>.</p>
"""


AT_HOME = """if (location.protocol === "file:") document.querySelector("base").href = location.href;"""
# With a base, a link to an anchor would leave the page.
SAME_PAGE = """for (const link of document.querySelectorAll('a[href^="#"]')) link.href = location.href.split("#")[0] + link.getAttribute("href");"""


def collect(app):
    """The page 404.html."""
    yield "404", {"title": "No such page", "body": NOT_FOUND}, "page.html"


def finish(app, exception):
    """A server shows 404.html at any address, so its links start at the site's base there, and not where the file lies."""
    if exception:
        return
    path = pathlib.Path(app.outdir) / "404.html"
    text = path.read_text(encoding="utf-8")
    base = f'<base href="{html.escape(app.config.course_base)}"><script>{AT_HOME}</script>'
    text = text.replace("<head>", f"<head>{base}", 1)
    path.write_text(text.replace("</body>", f"<script>{SAME_PAGE}</script></body>", 1), encoding="utf-8")
