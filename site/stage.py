"""Stages the site: from the Markdown of the tree to the sources that Sphinx reads.

stage(root, target) writes
  NAME.md           a page; NAME/index is the page at the address NAME/
  extra/            what is copied into the site as it is: figures, files, redirects
  site.json         what conf.py needs: the navigation, the source files that become pages, static files

Every relative link is changed so that it leads to a page, to the page of a source file or to a copied file. A link to anything else is
an error that names file and line.
"""
import dataclasses
import html
import importlib.util
import json
import math
import os
import pathlib
import re
import shutil
import sys
import urllib.parse

import accessible
import changes
import front
import glossary
import parts
import source

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import check_links  # noqa: E402

PICTURES = {".svg", ".png", ".gif", ".jpg", ".webp"}
COPIED = {".json", ".jsonl", ".pdf", ".csv", ".pgm", ".ppm"} | PICTURES   # links to these lead to the file itself
SCHEME = "course:"    # begins an address that conf.py makes relative to the page
DAY_ROW = re.compile(r"^\| \[(?P<label>[^\]]*)\]\((?P<folder>[^)/]*)/README\.md\) \| (?P<question>[^|]*) \| (?P<needs>[^|]*) \| (?P<hours>[^|]*)"
                     r" \| (?P<exercises>[^|]*) \| (?P<best>[^|]*) \|$", re.M)
