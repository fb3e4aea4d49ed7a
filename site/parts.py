"""A page for each part of the course: what one can do after it, from docs/parts.md, and its days, from the front page's tables.

pages(root, days) gives {"part1/index": Markdown} with links as in docs/, where the aims stand.
"""
import re

AIMS = "docs/parts.md"
SECTION = re.compile(r"^## (?P<name>\d+\. [^\n]*)\n(?P<text>.*?)(?=^## |\Z)", re.M | re.S)
PICTURE = re.compile(r"^!\[(?P<alt>[^\]]*)\]\((?P<name>[^)\s]+)\)$", re.M)


def aims(text):
    """{"1. A first kernel": what docs/parts.md says about it}."""
    return {match["name"].strip(): match["text"].strip() for match in SECTION.finditer(text)}


def address(part):
    """ "2. Patterns" -> "part2/index"."""
    return f"part{part.partition('.')[0]}/index"


def hours(days):
    """The sums (core, beyond) of "2 + 1.5" and the like."""
    sums = [0.0, 0.0]
    for day in days:
        for place, text in enumerate(day.hours.split("+")):
            if not text.strip():
                continue
            try:
                sums[place] += float(text)
            except (ValueError, IndexError):
                raise ValueError(f"README.md, {day.label}: the hours are '{day.hours}'; expected 2 or 2 + 1.5") from None
    return tuple(sums)


def hours_text(days):
    core, beyond = hours(days)
    return f"{core:g} hours" + (f", and {beyond:g} more for what is beyond the core" if beyond else "")


def front_figure(readme, folder):
    """The first picture of a README as Markdown, with its address seen from docs/; empty if there is none."""
    match = PICTURE.search(readme)
    return f"![{match['alt']}](../{folder}/{match['name']})" if match else ""


def number_of(day):
    """ "15", or the name of a folder that has none."""
    return day.name.removeprefix("day").replace("_", " ")


def links(numbers):
    return ", ".join(f"[{number}](../{folder}/README.md)" for number, folder in numbers)


def entry(root, day, days):
    """A day on the page of its part."""
    after = [(number_of(each), each.folder) for each in days if day.folder in (folder for _, folder in each.needs)]
    line = [f"Needs {links(day.needs)}"] if day.needs else []
    line += [f"Leads to {links(after)}"] if after else []
    line += [f"{day.hours} hours"] if day.hours else []
    readme = (root / day.folder / "README.md").read_text(encoding="utf-8")
    parts = [f"### [{day.label}](../{day.folder}/README.md)", day.question.strip(), " · ".join(line), front_figure(readme, day.folder)]
    return "\n\n".join(part for part in parts if part)


def page(root, part, text, days):
    """Markdown of one part. `days`: of all parts."""
    mine = [day for day in days if day.part == part]
    number, _, name = part.partition(". ")
    intro = f"{len(mine)} day{'' if len(mine) == 1 else 's'}, {hours_text(mine)}. Hours include the exercises."
    return "\n\n".join([f"# Part {number}: {name}", text, "## The days", intro, *(entry(root, day, days) for day in mine)]) + "\n"


def pages(root, days):
    """The pages of all parts, in order. Raises ValueError where docs/parts.md and the front page do not name the same parts."""
    texts = aims((root / AIMS).read_text(encoding="utf-8"))
    order = list(dict.fromkeys(day.part for day in days))
    if list(texts) != order:
        raise ValueError(f"{AIMS}: its parts are {', '.join(texts) or 'none'}; expected those of README.md: {', '.join(order)}")
    return {address(part): page(root, part, texts[part], days) for part in order}


def with_links(body, order):
    """The page of docs/parts.md, in which each part leads to its own page. `order`: the parts."""
    for part in order:
        body = re.sub(rf"^## {re.escape(part)}\n", lambda match, part=part: f"{match[0]}\n[The days of this part](../{address(part)}.md)\n", body, flags=re.M)
    return body
