"""Makes a page of slides for each day from its README: the question, the pictures, the ideas' code of at most ten lines, the versions
with one column of figures, the predictions, and what a reader can now do.

    pages(root) -> {page path without suffix: text}

`slides/dayNN` is a complete HTML file, which needs no other file: pictures, style and script are in it. Printed it has one slide on each
page; without JavaScript it is one long page. `slides/index` is Markdown, a list of all decks. link(day) is the line for the day's page.

Needs markdown-it-py and Pygments, which the site's generator brings.
"""
import base64
import functools
import html
import pathlib
import re
from typing import NamedTuple

import markdown_it
import pygments
import pygments.formatters
import pygments.lexers

STATIC_HERE = pathlib.Path(__file__).resolve().parent / "static"
MOST_LINES = 10  # of code on a slide
NOT_SHOWN = {"The same elsewhere", "Beyond", "In the book", "To try", "Work through it"}
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
TYPES = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg"}
MARKDOWN = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table")


class Block(NamedTuple):
    kind: str  # heading_open, paragraph_open, fence, table_open, bullet_list_open, ordered_list_open, html_block, ...
    text: str  # Markdown


class Section(NamedTuple):
    title: str
    blocks: list  # of Block


class Slide(NamedTuple):
    title: str  # Markdown
    body: str  # HTML


def without_comments(markdown):
    return re.sub(r"<!--.*?-->", "", markdown, flags=re.S)


def sections_of(markdown):
    """The README in sections: the first begins with the heading of the first level, each other one with one of the second."""
    lines = markdown.split("\n")
    sections = [Section("", [])]
    for token in MARKDOWN.parse(markdown):
        if token.level or not token.map:
            continue
        text = "\n".join(lines[slice(*token.map)])
        if token.type == "heading_open" and token.tag in ("h1", "h2"):
            sections.append(Section(text.lstrip("# ").strip(), []))
        else:
            sections[-1].blocks.append(Block(token.type, text))
    return [section for section in sections if section.title]


def sentences(paragraph):
    """The sentences of a paragraph; no sentence ends within code, a link or parentheses."""
    found, current = [], ""
    for piece in re.split(r"(?<=[.?!)])\s+(?=[A-Z`*\[(])", " ".join(paragraph.split())):
        current += (" " if current else "") + piece
        if current.count("`") % 2 == 0 and current.count("(") <= current.count(")") and current.count("[") <= current.count("]") \
                and current.count("**") % 2 == 0:
            found.append(current)
            current = ""
    return found + ([current] if current else [])


def shortened(paragraph, most, from_end=False):
    """The first or the last sentences, as many as fit into `most` characters, and at least one; none in parentheses."""
    all_of_them = [sentence for sentence in sentences(paragraph) if not (sentence.startswith("(") and sentence.endswith(")"))]
    kept = []
    for sentence in reversed(all_of_them) if from_end else all_of_them:
        if kept and len(" ".join(kept)) + len(sentence) > most:
            break
        kept.insert(0, sentence) if from_end else kept.append(sentence)
    return " ".join(kept)


def to_html(markdown):
    """HTML of Markdown; links within the tree, which lead nowhere from a slide, become plain text."""
    made = MARKDOWN.render(without_comments(markdown))
    made = re.sub(r'<a href="(?!https?:)[^"]*"[^>]*>(.*?)</a>', r"\1", made, flags=re.S)
    return made.replace("<table>", '<div class="wide" tabindex="0" role="region" aria-label="Table"><table>').replace("</table>", "</table></div>")


def inline_html(markdown):
    return re.sub(r"^<p>(.*)</p>$", r"\1", to_html(markdown).strip(), flags=re.S)


@functools.cache
def lexer():
    return pygments.lexers.get_lexer_by_name("c++")


def code_html(code, language):
    code = re.sub(r"(?<=\S) {3,}//", "  //", code)
    made = html.escape(code) if language not in ("cpp", "cuda", "c++") else \
        pygments.highlight(code, lexer(), pygments.formatters.HtmlFormatter(nowrap=True)).rstrip("\n")
    return f'<pre tabindex="0" role="region" aria-label="Code"><code>{made}</code></pre>'