NEED = re.compile(r"\[([^\]]*)\]\(([^)/]*)/README\.md\)")
LESSON = re.compile(r"(?:day\d\d_\w+|gemm_ladder)/README\.md")
TABLE = re.compile(r"^\|.*\|\n\|[ :|-]+\|\n(?:\|.*\|\n?)+", re.M)
LETTERS = re.compile(r'font-size[:=]\s*"?([\d.]+)|font:[^;"}]*?([\d.]+)px')
LEAST_LETTERS = 9    # pixels
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>```+)(?P<language>[a-z+]*)\n(?P<first>[^\n]*)", re.M)

# Pages beside the days: their place in the navigation.
SECTIONS = (
    ("Look up", ["docs/parts.md", "docs/book.md", "docs/oak_ridge.md", "docs/sources.md", "docs/glossary.md",
                 "docs/algorithm_selection.md", "docs/types.md", "docs/profiling.md", "docs/errata.md", "docs/command.md"]),
    ("Teach", ["docs/teachers.md", "docs/syllabus.md"]),
    ("CUDA on the CPU", ["cuda_on_cpu/README.md", "cuda_on_cpu/docs/how_it_works.md", "cuda_on_cpu/docs/differences.md",
                         "cuda_on_cpu/docs/programs.md", "cuda_on_cpu/docs/findings.md", "cuda_on_cpu/docs/settings.md",
                         "cuda_on_cpu/docs/libraries.md", "cuda_on_cpu/docs/compiler.md", "cuda_on_cpu/docs/architecture.md",
                         "cuda_on_cpu/calibration/README.md", "cuda_on_cpu/CHANGELOG.md"]),
    ("The project", ["common/README.md", "common/headers.md", "python/README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md",
                     "SECURITY.md", "site/README.md"]),
)


@dataclasses.dataclass(frozen=True)
class Day:
    folder: str       # day15_reduction
    label: str        # 15 Reduction
    question: str
    needs: tuple      # of (number, folder) of the days to read before
    hours: str
    part: str         # 2. Patterns

    @property
    def name(self):   # day15
        return short_name(self.folder)


def short_name(folder):
    return folder[:5] if re.match(r"day\d\d_", folder) else folder


def read_days(root):
    """The days in the order in which they are read, from the tables of the front page."""
    days, part = [], ""
    for line in (root / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("### "):
            part = line[4:].strip()
        row = DAY_ROW.match(line)
        if row:
            days.append(Day(row["folder"], row["label"], row["question"], tuple(NEED.findall(row["needs"])), row["hours"].strip(), part))
    return days


def page_of(path):
    """The page made from a Markdown file: day15_reduction/beyond/README.md -> day15/beyond/index."""
    folder, _, file = path.rpartition("/")
    if path == "README.md":
        return "index"
    if folder == "docs/measured":
        return f"{short_name(file[:-3])}/measured/index"
    parts = [short_name(part) for part in folder.split("/") if part and part != "docs"]
    if file != "README.md":
        parts.append(file[:-3].lower())
    return "/".join(parts + ["index"])


def markdown_of(root):
    """The Markdown files that become pages, as paths relative to root."""
    known = check_links.known_to_git(root)
    return sorted(name for name in known if name.endswith(".md") and not name.startswith(".github/") and (root / name).is_file())


def title_of(text):
    """The first heading, as plain text."""
    heading = re.search(r"^# +(.*)$", text, re.M)
    return re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).strip() if heading else ""


def below_title(text, section):
    """The page with a section between its title and what follows the title."""
    before, title, rest = re.split(r"^(# .*)\n", text, maxsplit=1, flags=re.M)
    return f"{before}{title}\n\n{section}\n{rest}"


def outside_code(text):
    """The text with blanks in place of code and comments, so that positions stay."""
    for pattern in (check_links.CODE[0], check_links.INLINE_CODE, check_links.CODE[1]):
        text = check_links.blank(text, pattern)
    return text


def without_comments(text):
    """No HTML comments, except in code."""
    fences = [match.span() for match in check_links.CODE[0].finditer(text)]
    fences += [match.span() for match in check_links.INLINE_CODE.finditer(text)]
    def keep(match):
        return match[0] if any(begin <= match.start() < end for begin, end in fences) else ""
    return re.sub(r"<!--.*?-->", keep, text, flags=re.S)


def plain_tables(text):
    """Tables without links and HTML as HTML: Sphinx would spend half of its time on their cells."""
    return TABLE.sub(lambda match: match[0] if re.search(r"\]\(|<|\\\|", match[0]) else table_html(match[0]), text)


def table_html(table):
    """HTML of a Markdown table, with the classes that the theme gives to tables."""
    head, rule, *rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.strip().split("\n")]
    classes = [' class="text-right"' if cell.endswith(":") else "" for cell in rule]

    def row(cells, tag):
        return "<tr>" + "\n".join(f"<{tag}{css}>{inline_html(cell)}</{tag}>" for cell, css in zip(cells, classes)) + "</tr>"

    return "\n".join(['<div class="table-wrapper docutils container">', '<table class="docutils align-default">', "<thead>", row(head, "th"), "</thead>", "<tbody>",
                      *(row(cells, "td") for cells in rows), "</tbody>", "</table>", "</div>"]) + "\n"


def inline_html(text):
    """HTML of a cell: code, bold and italic; a long name can break after an underscore."""
    for pattern, tag in ((r"`([^`]+)`", "code"), (r"\*\*([^*]+)\*\*", "strong"), (r"\*([^*\s][^*]*)\*", "em")):
        text = re.sub(pattern, rf"<{tag}>\1</{tag}>", text if tag != "code" else html.escape(text, quote=False))
    return re.sub(r"(?<=\w)_(?=\w)", "_<wbr>", text)  # names may be wider than their column


def folded_hints(text):
    """The hints of exercises, which a reader opens one by one."""
    def fold(match):
        return f"<details><summary>{match['title']}</summary>\n\n{match['body'].strip()}\n\n</details>\n\n"
    return re.sub(r"^### (?P<title>Hint \d+)\n(?P<body>.*?)(?=^#{1,3} |\Z)", fold, text, flags=re.S | re.M)


FIELDS = re.compile(r"^(?P<heading>## .*)\n+(?P<fields>(?:- [a-z_]+: .*\n(?:  .*\n)*)+)", re.M)


def exercise_sheet(text, day):
    """The exercises for a reader: how to begin, and of each one's fields only its file and its minutes."""
    def shorten(match):
        fields = dict(re.findall(r"^- (file|minutes): (.*)$", match["fields"], re.M))
        shown = [fields[name] + suffix for name, suffix in (("file", ""), ("minutes", " minutes")) if name in fields]
        return f"{match['heading']}\n\n{', '.join(shown)}\n"
    begin = (f"`./course next {day}` copies the file to `my/`, `./course check` judges it, and `./course hint` helps:\n"
             "[how exercises work](../docs/command.md#exercises).\n")
    return below_title(FIELDS.sub(shorten, text), begin)


def facts(root, day):
    """A line for the head of a day: its part, the days that it needs, its hours, its exercises."""
    number, _, name = day.part.partition(". ")
    found = [f"[Part {number}: {name}](../{parts.address(day.part)}.md)"]
    found += ["Needs " + ", ".join(f"[{number}](../{folder}/README.md)" for number, folder in day.needs)] if day.needs else []
    found += [f"{day.hours} hours"] if day.hours else []
    found += ["[Exercises](exercises.md)"] if (root / day.folder / "exercises.md").is_file() else []
    return " · ".join(found) + "\n"


def way_on(root, day, days, here="README.md"):
    """A line for the foot of a day and of its exercises: the other pages of the day, and the next day."""
    others = [("exercises.md", "Exercises"), ("beyond/README.md", "Beyond")]
    parts = [f"[{title}](../{day.folder}/{name})" for name, title in others if name != here and (root / day.folder / name).is_file()]
    if (root / f"docs/measured/{day.folder}.md").is_file():
        parts.append(f"[Measured](../docs/measured/{day.folder}.md)")
    after = days[days.index(day) + 1:][:1]
    parts += [f"next day: [{following.label}](../{following.folder}/README.md)" for following in after]
    return f"\n\n**Go on:** {' · '.join(parts)}\n" if parts else ""


def with_languages(text):
    """Names the language of code blocks: CUDA for C++, and of blocks without one whether they are commands."""
    def name(match):
        language, first = match["language"], match["first"].lstrip()
        if language == "cpp":
            language = "cuda"
        elif not language and first.startswith("$ "):
            language = "console"
        elif not language and re.match(r"(?:\./course|cmake|nvcc|git|sudo|python3|scripts/|apt) ?", first):
            language = "sh"
        return f"{match['indent']}{match['ticks']}{language}\n{match['first']}"
    blanked_ends = {match.start() for match in check_links.CODE[0].finditer(text)}
    return FENCE.sub(lambda match: name(match) if match.start() in blanked_ends else match[0], text)


class Stage:
    """One run: collects errors, and the files that links lead to."""

    def __init__(self, root, target):
        self.root, self.target = root, target
        self.known = check_links.known_to_git(root)
        self.pages = {name: page_of(name) for name in markdown_of(root)}
        self.sources, self.folders, self.copied = set(), set(), set()
        self.errors, self.written = [], set()
        self.texts = {}    # of the pages whose words are worth showing in a search: no tables of measurements, no list of changes

    def write(self, name, text):
        """Writes a file of the stage; one that has not changed keeps its time, so that Sphinx need not read it again."""
        path = self.target / name
        self.written.add(path)
        if name.endswith(".md") and not re.search(r"measured/|changelog/|^kernels/|^gpus/|^index\.md$", name):
            self.texts[name[:-3]] = plain_text(text)
        # The search drops the tags of HTML: cells need a space between them.
        data = text if isinstance(text, bytes) else re.sub(r"(</t[dh]>)(<t[dh])", r"\1\n\2", text).encode()
        if path.exists() and path.read_bytes() == data:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def remove_others(self):
        for path in sorted(self.target.rglob("*"), reverse=True):
            if path.is_file() and path not in self.written:
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                path.rmdir()

    def address(self, link, path):
        """The address that a link of the file `path` gets, or None if it stays; with errors for those that lead nowhere."""
        if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//", link) or link.startswith("#"):
            return None
        name, _, anchor = link.partition("#")
        there = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(name)))
        anchor = f"#{anchor}" if anchor else ""
        if there in self.pages:
            return f"{os.path.relpath(self.pages[there], os.path.dirname(self.pages[path]))}.md{anchor}"
        if f"{there}/README.md" in self.pages:
            return self.address(os.path.relpath(f"{there}/README.md", os.path.dirname(path) or ".") + anchor, path)
        if there not in self.known or not (self.root / there).exists():
            raise LookupError(f"there is no {there}")
        return SCHEME + self.file(there) + anchor

    def file(self, there):
        """The address inside the site of a file or folder of the tree that is no page."""
        if (self.root / there).is_dir():
            self.folders.add(there)
            return f"source/{there}/index.html"
        if pathlib.PurePosixPath(there).suffix in COPIED:
            self.copied.add(there)
            return f"files/{there}"
        self.sources.add(there)
        return f"source/{there}.html"

    def source_page(self, name, day=None, files=()):
        """The page of a source file. The source is highlighted again only if it or a module that makes the page is newer than the page, or
        what is around it is another."""
        path = self.target / f"extra/source/{name}.html"
        newest = max(file.stat().st_mtime for file in [self.root / name, *(pathlib.Path(each.__file__) for each in (source, accessible))])
        before, after = source.around(name, day, files)
        text = path.read_text(encoding="utf-8") if path.exists() and path.stat().st_mtime > newest else ""
        if text.startswith(before) and text.endswith(after):
            self.written.add(path)
        else:
            self.write(f"extra/source/{name}.html", source.page(self.root, name, day, files))
            os.utime(path)

    def relink(self, text, path):
        """Changes the targets of links and pictures."""
        blanked, pieces, end = outside_code(text), [], 0
        for match in check_links.LINK.finditer(blanked):
            group = next((name for name in ("angled", "plain", "defined", "html") if match[name] is not None), None)
            if group is None or group == "html":
                continue
            try:
                address = self.address(match[group], path)
            except LookupError as error:
                self.errors.append(f"{path}: the link {match[group]}: {error}")
                continue
            if address is not None:
                begin, stop = match.span(group)
                pieces += [text[end:begin], address]
                end = stop
        return "".join(pieces) + text[end:]

    def pictures(self, text, path):
        """Pictures as HTML: of SVGs a copy for each theme, because a reader can choose another theme than the system's."""
        def tag(match):
            alt, name = match[1], match[2]
            there = os.path.normpath(os.path.join(os.path.dirname(path), name))
            if there not in self.known:
                self.errors.append(f"{path}: the picture {name}: there is no {there}")
                return match[0]
            top = os.path.relpath(".", os.path.dirname(self.pages[path]) or ".")
            attributes = f'alt="{html.escape(text_of(alt))}" loading="lazy"'
            if not there.endswith(".svg"):
                self.copied.add(there)
                return f'<img src="{top}/files/{there}" {attributes}>'
            svg = (self.root / there).read_text(encoding="utf-8")
            attributes += size_of(svg)
            if "prefers-color-scheme" not in svg:
                self.copied.add(there)
                return figure(f'<img class="paper" src="{top}/files/{there}" {attributes}>')
            for theme, query in (("light", "not all"), ("dark", "all")):
                self.write(f"extra/figures/{there[:-4]}.{theme}.svg", of_theme(svg, query))
            return figure("".join(f'<img class="only-{theme}" src="{top}/figures/{there[:-4]}.{theme}.svg" {attributes}>' for theme in ("light", "dark")))
        return re.sub(r"!\[([^\]]*)\]\(([^)\s]+)\)", tag, text)

    def page(self, text, path):
        """The Markdown of a page from that of the tree."""
        return with_languages(self.relink(self.named(self.pictures(without_comments(text), path), path), path))

    def named(self, text, path):
        """Links with the name of a file or folder as their text get the title of its page; a day's README is a lesson here."""
        def name(match):
            there = os.path.normpath(os.path.join(os.path.dirname(path), match["link"].partition("#")[0]))
            if match["text"] == "README":
                if LESSON.fullmatch(there):
                    return f"{match['the']}[lesson]({match['link']})"
                return f"[{title_of((self.root / there).read_text(encoding='utf-8'))}]({match['link']})" if there in self.pages else match[0]
            if match["text"] == "beyond/README.md":
                return f"{match['the']}[{'The' if text[:match.start()].endswith(chr(10) * 2) else 'the'} part beyond]({match['link']})"
            if there in self.pages and there.endswith(match["text"] if match["text"].endswith(".md") else f"{match['text']}/README.md"):
                return f"{match['the']}[{title_of((self.root / there).read_text(encoding='utf-8'))}]({match['link']})"
            return match[0]
        return re.sub(r"(?P<the>\bthe\s+|)\[(?P<text>README|[\w/]+\.md|day\d\d_\w+)\]\((?P<link>[^)\s]+)\)", name, text)


