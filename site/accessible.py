"""Repairs what the theme's HTML lacks for a keyboard or a screen reader: WCAG 2.2 asks that what scrolls can have the focus.

conf.py: app.connect("html-page-context", accessible.repair, priority=900)
"""
import re

CODE = re.compile(r'(<div class="highlight">)<pre>')
TABLE = re.compile(r'<div class="table-wrapper([^"]*)">')
HEADING = re.compile(r'<p class="caption" role="heading">')


def repaired(html):
    """The HTML, in which code and tables can have the focus, and headings of the navigation have a level."""
    html = CODE.sub(r'\1<pre tabindex="0" role="region" aria-label="Code">', html)
    html = TABLE.sub(r'<div class="table-wrapper\1" tabindex="0" role="region" aria-label="Table">', html)
    return HEADING.sub('<p class="caption" role="heading" aria-level="2">', html)


def repair(app, pagename, templatename, context, doctree):
    """For Sphinx's event html-page-context."""
    for name in ("body", "furo_navigation_tree"):
        if isinstance(context.get(name), str):
            context[name] = repaired(context[name])
