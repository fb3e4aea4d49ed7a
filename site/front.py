"""The front page, made from the README's introduction: what the course is, the commands, a kernel, and the parts."""
import html
import re


def block(text, language):
    """The first code block of that language, with its fences."""
    return re.search(rf"^```{language}\n.*?^```$", text, re.S | re.M)[0]


def paragraphs(text):
    """The paragraphs between the title and the first block of code."""
    return [part.strip() for part in text.split("```")[0].split("\n\n")[1:] if part.strip()]


def facts(day):
    """ "needs 05, 07 · 2.5 h" """
    return " · ".join((["needs " + ", ".join(number for number, _ in day.needs)] if day.needs else []) + ([f"{day.hours} h"] if day.hours else []))


def card(part, days):
    number, _, title = part.partition(". ")
    items = "\n".join(f'<li><a href="{day.name}/index.html">{html.escape(day.label)}</a> <span>{html.escape(day.question)}</span> <span>{facts(day)}</span></li>'
                      for day in days)
    return f'<section class="part" aria-labelledby="part-{number}"><h3 id="part-{number}"><span>{number}</span> <a href="part{number}/index.html">{html.escape(title)}</a></h3>\n<ol>\n{items}\n</ol></section>'


def page(root, days, replay="", repository=None):
    """Markdown of the front page. `replay`: HTML of a kernel that plays, or empty. `repository`: the address to clone, or None."""
    text = (root / "README.md").read_text(encoding="utf-8")
    parts = list(dict.fromkeys(day.part for day in days))
    cards = "\n".join(card(part, [day for day in days if day.part == part]) for part in parts)
    return f"""# CUDA, day by day

<div class="lead">

{paragraphs(text)[0]}

</div>

<p class="start"><a class="button" href="day00/index.html">Begin with day 0</a> <a href="#the-parts">The parts</a> <a href="glossary/index.html">Glossary</a> <a href="book/index.html">By chapter of the book</a></p>

Clone {f"[the repository]({repository})" if repository else "the repository"}, then run in its root:

{block(text, "sh")}

On Debian and Ubuntu the first command installs what it needs. It then builds for a minute or two. [The command](docs/command.md) has
all the others; `./course next` gives you the first exercise.

Day 1 begins with this kernel and its launch. With an NVIDIA GPU, `nvcc` compiles it. Anywhere else the host compiler compiles
the same file, and every CUDA thread really runs, [on the CPU](cuda_on_cpu/README.md).

{block(text, "cpp")}

{replay}

## The parts

Read in this order, or open the day that you want after the days that it *needs*: [how to read a day](docs/command.md#how-to-read-a-day). Hours include the exercises: 2 + 1.5 h means 2 for
the core and 1.5 for what is beyond it. The numbers leave gaps for days to come. Days follow the book *Programming Massively Parallel
Processors* (PMPP; Hwu, Kirk, El Hajj): [chapter by chapter](docs/book.md).

<div class="parts">
{cards}
</div>
"""
