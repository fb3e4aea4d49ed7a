#!/usr/bin/env python3
"""Habits that make prose hard to read, as far as a pattern or a count can see them: in Markdown and in the comments
of C++ that have a line of their own.

usage: scripts/check_prose.py [FILE...]    default: all that git knows, without generated pages and changelogs

Exit codes: 0 nothing found, 1 a list of findings, 2 a file that cannot be read.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CPP = {".cu", ".cuh", ".cpp", ".hpp", ".h"}
NOT_PROSE = ("docs/measured/", "tools/course/test/wrong_answers/", "cuda_on_cpu/test/fuzz/", "CHANGELOG.md",
             "cuda_on_cpu/CHANGELOG.md")
MOST_WORDS = 40  # of a sentence, or of a part of it between semicolons

THING = r"(?:kernel|version|block|warp|thread|lane|SM|GPU|matri(?:x|ce)|loop|barrier)s?"
# A phrase, and what to write instead.
PHRASES = {
    r"(?:of course|obviously|basically|needless to say)": "leave it out: what is obvious need not be said",
    r"simply": "leave it out",
    r"in order to": "to",
    r"(?:due to|despite) the fact that": "because; although",
    r"(?:please )?note that|it should be noted|it is worth noting": "leave it out",
    r"utili[sz]e[sd]?|leverag(?:e[sd]?|ing)": "use",
    r"(?:no|some|any|every)body": "a thread, a kernel, a reader; or the passive voice",
    rf"{THING} who": "that",
    r"those who wait": "the threads that wait",
    rf"{THING} (?:says?|tells?|hears?|talks?|fall(?:s|en)? silent|asks? (?:where|whether|how|if))":
        "its verb: loads, stores, issues, stalls, reports, needs",
    r"(?:is|are|was|were) told": "is reported",
    r"(?<!you )wants?(?! to)": "needs",
    r"not (?:un(?!roll|der|it|i|til|less)\w+|infrequent\w*|insignificant\w*|inconsiderable|impossible|without)":
        "say it without a double negation",
    r"needs? not (?:be )?do(?:ne)? at all": "can be skipped",
    r"no (?:instruction|register|byte|barrier|cycle)s? more": "no extra ...",
    r"(?:took|takes?) as long(?!.* as )": "the time did not change",
    r"where an? \w+ was": "in place of",
    r"by other means": "a peer",
    r"(?:are|is) undone for nothing|adds? .{1,30} for nothing": "at no cost",
    r"lies? well": "is 16-byte aligned",
    r"stands? for what lies": "out-of-range elements are zero-filled",
    r"change places": "swap; an XOR swizzle",
    r"(?:that|which) memory limits|memory bandwidth decides": "memory-bound",
    r"(?:8|16|32|64|eight|sixteen)-bit factors": "operands",
    r"rounds of blocks": "waves",
    r"(?<!the )(?<!number of )columns of a head": "the head dimension",
    r"turn(?:s|ed)? round": "reverse",
}
PHRASE = {re.compile(rf"\b(?:{phrase})\b(?!::)", re.IGNORECASE): advice for phrase, advice in PHRASES.items()}
ANY_PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b(?!::)", re.IGNORECASE)

# A sentence ends where the next word is a capital, a digit or the name of a file or function.
END = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=[\"'(*_]*(?:[A-Z0-9\[]|[a-z_0-9]+(?:[.(\[/]\w|\(|/\s)|[a-z0-9]+_[a-z]|nvcc\b|cu[A-Z]|(?<=\*)[a-z]))")
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|vs|cf|al)\.$|(?:^|[,:] |[A-Z]\. )[A-Z]\.$")
LIST_ITEM = re.compile(r"(?:[-*+]|\d+\.)\s+")
LABEL = re.compile(r"^\W*(?:(?:[\w^,'-]+\s*){1,4}:(?=\s|$)\s*)+")  # "Cost removed: "
DUMMY = re.compile(r"^(?:It|There|This|That) (?:is|are|was|were)\b")


def without(text, pattern, replacement="", flags=0):
    """`text` with what matches replaced, and with as many lines as before."""
    return re.sub(pattern, lambda m: m.expand(replacement) + "\n" * (m.group().count("\n") - m.expand(replacement).count("\n")),
                  text, flags=flags)


def paragraphs_of_markdown(text):
    """First line and text of each paragraph, list item and cell of a table; `code` is CODE."""
    for pattern, replacement, flags in (
            (r"^( *)```.*?^\1```[^\n]*$", "", re.S | re.M), (r"<!--.*?-->", "", re.S), (r"`[^`]*`", "CODE", 0),
            (r"!\[[^\]]*\]\([^)]*\)", "", 0), (r"\[([^\]]*)\]\([^)]*\)", r"\1", 0), (r"</summary>|<br>", ". ", 0),
            (r"</?[a-zA-Z][^>]*>", "", 0)):
        text = without(text, pattern, replacement, flags)
    paragraph, first = [], 0
    for number, line in enumerate(text.split("\n") + [""], 1):
        line = line.strip()
        item = LIST_ITEM.match(line)
        if paragraph and (not line or line[0] in "#|" or item):
            yield first, "\n".join(paragraph)
            paragraph = []
        if line.startswith("|"):
            yield from ((number, cell.strip()) for cell in line.strip("|").split("|"))
        elif line and not line.startswith("#"):
            if not paragraph:
                first = number
            paragraph.append(line[item.end():] if item else line)


def paragraphs_of_cpp(text):
    """The same for comments: tables, drawings, formulas and directives end a paragraph."""
    paragraph, first = [], 0
    for number, line in enumerate(text.split("\n") + [""], 1):
        comment = re.match(r"\s*// ?(?! )(.+)", line)
        words = comment.group(1).strip() if comment else ""
        is_prose = words and not re.search(r"\S {2,}\S|\||---|NOLINT|clang-format|https?://", words)
        if paragraph and (not is_prose or LIST_ITEM.match(words)):
            yield first, "\n".join(paragraph)
            paragraph = []
        if is_prose:
            if not paragraph:
                first = number
            paragraph.append(re.sub(r"`[^`]*`", "CODE", words))


def sentences_of(paragraph, first):
    """Line and text of each sentence."""
    begin, ends = 0, [m for m in END.finditer(paragraph) if not ABBREVIATION.search(paragraph[: m.start()])]
    for end in [m.end() for m in ends] + [len(paragraph)]:
        yield first + paragraph[:begin].count("\n"), paragraph[begin:end].strip().replace("\n", " ")
        begin = end


def first_word(sentence):
    found = re.match(r"\W*([A-Za-z']+)(?![\w./(])", sentence)
    if found is None or found[1] == "CODE" or sentence.endswith("?") or LABEL.match(sentence):
        return ""
    return found[1].lower()


def has_colon(sentence):
    """A colon that divides a sentence, not that of a label, a time, a name or an aside."""
    return ":" in re.sub(r"::|\d:\d|\([^()]*\)", "", LABEL.sub("", sentence))


def count_words(text):
    """Words, not numbers and the letters of formulas."""
    return len(re.findall(r"\b(?:a|[A-Za-z][\w'-]+)\b", text))


def findings_of(sentences):
    """Line and message of what is found in a paragraph."""
    is_reference = any(re.search(r'", (?:[\w ]+, )?\d{4}', sentence) for _, sentence in sentences)
    for line, sentence in sentences:
        for pattern, advice in PHRASE.items() if ANY_PHRASE.search(sentence) else ():
            found = pattern.search(sentence)
            if found:
                yield line, f"'{found.group()}'; better: {advice}"
        longest = max(map(count_words, sentence.split(";")))
        if longest > MOST_WORDS and not is_reference:
            yield line, f"{longest} words in a row; expected at most {MOST_WORDS}: two sentences"
    lines = [line for line, _ in sentences]
    texts = [text for _, text in sentences]
    for i in range(1, len(texts)):
        if DUMMY.match(texts[i - 1]) and DUMMY.match(texts[i]):
            yield lines[i], "two sentences in a row begin with 'It is', 'There is' or 'This is'"
    for name, length, holds in (
            ("have a colon", 3, has_colon),
            ("have a semicolon", 3, lambda s: ";" in s and not is_reference),
            ("have 'not ... but'", 2, lambda s: re.search(r"\bnot\b[^.;:,]{1,60},? but\b", s)),
            ("have at most five words", 4, lambda s: count_words(s) <= 5 and s.endswith(".") and not re.search(r"\d|CODE", s))):
        run = 0
        for line, text in sentences:
            run = run + 1 if holds(text) else 0
            if run == length:
                yield line, f"{length} sentences in a row {name}"
    words = [first_word(text) for text in texts]
    run = 0
    for i, word in enumerate(words):
        run = run + 1 if i > 0 and word == words[i - 1] else 1
        if word and run == (4 if word in ("the", "a") else 3):
            yield lines[i], f"{run} sentences in a row begin with '{word}'"


def raw_markdown(text):
    """Folded answers whose Markdown a reader would see as it is: HTML that starts a line goes on until a blank line."""
    text = without(text, r"^( *)```.*?^\1```[^\n]*$", "", re.S | re.M)
    lines = without(text, r"`[^`\n]*`").split("\n") + [""]
    for number, line in enumerate(lines[:-1], 1):
        if "<details" in line and (not re.fullmatch(r" *<details[^>]*><summary>[^<]*</summary>", line) or lines[number].strip()):
            yield number, "text beside <details>; expected a line with <details><summary>...</summary> alone, then a blank line"
        behind = lines[number].strip()
        if "</details>" in line and (line.strip() != "</details>" or lines[number - 2].strip() or behind and not LIST_ITEM.match(behind)):
            yield number, "text beside </details>; expected </details> alone on its line, between blank lines or before the next item"


def findings_of_file(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from raw_markdown(text)
    paragraphs = paragraphs_of_markdown(text) if path.suffix == ".md" else paragraphs_of_cpp(text)
    for first, paragraph in paragraphs:
        yield from findings_of(list(sentences_of(paragraph, first)))


def files_of_git():
    out = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in dict.fromkeys(out.split("\0"))
            if pathlib.Path(name).suffix in CPP | {".md"} and not name.startswith(NOT_PROSE)]


def main(arguments):
    if any(argument in ("-h", "--help") for argument in arguments):
        print(__doc__.strip())
        return 0
    files, count = [pathlib.Path(name) for name in arguments] or files_of_git(), 0
    for path in files:
        try:
            found = list(findings_of_file(path))
        except (OSError, UnicodeDecodeError) as error:
            print(f"check_prose.py: {path}: {error}", file=sys.stderr)
            return 2
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        for line, message in found:
            print(f"{shown}:{line}: {message}")
        count += len(found)
    print(f"{len(files)} files, {count} findings")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
