"""The days' predictions as quizzes, and the page that shows what a learner has answered.

A README's section "Predict" is read by the rules of tools/course/questions.cpp, which says what the
grammar is. A page shows the same list with folded answers; static/quiz.js puts a form before each
answer and judges as `./course quiz` does.
"""

import dataclasses
import html
import json
import pathlib
import re

STATIC = ["quiz.js", "quiz.css"]
ROOT = pathlib.Path(__file__).resolve().parent.parent

SECTION = "## Predict"
DETAILS = "<details><summary>Answer</summary>"
END_OF_DETAILS = "</details>"
ABOUT = "about "
PROGRESS_VERSION = 2  # kProgressVersion in tools/course/renumbered.hpp

THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?![\d,])", re.ASCII)
NUMBER = re.compile(r"[-+]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][-+]?\d+)?", re.ASCII)
MORE = re.compile(r"\s*(?:[\^*/]|[-+.,x]?\s*\d)", re.ASCII)  # "10-20", "8 x 8"
UNIT = re.compile(
    r"[-+.,\d]*(?:e[-+]?\d+)?\s*(n|u|\u00b5|\u03bc|m|k|M|G|T)?(s|i?b|bytes?)(?![a-z]).*", re.IGNORECASE | re.ASCII
)
FUNCTION = re.compile(r"\[`(?P<name>\w+)`\]\((?P<file>[^)\s#]+)\)", re.ASCII)
WORD = re.compile(r"\w+|[^\w\s]")
NO_CODE = re.compile(  # of C++
    r"""//[^\n]*|/\*.*?\*/|\bR"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+'|^[ \t]*\#(?:\\\n|[^\n])*""", re.DOTALL | re.MULTILINE
)
NO_TYPES = {"return", "else", "do", "new", "delete", "throw", "case", "goto", "co_return", "co_yield", "co_await", "not"}
DAY_ROW = re.compile(r"^\| \[(?P<title>[^\]]+)\]\((?P<day>\w+)/README\.md\) \|")
PART = re.compile(r"^### \d+\. (?P<part>.+)$")


class QuestionError(ValueError):
    """An error in a README's questions; the message starts with file and line."""


@dataclasses.dataclass
class Question:
    text: str  # one paragraph, without its number
    key: str  # "4", "about 12 µs", "b", "`sum += in[i];`"; empty: free text, which can only be compared by the reader
    explanation: str  # what follows the key
    answer: str  # the key and the explanation, as written
    function: str = ""  # of a question about a line: "shuffle"
    file: str = ""  # where it is, seen from the README: "reduction.cuh"

    def is_choice(self):
        return len(self.key) == 1 and self.key.isascii() and self.key.isalpha()

    def is_about(self):
        return self.key.startswith(ABOUT)

    def is_line(self):
        """Does it ask for a line of a function?"""
        return is_code(self.key)

    def number(self):
        """The number of the key; None for a choice or a line."""
        return number_in(self.key.removeprefix(ABOUT))

    def expected(self):
        """What to type, as expected_answer() in questions.cpp says it."""
        if self.is_choice():
            return "a letter"
        if self.is_line():
            return "the number of a line"
        unit = self.key.removeprefix(ABOUT).lstrip("-0123456789.,").strip()
        return (
            "a number"
            + (f", in {unit}" if unit else "")
            + ("; a quarter off is near enough" if self.is_about() else "")
        )


@dataclasses.dataclass
class NumberedLines:
    """The lines of the function that a question is about."""

    first: int  # the number of the first one in its file
    texts: list
    right: int  # the number of the one that has the key


def is_code(key):
    """ "`sum += in[i];`" """
    return len(key) > 2 and key.startswith("`") and key.endswith("`")