def picture_html(folder, alternative, name):
    """The picture, inside the page."""
    path = folder / name
    if not path.is_file():
        raise ValueError(f"{folder.name}/README.md: the picture is {name}; expected a file of the tree")
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<p class="picture"><img alt="{html.escape(alternative)}" src="data:{TYPES[path.suffix]};base64,{data}"></p>'


def cells_of(row):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


def one_column(table):
    """Of a table of measurements: the versions, their times or speeds, and what limits them where it says so."""
    rows = [cells_of(row) for row in table.strip().split("\n")]
    kept = [index for index, name in enumerate(rows[0]) if index < 2 or name == "limited by"]
    return "\n".join("| " + " | ".join(row[index] if index < len(row) else "" for index in kept) + " |" for row in rows)


def fence_of(block):
    """Language and text of fenced code."""
    lines = block.text.strip("\n").split("\n")
    return lines[0].strip("`~ "), "\n".join(lines[1:-1])


def slides_of_section(section, folder):
    """A slide for each picture, each measured table and each short piece of code, with the sentences that lead to it."""
    slides, before, on_last_slide = [], "", 0  # the last: lines of code, if nothing but code has followed them
    for block in section.blocks:
        text = without_comments(block.text).strip()
        picture = PICTURE.fullmatch(text)
        lead = to_html(shortened(before, 260, from_end=True)) if before else ""
        if picture:
            slides.append(Slide(section.title, picture_html(folder, *picture.groups())))
        elif block.kind == "fence":
            language, code = fence_of(block)
            lines = code.count("\n") + 1
            if language not in ("cpp", "cuda", "c++") or lines > MOST_LINES:
                continue
            if before or not on_last_slide or on_last_slide + lines > MOST_LINES:
                slides.append(Slide(section.title, lead))
                on_last_slide = 0
            slides[-1] = Slide(section.title, slides[-1].body + code_html(code, language))
            before, on_last_slide = "", on_last_slide + lines
            continue
        elif block.kind == "table_open" and cells_of(text.split("\n")[0])[:2] in (["version", "time"], ["version", "TFLOP/s"]):
            slides.append(Slide(section.title, to_html(one_column(text))))
        elif block.kind == "paragraph_open":
            conditions = re.match(r"\*[^*]*(?:warm|cold|flushed)[^*]*\*", text)
            if slides and conditions:
                slides[-1] = Slide(section.title, slides[-1].body + to_html(conditions[0]))
            else:
                before = text
        on_last_slide = 0
    return slides or slide_of_text(section)


def slide_of_text(section):
    """A slide with the first paragraph, and with the list or the block that it leads to, as a list of at most one."""
    blocks = [Block(block.kind, text) for block in section.blocks if (text := without_comments(block.text).strip())]
    at = next((index for index, block in enumerate(blocks) if block.kind == "paragraph_open"), len(blocks))
    if at == len(blocks) or blocks[at].text == "Not measured yet.":
        return []
    text, after = shortened(blocks[at].text, 420), ""
    if text.endswith((":", ",")):
        following = blocks[at + 1] if at + 1 < len(blocks) else Block("", "")
        if following.kind in ("bullet_list_open", "ordered_list_open", "table_open"):
            after = to_html(following.text)
        elif following.kind == "fence" and fence_of(following)[1].count("\n") < MOST_LINES:
            language, code = fence_of(following)
            after = code_html(code, language)
        else:  # what it leads to is too long
            text = " ".join(sentences(text)[:-1])
    return [Slide(section.title, to_html(text) + after)] if text else []


def introduction_of(head, question):
    """The first paragraph that says more than the chapter of the book and the day's question, without both."""
    for block in head.blocks:
        text = " ".join(without_comments(block.text).split())
        if block.kind != "paragraph_open" or PICTURE.fullmatch(text):
            continue
        text = re.sub(r"^\*[^*]*\bPMPP\b[^*]*\*\s*", "", text)
        text = text.replace(f"**{question}**", "", 1).replace(question, "", 1).strip()
        if text:
            return text
    return ""


def items_of(section):
    """The items of the section's first list, as Markdown without the marker."""
    for block in section.blocks:
        if block.kind not in ("bullet_list_open", "ordered_list_open"):
            continue
        items = re.split(r"^(?:[-*]|\d+\.) +", block.text, flags=re.M)[1:]
        return [re.sub(r"^ +", "", item, flags=re.M).strip() for item in items]
    return []


