"""Repairs what the theme's HTML lacks for a keyboard, a screen reader or a phone: WCAG 2.2 asks that what scrolls can have the focus,
and each line of code is an element of its own, so that a narrow screen can wrap it with a hanging indent.

conf.py: app.connect("html-page-context", accessible.repair, priority=900)
"""
import re

LANGUAGES = "cuda|c|sh|bash|python|cmake"  # not output, whose columns must stay
LINES = re.compile(rf'(<div class="highlight-(?:{LANGUAGES}) notranslate"><div class="highlight"><pre>)(.*?)(</pre>)', re.S)
CODE = re.compile(r'(<div class="highlight">)<pre>')
TABLE = re.compile(r'<div class="table-wrapper([^"]*)">')
HEADING = re.compile(r'<p class="caption" role="heading">')


def lines(code):
    """The code with an element for each line, which knows its indentation."""
    return "".join(f'<span class="code-line"{indentation(line)}>{line}\n</span>' for line in code.removesuffix("\n").split("\n"))


def indentation(line):
    """The attribute that tells the style sheet by how much a line of code is indented."""
    plain = re.sub(r"<[^>]*>", "", line)
    indent = min(len(plain) - len(plain.lstrip(" ")), 12)  # what is aligned with a parenthesis would start at the right edge
    return f' style="--indent:{indent}"' if indent and plain.strip() else ""


def repaired(html):
    """The HTML, in which code and tables can have the focus, and headings of the navigation have a level."""
    html = LINES.sub(lambda match: match[1] + lines(match[2]) + match[3], html)
    html = CODE.sub(r'\1<pre tabindex="0" role="region" aria-label="Code">', html)
    html = TABLE.sub(r'<div class="table-wrapper\1" tabindex="0" role="region" aria-label="Table">', html)
    return HEADING.sub('<p class="caption" role="heading" aria-level="2">', html)


def repair(app, pagename, templatename, context, doctree):
    """For Sphinx's event html-page-context."""
    for name in ("body", "furo_navigation_tree"):
        if isinstance(context.get(name), str):
            context[name] = repaired(context[name])