class Tokens:
    """C++ in words and signs, without comments, texts and lines for the preprocessor, as tools/course/functions.cpp looks at it."""

    def __init__(self, source):
        found = list(WORD.finditer(NO_CODE.sub(lambda match: re.sub(r"\S", " ", match[0]), source)))
        self.texts, self.places = [match[0] for match in found], [match.start() for match in found]
        self.partners, opened = {}, []
        for i, text in enumerate(self.texts):
            if text in "([{":
                opened.append(i)
            elif text in ")]}" and opened:
                self.partners[i] = opened.pop()
                self.partners[self.partners[i]] = i

    def __getitem__(self, i):
        """Empty outside of the source."""
        return self.texts[i] if 0 <= i < len(self.texts) else ""

    def after_template_arguments(self, i):
        """The place behind the <...> of a specialisation; `i` itself if there is none, -1 if it has no end."""
        depth = 0
        if self[i] != "<" or self[i + 1] == "<":
            return i
        while self[i] and self[i] != ";":
            depth += {"<": 1, ">": -1}.get(self[i], 0)
            if depth == 0:
                return i + 1
            i = self.partners.get(i, i) + 1 if self[i] in "({" else i + 1
        return -1

    def body(self, name):
        """Where the body of the function begins whose name is at `name`; None for a declaration, a call or a launch."""
        i = self.after_template_arguments(name + 1)
        if self[i] != "(":
            return None
        i = self.partners.get(i, i) + 1
        while self[i] and self[i] != "{":
            if self[i] in "([":
                i = self.partners.get(i, i)
            elif not self[i][0].isidentifier() and self[i] not in "&-><:*":
                return None
            i += 1
        return i if self[i] else None

    def type_before(self, name):
        """Does a type end before the name, its qualifiers (`Type::`) and attributes? Before a call there is something else."""
        i = name - 1
        while self[i] == self[i - 1] == ":" and self[i - 2][:1].isidentifier():
            i -= 3
        while self[i] in (")", "]"):
            before = self.partners.get(i, 0) - 1
            if self[i] == ")" and self[before] not in ("__launch_bounds__", "__attribute__", "alignas"):
                return False
            i = before - (self[i] == ")")
        return self[i] not in NO_TYPES and (self[i][:1].isidentifier() or self[i] in ("*", "&", ">"))

    def head(self, name):
        """Where the definition begins, with its template."""
        i = first = name
        while i > 0:
            i -= 1
            if self[i] in (")", "]"):
                i = self.partners.get(i, 0)
            elif self[i] in (";", "}", "{") or (self[i] == ":" and self[i - 1] in ("public", "private", "protected")):
                break
            first = i
        return first


def definitions(source, name):
    """[(first line, last line)] of the functions of that name, counted from 1, by the rules of find_functions() in
    tools/course/functions.cpp.
    """
    tokens, found = Tokens(source), []
    for i, text in enumerate(tokens.texts):
        if text == name and tokens.type_before(i) and (body := tokens.body(i)) is not None:
            places = (tokens.places[tokens.head(i)], tokens.places[tokens.partners.get(body, len(tokens.places) - 1)])
            found.append(tuple(1 + source.count("\n", 0, place) for place in places))
    return found


def lines_of(question, source):
    """The lines from `source`, the text of the question's file. Throws QuestionError unless there is one such function, and one line
    of it has the key.
    """
    lines = source.split("\n")
    found = definitions(source, question.function)
    if len(found) != 1:
        raise QuestionError(f"{question.file}: there are {len(found)} definitions of {question.function}; expected one")
    (first, last), key = found[0], question.key[1:-1]
    texts = lines[first - 1 : last]
    having = [first + place for place, text in enumerate(texts) if key in text]
    if len(having) != 1:
        raise QuestionError(f"{question.file}: {len(having)} lines of {question.function} have {question.key}; expected one")
    return NumberedLines(first, texts, having[0])


def number_in(text):
    """The number that `text` begins with, if a unit follows it or nothing; else None."""
    text = text[:64]
    if match := THOUSANDS.match(text):
        text = match[0].replace(",", "") + text[match.end() :]
    match = NUMBER.match(text)
    if not match or MORE.match(text, match.end()):
        return None
    return float(match[0].replace(",", "."))


def unit_in(text):
    """The unit of time or of memory behind the number that `text` begins with: "us", "gb", " s"."""
    match = UNIT.fullmatch(text.split("\n")[0][:64])
    if not match:
        return ""
    prefix = {"": " ", "\u00b5": "u", "\u03bc": "u"}.get(match[1] or "", (match[1] or "").lower())
    return prefix + ("s" if match[2].lower() == "s" else "b")