def prediction(item):
    """A question of *Predict*, its answer folded."""
    question, _, answer = item.partition("<details>")
    body = re.sub(r"</?details>|<summary>.*?</summary>", "", answer, flags=re.S)
    return to_html(question) + (f"<details><summary>Answer</summary>{to_html(body)}</details>" if body.strip() else "")


def slides_of(folder, day, question):
    """All slides of a day's directory."""
    sections = sections_of((folder / "README.md").read_text(encoding="utf-8"))
    head, rest = sections[0], sections[1:]
    introduction = introduction_of(head, question)
    slides = [Slide(head.title, f'<p class="question">{html.escape(question)}</p>' + to_html(shortened(introduction, 420)))]
    slides += slides_of_section(Section(head.title, [block for block in head.blocks if PICTURE.fullmatch(block.text.strip())]), folder)
    for section in rest:
        if section.title == "Predict":
            slides += [Slide(f"Predict, {number}", prediction(item)) for number, item in enumerate(items_of(section), 1)]
        elif section.title == "You can now":
            slides.append(Slide(section.title, "<ul>" + "".join(f"<li>{inline_html(item)}</li>" for item in items_of(section)) + "</ul>"))
        elif section.title not in NOT_SHOWN:
            slides += slides_of_section(section, folder)
    commands = f"./course run {day}      # every version, verified and timed\n./course next {day}     # write the kernels yourself\n" \
               f"./course quiz {day}     # the predictions again"
    slides.append(Slide("Now you", f'{code_html(commands, "sh")}<p><a href="../{day}/index.html">The day, to read</a></p>'))
    return slides


def page(folder, day, question):
    """The complete HTML file of a day."""
    slides = slides_of(folder, day, question)
    title = html.escape(re.sub(r"[`*]", "", slides[0].title))
    parts = []
    for number, slide in enumerate(slides, 1):
        level = 1 if number == 1 else 2
        parts.append(f'<section class="slide" id="slide-{number}" tabindex="-1" aria-label="Slide {number} of {len(slides)}">\n'
                     f"<h{level}>{inline_html(slide.title)}</h{level}>\n{slide.body}\n</section>\n")
    style, script = ((STATIC_HERE / f"slides.{suffix}").read_text(encoding="utf-8") for suffix in ("css", "js"))
    return (f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta name="color-scheme" content="light dark">\n<title>Slides: {title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n'
            f'{"".join(parts)}</main>\n<script>\n{script}</script>\n</body>\n</html>\n')


def setting(text, name):
    match = re.search(rf'\b{name} +"([^"]*)"', text)
    return match[1] if match else ""


def days(root):
    """(directory, short name, title, question) of each day, in the order of numbers; then of the ladder and the bug hunts."""
    found = []
    for path in pathlib.Path(root).glob("*/CMakeLists.txt"):
        text, folder = path.read_text(encoding="utf-8"), path.parent
        if setting(text, "QUESTION") and (folder / "README.md").is_file():
            numbered = re.match(r"day\d\d_", folder.name)
            found.append((not numbered, folder.name, folder, folder.name[:5] if numbered else folder.name,
                          setting(text, "TITLE"), setting(text, "QUESTION")))
    return [each[2:] for each in sorted(found)]


def link(day):
    """A line of Markdown for the page of a day, at dayNN/index."""
    return f'<a href="../slides/{day}.html">Slides of this day</a>, to show or to print'


def pages(root):
    made = {f"slides/{day}": page(folder, day, question) for folder, day, _, question in days(root)}
    rows = "\n".join(f'- <a href="{day}.html">{"Day " + day[3:] + ": " if day[3:].isdigit() else ""}{html.escape(title)}</a>. {question}'
                     for _, day, title, question in days(root))
    made["slides/index"] = ("# Slides\n\nFor each day: its question, its pictures, the ideas in at most ten lines of code, the measured versions and the "
                            "predictions.\nThe arrow keys turn pages, *A* shows all slides at once, and printing gives one slide on each sheet. Each deck "
                            f"is a single file, which works without a network.\n\n{rows}\n")
    return made
