"""Sphinx's configuration: the theme, the navigation, and the pages that no Markdown file makes."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import accessible  # noqa: E402
import pages  # noqa: E402
import run_here  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "build" / "site" / "source"
SITE = json.loads((SOURCE / "site.json").read_text(encoding="utf-8"))

project = "CUDA, day by day"
copyright = "the authors of the course; MIT licence"
extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["extra"]
language = "en"
nitpicky = True
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
highlight_language = "none"
smartquotes = False

# Markdown as the code host reads it: no roles, no targets, no comments that begin with %.
myst_heading_anchors = 6
myst_disable_syntax = ["myst_role", "myst_target", "myst_line_comment", "myst_block_break", "footnote_ref", "footnote_block", "dollarmath"]
myst_enable_extensions = ["strikethrough"]
myst_url_schemes = ["http", "https", "mailto", "course"]

html_theme = "furo"
html_favicon = "static/favicon.svg"
html_title = "CUDA, day by day"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2f6b00", "color-brand-content": "#2f6b00", "color-brand-visited": "#5a3d8a"},
    "dark_css_variables": {"color-brand-primary": "#9bdb4d", "color-brand-content": "#9bdb4d", "color-brand-visited": "#c9b0f0"},
    "top_of_page_buttons": [],
}
ROOT = SOURCE.parent.parent.parent
html_static_path = ["static"] + [str(run_here.script(ROOT).parent)] * run_here.script(ROOT).is_file()
templates_path = ["templates"]
html_extra_path = [str(SOURCE / "extra")]
html_css_files = ["course.css"] + [name for name in SITE["static"] if name.endswith(".css")]
html_js_files = ["course.js"] + [(name, {"defer": "defer"}) for name in SITE["static"] if name.endswith(".js")]
html_copy_source = False
html_show_search_summary = False  # it would fetch each page, which file: refuses
html_show_sphinx = False
html_use_index = False
html_domain_indices = False
pygments_style = "tango"
pygments_dark_style = "monokai"

copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
copybutton_exclude = ".linenos, .gp, .go"


def setup(app):
    app.add_config_value("course_navigation", SITE["navigation"], "html")
    app.add_config_value("course_repository", SITE["repository"], "html")
    app.add_config_value("course_base", "/", "")
    app.add_config_value("course_made_by", pages.made_by(pathlib.Path(__file__).resolve().parent), "html")
    app.connect("html-page-context", pages.no_toctree, priority=400)       # before the theme asks for it
    app.connect("html-page-context", pages.add_navigation, priority=600)   # after the theme
    app.connect("html-page-context", accessible.repair, priority=900)
    app.connect("doctree-resolved", pages.resolve_files)
    app.connect("html-collect-pages", pages.collect)
    app.connect("build-finished", pages.finish)