def parse(markdown, file, free_text=False):
    """The questions of a README in order; an empty list without the section. With `free_text`, as in
    a README of beyond/, which `./course quiz` does not ask, an answer may have no key. Throws
    QuestionError.
    """
    questions, text, begun, in_section, seen, number = [], "", False, False, False, 0

    def fail(what):
        raise QuestionError(f"{file}:{number}: {what}")

    def finish():
        if not begun:
            return
        opening, close = text.find(DETAILS), text.find(END_OF_DETAILS)
        if opening < 0 or close < opening:
            fail(f"expected {DETAILS}**key**. why{END_OF_DETAILS} behind the question")
        if text[close + len(END_OF_DETAILS) :].strip():
            fail("there is text behind the answer")
        answer = text[opening + len(DETAILS) : close].strip()
        match = re.match(r"\*\*(.*?)\*\*", answer, re.DOTALL)
        if not match and free_text:
            questions.append(Question(text[:opening].strip(), "", answer, answer))
            return
        if not match:
            fail("the answer has no key; expected **key** first")
        question = Question(
            text[:opening].strip(), match[1].strip(), answer[match.end() :].lstrip(".:,").strip(), answer
        )
        if question.is_line():
            if not (function := FUNCTION.search(question.text)):
                fail("the key is a line of code; expected [`function`](file) in the question")
            question.function, question.file = function["name"], function["file"]
        elif not question.is_choice() and question.number() is None:
            fail(f"the key is '{question.key}'; expected a number, a letter or `code`")
        questions.append(question)

    for place, line in enumerate(markdown.splitlines()):
        if line.startswith("## "):
            in_section = line.strip() == SECTION
            seen = seen or in_section
        elif in_section:
            number = place + 1
            match = re.match(r"\d+\. ", line)
            if match:
                finish()
                begun, text, line = True, "", line[match.end() :]
            elif not begun:
                if line.strip():
                    fail("expected '1. question' first")
                continue
            text += line.strip() + "\n"
    if seen:
        finish()
        if not questions:
            fail("there is no question; expected '1. question'")
    return questions


def options(text):
    """The stem of a question and its options: ("Which is faster?", ["a) one", "b) two"]). No options:
    they could not be told apart.
    """
    places, begin = [], 0
    for letter in "abcdefgh":
        match = re.compile(rf"(?:^|(?<=\s)){letter}\)\s").search(text, begin)
        if not match:
            break
        places.append(match.start())
        begin = match.end()
    if len(places) < 2:
        return text, []
    ends = places[1:] + [len(text)]
    found = [" ".join(text[begin:end].split()).rstrip(";?.").strip() for begin, end in zip(places, ends)]
    return text[: places[0]].strip(), found


def short_name(day):
    """"day15" of "day15_reduction", "day04.beyond" of "day04_memory_hierarchy/beyond", "gemm_ladder"."""
    parts = [part for part in day.strip("/").split("/") if part and not part.endswith(".md")]
    number = re.match(r"day\d+(?=_|$)", parts[0])
    return ".".join([number[0] if number else parts[0], *parts[1:]])


def is_beyond(name):
    """Is it the short name of what lies beyond a day?"""
    return name.endswith(".beyond")


def indented(text):
    return "\n".join("   " + line if line else "" for line in text.split("\n"))


def code_html(lines, question):
    """The function with its numbers, which quiz.js makes lines to choose from. One line of HTML, because Markdown would end a list
    at an empty line.
    """
    import source  # needs Pygments, which only the build has
    coloured = source.coloured_lines("\n".join(lines.texts) + "\n", question.file)
    spans = [f'<span class="quiz-line" data-line="{number}">{line}</span>' for number, line in enumerate(coloured, lines.first)]
    label = f"Lines {lines.first} to {lines.first + len(spans) - 1} of {question.function}"
    return f'<pre class="quiz-code highlight" tabindex="0" role="region" aria-label="{html.escape(label)}">' + "&#10;".join(spans) + "</pre>"