def of_theme(svg, query):
    """The picture with its dark colours under another media query: "all" or "not all"."""
    return re.sub(r"\s*\(prefers-color-scheme:\s*dark\)", " " + query, svg)


def text_of(markdown):
    return re.sub(r"[`*]", "", markdown).replace("\n", " ")


def figure(image):
    """A picture that scrolls where it would be illegible if it were as narrow as the page."""
    return f'<span class="figure" tabindex="0" role="group" aria-label="Figure">{image}</span>'


def size_of(svg):
    """Width and height as HTML attributes, so that the page does not jump when the picture arrives, and the width below which its smallest
    letters would be less than LEAST_LETTERS high."""
    box = re.search(r'viewBox="\S+ \S+ (\S+) (\S+)"', svg)
    if not box:
        return ""
    width, height = round(float(box[1])), round(float(box[2]))
    letters = [float(size) for pair in LETTERS.findall(svg) for size in pair if size]
    least = f' style="min-width: {min(width, math.ceil(width * LEAST_LETTERS / min(letters)))}px"' if letters else ""
    return f' width="{width}" height="{height}"{least}'


TAG = re.compile(r"</?(?:a|abbr|b|br|wbr|button|code|dd|details|div|dl|dt|em|form|h\d|img|input|label|li|ol|p|pre|section|small|span|strong|sub|summary|sup"
                 r"|table|tbody|td|th|thead|tr|ul)\b[^<>]*>")
