"""Do all references of a static site lead somewhere? Reads the HTML files; needs neither a browser nor the network.

check(root) looks at every HTML file below `root` and returns a list of Fault, empty if the site is sound:
- each relative link, style, script and picture names a file of the site, each anchor an id of its page;
- nothing is loaded from another host: links may lead there, pictures, styles, scripts, fonts and frames may not;
- style sheets are held to the same rule, and so are the `url(...)` of style attributes;
- ids are unique within a page, and a page has a title and a language.
"""
import functools
import html.parser
import pathlib
import re
import urllib.parse
from typing import NamedTuple

LOADED = {"script": ("src",), "img": ("src", "srcset"), "source": ("src", "srcset"), "iframe": ("src",), "video": ("src", "poster"),
          "audio": ("src",), "embed": ("src",), "object": ("data",), "track": ("src",), "input": ("src",), "image": ("href", "xlink:href"),
          "use": ("href", "xlink:href")}
LOADING_RELATIONS = {"stylesheet", "icon", "preload", "modulepreload", "manifest", "apple-touch-icon", "preconnect", "dns-prefetch", "prefetch"}
CSS_REFERENCE = re.compile(r"""url\(\s*(?:"([^"]*)"|'([^']*)'|([^)"'\s]*))\s*\)|@import\s+["']([^"']+)["']""")
CSS_COMMENT = re.compile(r"/\*.*?\*/", re.S)
SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")


class Fault(NamedTuple):
    file: str  # relative to the site's root
    line: int
    text: str

    def __str__(self):
        return f"{self.file}:{self.line}: {self.text}"


class Reference(NamedTuple):
    line: int
    target: str
    loaded: bool  # the browser fetches it without a click


def css_references(text):
    """All addresses that style rules name."""
    return [next(group for group in match.groups() if group is not None)
            for match in CSS_REFERENCE.finditer(CSS_COMMENT.sub("", text))]


class Page(html.parser.HTMLParser):
    """References, ids and a few properties of one page."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.references, self.ids, self.repeated = [], set(), []
        self.title, self.language = "", ""
        self._inside, self._in_svg = None, 0
        self.feed(text)
        self.close()

    def _add(self, target, loaded):
        if target is not None:
            self.references.append(Reference(self.getpos()[0], target.strip(), loaded))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self._in_svg += tag == "svg"
        if found.get("id"):
            if found["id"] in self.ids:
                self.repeated.append((self.getpos()[0], found["id"]))
            self.ids.add(found["id"])
        if tag == "a":
            self._add(found.get("href", found.get("xlink:href")), loaded=False)
            if found.get("name"):
                self.ids.add(found["name"])
        elif tag in ("form", "area"):
            self._add(found.get("action" if tag == "form" else "href"), loaded=False)
        elif tag == "link":
            self._add(found.get("href"), loaded=bool(LOADING_RELATIONS & set((found.get("rel") or "").lower().split())))
        elif tag == "html":
            self.language = found.get("lang") or ""
        elif tag == "meta" and (found.get("http-equiv") or "").lower() == "refresh":
            self._add((found.get("content") or "").partition("url=")[2].strip("'\" "), loaded=False)
        for name in LOADED.get(tag, ()):
            if found.get(name) is None:
                continue
            if name == "srcset":
                for candidate in found[name].split(","):
                    self._add((candidate.split() or [""])[0], loaded=True)
            else:
                self._add(found[name], loaded=True)
        for target in css_references(found.get("style") or ""):
            self._add(target, loaded=True)
        self._inside = tag

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self._in_svg -= tag == "svg"

    def handle_endtag(self, tag):
        self._inside = None
        self._in_svg -= tag == "svg"

    def handle_data(self, data):
        if self._inside == "style":
            for target in css_references(data):
                self._add(target, loaded=True)
        elif self._inside == "title" and not self._in_svg:
            self.title += data


class Site:
    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        self.files = {path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file()}

    @functools.cache
    def page(self, name):
        return Page((self.root / name).read_text(encoding="utf-8"))

    def wrong_with(self, reference, name):
        """Why a reference of the file `name` leads nowhere, or None."""
        target = reference.target
        if target.startswith("//") or re.match(r"(?:https?|ftp|wss?):", target):
            return f"{target} is loaded from another host" if reference.loaded else None
        if target.startswith(("data:", "mailto:", "blob:", "about:")):
            return None
        if SCHEME.match(target):
            return f"{target} has a scheme that a static page cannot follow"
        if target.startswith("/"):
            return f"{target} begins with /, which leads nowhere from file:, or where the site is in a folder of a host"
        path, _, anchor = target.partition("#")
        path, anchor = urllib.parse.unquote(path.partition("?")[0]), urllib.parse.unquote(anchor)
        there = name
        if path:
            there = pathlib.PurePosixPath(name).parent.joinpath(path).as_posix()
            parts = []
            for part in there.split("/"):
                if part == ".." and not parts:
                    return f"{target} leads out of the site"
                if part == "..":
                    parts.pop()
                elif part not in ("", "."):
                    parts.append(part)
            there = "/".join(parts)
            if there not in self.files:
                folder = f"{there}/index.html".lstrip("/") in self.files
                return f"{target}: " + ("a folder, of which file: shows a listing; expected .../index.html" if folder else "there is no such file")
        if anchor and there.endswith(".html") and anchor not in self.page(there).ids:
            return f"{target}: {there} has no id '{anchor}'"
        return None

    def faults(self, name):
        if name.endswith(".css"):
            text = (self.root / name).read_text(encoding="utf-8")
            references = [Reference(1, target, True) for target in css_references(text)]
            return [Fault(name, 1, why) for reference in references if (why := self.wrong_with(reference, name))]
        page = self.page(name)
        found = [Fault(name, reference.line, why) for reference in page.references if (why := self.wrong_with(reference, name))]
        found += [Fault(name, line, f"the id '{repeated}' is not the first of that name") for line, repeated in page.repeated]
        if not page.title.strip():
            found.append(Fault(name, 1, "the page has no title"))
        if not page.language:
            found.append(Fault(name, 1, "<html> has no lang"))
        return found


def check(root):
    """All faults of the site below `root`, in the order of file names."""
    site = Site(root)
    return [fault for name in sorted(site.files) if name.endswith((".html", ".css")) for fault in site.faults(name)]


def count(root):
    """How many pages there are, and how many references they have."""
    site = Site(root)
    pages = [name for name in site.files if name.endswith(".html")]
    return len(pages), sum(len(site.page(name).references) for name in pages)