def quiz_item(question, name, number, folder=None):
    """One item of the list, as Markdown. `folder`: of the README, where the files of lines are."""
    data = {"quiz": f"{name}/{number}", "key": question.key, "expected": question.expected()}
    stem, choices = options(question.text) if question.is_choice() else (question.text, [])
    code = ""
    if not question.key:
        data = {}
    elif question.is_line():
        lines = lines_of(question, (folder / question.file).read_text(encoding="utf-8"))
        code = code_html(lines, question)
        data |= {"kind": "line", "key": f"line {lines.right}", "value": str(lines.right)}
    elif question.is_choice():
        data["kind"] = "choice"
        data["letters"] = "".join(choice[0] for choice in choices) or "abc"
    else:
        data["kind"] = "number"
        data["value"] = repr(question.number())
        data["unit"] = unit_in(question.key.removeprefix(ABOUT))
        data["about"] = "0.25" if question.is_about() else ""
    attributes = "".join(f' data-{key}="{html.escape(value)}"' for key, value in data.items() if value)
    parts = [stem]
    if code:
        parts.append(code)
    if choices:
        parts.append("\n".join("- " + choice for choice in choices))
    parts += [
        f'<details class="quiz-answer"{attributes}><summary>Answer</summary>',
        question.answer,
        END_OF_DETAILS,
    ]
    return f"{number}. " + indented("\n\n".join(parts)).lstrip() + "\n"


def transform(day, markdown, root=ROOT):
    """A README's text with its section "Predict" as quiz; the text itself if there is none. `root`: of the files that it asks about."""
    name = short_name(day)
    if re.match(r"# .*, beyond:", markdown) and not is_beyond(name):
        name += ".beyond"
        day += "/beyond"
    questions = parse(markdown, day, free_text=is_beyond(name))
    if not questions:
        return markdown
    lines = markdown.splitlines(keepends=True)
    begin = next(i for i, line in enumerate(lines) if line.strip() == SECTION and line.startswith("## "))
    end = next((i for i in range(begin + 1, len(lines)) if lines[i].startswith("## ")), len(lines))
    items = "\n".join(quiz_item(question, name, i + 1, root / day) for i, question in enumerate(questions))
    quiz = f'\n<div class="quiz" data-day="{name}">\n\n{items}\n</div>\n\n'
    return "".join(lines[: begin + 1]) + quiz + "".join(lines[end:])


def days(root):
    """[(part, title, directory)], in the order of the front page."""
    found, part = [], ""
    for line in (root / "README.md").read_text().splitlines():
        if match := PART.match(line):
            part = match["part"]
        elif (match := DAY_ROW.match(line)) and part:
            found.append((part, match["title"], match["day"]))
    return found


def exercises(root, day):
    """The names of a day's exercises, as in exercises.md."""
    sheet = root / day / "exercises.md"
    return re.findall(r"^## (\S+)\s*$", sheet.read_text(), re.MULTILINE) if sheet.exists() else []


def readmes(root, day):
    """The READMEs of a day that may ask, with their names: [("day04", path), ("day04.beyond", path)]."""
    paths = [root / day / "README.md", root / day / "beyond" / "README.md"]
    return [(short_name(str(path.parent.relative_to(root))), path) for path in paths if path.exists()]


def progress_page(root):
    """The page that lists days with the questions answered and the exercises solved, as Markdown."""
    rows, data, last = [], [], None
    for part, title, day in days(root):
        if part != last:
            rows.append(f"\n## {part}\n\n| day | questions right at once | exercises solved |\n| --- | --: | --: |")
            last = part
        names = exercises(root, day)
        ids = [
            f"{name}/{i + 1}"
            for name, path in readmes(root, day)
            for i, question in enumerate(parse(path.read_text(), path, free_text=is_beyond(name)))
            if question.key
        ]
        data.append({"day": day, "questions": ids, "exercises": [f"{short_name(day)}/{name}" for name in names]})
        cells = [f'<span data-{what}-of="{day}">{count}</span>' for what, count in
                 [("questions", len(ids)), ("exercises", len(names))]]
        rows.append(f"| [{title}]({day}/README.md) | {cells[0]} | {cells[1]} |")
    # "<" would end the script in a text such as "</script>".
    text = json.dumps({"version": PROGRESS_VERSION, "days": data}, separators=(",", ":")).replace("<", "\\u003c")
    return f"""# Your progress

Each row shows the questions that you answered right at the first try and the exercises you solved.
Answers stay in this browser. To add what `./course` has recorded, open `my/progress.json` below.

<div class="quiz-progress">
<noscript><p>Without JavaScript the rows show how many there are. On the command line: <code>./course progress</code>.</p></noscript>
</div>
""" + "\n".join(rows) + f'\n\n<script type="application/json" id="quiz-days">{text}</script>\n'