MARKS = re.compile(r"^(?:```|---$|orphan: true$).*$|^\|[ :|-]+\|$|^#+ |`|(?<!\s)\*+|\*+(?!\s)|(?<=\s)\|(?=\s)|^\||\|$", re.M)


def plain_text(markdown):
    """The text of a page, for the context of a search's results."""
    text = re.sub(r"^```\{toctree\}.*?^```$", "", markdown, flags=re.S | re.M)
    text = TAG.sub("", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text))
    return " ".join(html.unescape(MARKS.sub("", text)).split())


def module(name):
    """One of the modules that bring pages of their own, or None where it is not there yet."""
    return __import__(name) if importlib.util.find_spec(name) else None


def toctree(names, page):
    if not names:
        return ""
    here = os.path.dirname(page)
    lines = "\n".join(os.path.relpath(name, here or ".") for name in names)
    return f"\n\n```{{toctree}}\n:hidden:\n\n{lines}\n```\n"


def redirects(root, days):
    """Old addresses -> pages: days that were renumbered, and the names of their folders."""
    numbers = {day.folder: day.name for day in days}
    found = {day.folder: day.name for day in days if day.folder != day.name}
    text = (root / "tools/course/renumbered.cpp").read_text(encoding="utf-8")
    for before, now in re.findall(r'\{"(day\d\d_\w+)", "(day\d\d_\w+)"\}', text):
        if now in numbers:
            found[before] = numbers[now]
            if before[:5] not in numbers.values():   # that number is free
                found[before[:5]] = numbers[now]
    return found


def redirect_page(name):
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Moved: {name}</title>'
            f'<meta http-equiv="refresh" content="0; url=../{name}/index.html"><link rel="canonical" href="../{name}/index.html">'
            f'<p>This day is now <a href="../{name}/index.html">{name}</a>.</p></html>\n')


def stage(root, target, repository=None):
    """Writes the sources of the site; returns a list of errors. `repository`: the address from which a reader can clone the course."""
    run = Stage(root, target)
    days = read_days(root)
    quizzes, charts, kernels, slides = (module(name) for name in ("quizzes", "charts", "kernels", "slides"))
    texts = {path: (root / path).read_text(encoding="utf-8") for path in run.pages}
    titles = {run.pages[path]: title_of(text) for path, text in texts.items()}
    folders = {day.folder: day for day in days}
    try:
        part_pages = parts.pages(root, days)
    except ValueError as error:
        return [str(error)]
    order_of_parts = list(dict.fromkeys(day.part for day in days))
    run.pages.update({f"{name}.md": name for name in part_pages})   # so that links can lead to them

    # The pages of each day, in the order in which they are read.
    children = {}
    for day in days:
        names = [f"{day.folder}/exercises.md"] + sorted(path for path in run.pages if path.startswith(f"{day.folder}/") and path.count("/") > 1)
        names.append(f"docs/measured/{day.folder}.md")
        children[f"{day.name}/index"] = [run.pages[path] for path in names if path in run.pages]

    decks = slides.pages(root) if slides else {}
    terms = glossary.read(texts["docs/glossary.md"])
    for path, text in texts.items():
        name, folder = run.pages[path], path.split("/")[0]
        if path == "README.md":
            continue
        if path == "docs/glossary.md":
            used = glossary.uses(terms, {other: texts[other] for other in texts if other.split("/")[0] in folders})
            labels = {other: folders[other.split("/")[0]].label for other in texts if other.split("/")[0] in folders}
            run.write(f"{name}.md", glossary.page(text, terms, used, labels, run))
            continue
        if quizzes and folder in folders:
            text = quizzes.transform(folder, text, root)
        if path.endswith("/exercises.md"):
            text = folded_hints(exercise_sheet(text, short_name(folder)))
            if path == f"{folder}/exercises.md" and folder in folders:
                text = text.rstrip() + way_on(root, folders[folder], days, "exercises.md")
        if path == f"{folder}/README.md" and folder in folders:
            text = below_title(text, facts(root, folders[folder]))
        if path in changes.FILES:
            text = changes.page(text)
        body = run.page(text, path)
        if charts and path.startswith("docs/measured/"):
            body = below_title(plain_tables(body), charts.section(root, pathlib.Path(path).stem))
        if path == parts.AIMS:
            body = parts.with_links(body, order_of_parts)
        if path == f"{folder}/README.md" and folder in folders:
            day = folders[folder]
            if slides and f"slides/{day.name}" in decks:
                body += f"\n\n{slides.link(day.name)}"
            if kernels:
                body += "\n\n" + kernels.links(root, day.folder)
            body += glossary.of_day(terms, day.folder)
            body += run.page(way_on(root, day, days), path)
            body += toctree(children[name], name)
        run.write(f"{name}.md", body)

    # Pages of the other modules.
    more = {}
    more.update({name: plain_tables(text) for name, text in kernels.pages(root).items()} if kernels else {})
    more.update(decks)
    tree = {**part_pages, **(charts.gpus(root) if charts else {})}    # with links as in the tree
    if quizzes:
        tree["progress"] = quizzes.progress_page(root)
    for name, text in tree.items():
        run.pages[f"{name}.md"] = name
        more[name] = run.page(text, f"{name}.md")
    for name, text in more.items():
        if text.lstrip().lower().startswith(("<!doctype", "<html")):
            run.write(f"extra/{name}.html", text)
        else:
            titles[name] = title_of(text)
            alone = name.startswith("kernels/")
            run.write(f"{name}.md", f"---\norphan: true\n---\n{text}" if alone else text)

    sections = [(title, [run.pages[path] for path in paths if path in run.pages]) for title, paths in SECTIONS]
    sections[0][1].extend(name for name in more if name.startswith("gpus/"))
    sections[0][1].extend(name for name in more if name == "progress")
    sections[1][1].extend(name for name in more if name == "slides/index")
    placed = {name for _, names in sections for name in names} | {f"{day.name}/index" for day in days} | {"index"}
    placed |= {name for names in children.values() for name in names} | set(part_pages)
    sections[-1][1].extend(name for name in run.pages.values() if name not in placed)

    days_of = {part: [day for day in days if day.part == part] for part in order_of_parts}
    order = [name for part in order_of_parts for name in [parts.address(part), *(f"{day.name}/index" for day in days_of[part])]]
    order += [name for _, names in sections for name in names]
    run.write("index.md", run.page(front.page(root, days, kernels.on_front_page(root) if kernels else "", repository), "README.md") + toctree(order, "index"))

    # Source files: pages of their own. A folder's page lists its files.
    listings = {}
    for folder in sorted(run.folders):
        inside = sorted(name for name in run.known if os.path.dirname(name) == folder)
        listings[folder] = [(os.path.basename(name) + ("/" if (root / name).is_dir() else ""), run.file(name)) for name in inside
                            if not (root / name).is_dir()]
    of_folder = {day.folder: (day.name, titles[f"{day.name}/index"]) for day in days if f"{day.name}/index" in titles}
    beside = {}
    for name in sorted(run.sources, key=lambda name: (os.path.dirname(name), name)):
        beside.setdefault(name.split("/")[0], []).append(name)
    for folder, names in beside.items():
        for name in names:
            run.source_page(name, of_folder.get(folder), names)
    for name, files in listings.items():
        run.write(f"extra/source/{name}/index.html", source.folder_page(name, files, of_folder.get(name.split("/")[0])))
    for name in run.copied:
        run.write(f"extra/files/{name}", (root / name).read_bytes())
    moved = redirects(root, days)
    for before, now in moved.items():
        run.write(f"extra/{before}/index.html", redirect_page(now))
    run.write("extra/.nojekyll", "")
    run.write("extra/search_texts.js", "const courseTexts = " + json.dumps(run.texts, ensure_ascii=False, sort_keys=True, indent=0) + ";\n")

    navigation = [(part, [(parts.address(part), "About this part", [])] + [(f"{day.name}/index", day.label, [(child, kind_of(child, titles)) for child in children[f"{day.name}/index"]]
                           + [(name, f"Kernel {name.split('/')[-1]}") for name in more if name.startswith(f"kernels/{day.name}/")])
                          for day in days_of[part]]) for part in order_of_parts]
    navigation += [(title, [(name, titles.get(name) or name, []) for name in names]) for title, names in sections]
    static = [file for each in (quizzes, charts, kernels, slides) if each for file in getattr(each, "STATIC", [])]
    run.write("site.json", json.dumps({"root": str(root), "repository": repository, "navigation": navigation, "static": static, "days": {day.folder: day.name for day in days}}, indent=1))
    run.remove_others()
    return run.errors


def kind_of(page, titles):
    """What a page of a day is called in the navigation."""
    last = page.split("/")[-2]
    return {"exercises": "Exercises", "beyond": "Beyond", "measured": "Measured"}.get(last) or titles[page]


def remove_pages_of_before(staged, out):
    """Removes HTML pages that an earlier build left and this one does not have."""
    wanted = {out / path.relative_to(staged).with_suffix(".html") for path in staged.rglob("*.md") if "extra" not in path.relative_to(staged).parts[:1]}
    wanted |= {out / path.relative_to(staged / "extra") for path in (staged / "extra").rglob("*.html")}
    wanted |= {out / "search.html", out / "404.html"}
    for path in out.rglob("*.html"):
        if path not in wanted and "_static" not in path.parts:
            path.unlink()
