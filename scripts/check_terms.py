#!/usr/bin/env python3
"""Is a term used before it is introduced? Reads the terms and their days from docs/glossary.md and the needs of
days from their CMakeLists.txt, and looks for the terms in each day's README, in its exercises, and in the comments
of its lesson.

usage: scripts/check_terms.py [DAY...]     example: scripts/check_terms.py day11

A text may use a term that its day introduces or that a day it needs introduces, also by way of others. What a
day's beyond/README.md introduces is for other beyond/README.md, for exercises beyond the core, and for days that are
not split yet, which may also use the terms of their BEYOND_NEEDS. Another term needs the day that introduces it where
it first stands: "a ballot (day 16)". Exit codes: 0 nothing found, 1 a term is used too early, 2 a wrong argument.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Words of a term that are also plain English, or that its row has only for readers.
TOO_COMMON = {"thread", "block", "grid", "kernel", "filter", "head", "stage", "tile", "event", "stream", "reduction",
              "barrier", "lane", "pipeline", "atomic", "scan", "fragment", "acquire", "release", "query", "key", "value",
              "rank"}


def short_name(directory):
    return directory.split("_")[0] if directory.startswith("day") else directory


def read_glossary():
    """The regular expression of each term, and the day that introduces it."""
    terms = {}
    for row in (ROOT / "docs/glossary.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        if len(cells) < 3 or cells[0] in ("term", "---"):
            continue
        link = re.fullmatch(r"\[(\w+)\]\(\.\./(\w+)(/beyond)?/README\.md\)", cells[2].strip(" |"))
        if link is None or link[1] != re.sub(r"^day|^gemm_", "", short_name(link[2])):
            sys.exit(f"docs/glossary.md: the day of '{cells[0]}' is '{cells[2]}'; expected [05](../day05_topic/README.md)")
        day = short_name(link[2]) + (link[3] or "")
        for term in cells[0].split(", "):
            if term.lower() not in TOO_COMMON:
                stem = re.sub(r"(ing|ence|e|y)$", "", term) if len(term) > 9 and " " not in term else term
                pattern = r"[\s-]+".join(re.escape(word) for word in re.split(r"[\s-]", stem))
                flags = 0 if term.isupper() else re.IGNORECASE
                terms[term] = (re.compile(r"(?<![\w`])" + pattern, flags), day)
    return terms


def read_needs():
    """For each day its needs, and its BEYOND_NEEDS, by short name."""
    needs, beyond, directories = {}, {}, {}
    for cmake in sorted(ROOT.glob("*/CMakeLists.txt")):
        text = cmake.read_text(encoding="utf-8")
        if not re.search(r"^course_(program_)?day\(", text, re.M):
            continue
        day = short_name(cmake.parent.name)
        directories[day] = cmake.parent
        for key, into in (("NEEDS", needs), ("BEYOND_NEEDS", beyond)):
            found = re.search(rf"(?<![A-Z_]){key}((?: +(?:day\d+|gemm_ladder|bug_hunts))+)", text)
            into[day] = found.group(1).split() if found else []
    return needs, beyond, directories


def all_needs(day, needs, beyond, with_beyond):
    """The day itself and what it needs, by way of others, too; with_beyond: also for what is not of its core."""
    known, left = {day}, needs[day] + (beyond[day] if with_beyond else [])
    while left:
        each = left.pop()
        if each not in known:
            known.add(each)
            left += needs[each]
    return known | {f"{each}/beyond" for each in known} if with_beyond else known


def prose_of(readme):
    """Its lines, without code, generated blocks and addresses of links."""
    text = readme.read_text(encoding="utf-8")
    for pattern in (r"^```.*?^```", r"<!-- [a-z]+: .*?<!-- end of measurements -->"):
        text = re.sub(pattern, lambda block: "\n" * block.group().count("\n"), text, flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "", text).splitlines()


def exercises_of(directory):
    """(lines, beyond the core?) of its exercises.md: all lines, of which the other kind is blank."""
    file = directory / "exercises.md"
    if not file.exists():
        return
    sections = re.split(r"(?m)^(?=## \w+$)", "\n".join(prose_of(file)))
    text = re.split(r"(?m)^(?=## \w+$)", file.read_text(encoding="utf-8"))
    for beyond in (False, True):
        kept = [section if ("- file: `beyond/" in whole) == beyond else "\n" * section.count("\n")
                for section, whole in zip(sections, text)]
        yield file, "".join(kept).splitlines(), beyond


def comments_of(directory):
    """The comments of the files of the core that a student reads: the lesson and program.cu."""
    files = sorted(directory.glob("*.cuh")) or sorted(directory.glob("*.cu"))
    files += sorted({*directory.glob("program.cu"), *directory.glob("steps/*.cu")} - set(files))
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines()
        comments = (re.search(r"//.*|$", line)[0] for line in lines)
        yield file, [re.sub(r"`[^`]*`", "", comment) for comment in comments]


def check(day, file, lines, terms, known):
    found = []
    for term, (pattern, introduced) in terms.items():
        if introduced in known:
            continue
        number = re.sub(r"^day0?", "", introduced.removesuffix("/beyond"))
        first = next((i for i, line in enumerate(lines) if pattern.search(line)), None)
        if first is None:
            continue
        around = " ".join(lines[max(0, first - 1):first + 3])
        by_name = introduced.removesuffix("/beyond").replace("gemm_", "(gemm_)?")
        if not re.search(rf"days? 0?{number}\b|\b{by_name}(?![0-9])", around, re.IGNORECASE):
            found.append(f"{file.relative_to(ROOT)}:{first + 1}: '{term}' is introduced by {introduced}, which {day} "
                         f"does not need; expected '(day N)' beside it")
    return found


def main(arguments):
    if any(argument in ("-h", "--help") for argument in arguments):
        print(__doc__.strip())
        return 0
    terms = read_glossary()
    needs, beyond, directories = read_needs()
    wanted = [short_name(argument.strip("/")) for argument in arguments] or sorted(directories)
    for day in wanted:
        if day not in directories:
            print(f"check_terms.py: there is no {day}; expected days such as day05, or gemm_ladder", file=sys.stderr)
            return 2
    found = []
    for term, (pattern, introduced) in terms.items():
        day, *folder = introduced.split("/")
        readme = pathlib.Path(directories[day], *folder, "README.md")
        if not pattern.search(readme.read_text(encoding="utf-8").replace("`", " ")):
            found.append(f"docs/glossary.md: '{term}' is not in {readme.relative_to(ROOT)}")
    checked = 0
    for day in wanted:
        core, further = directories[day] / "README.md", directories[day] / "beyond" / "README.md"
        of_core = all_needs(day, needs, beyond, with_beyond=not further.exists())
        of_beyond = all_needs(day, needs, beyond, with_beyond=True)
        texts = [(core, prose_of(core), of_core)]
        if further.exists():
            texts.append((further, prose_of(further), of_beyond))
        texts += [(file, lines, of_beyond if is_beyond else of_core)
                  for file, lines, is_beyond in exercises_of(directories[day])]
        texts += [(file, lines, of_core) for file, lines in comments_of(directories[day])]
        for file, lines, known in texts:
            found += check(day, file, lines, terms, known)
        checked += len({file for file, _, _ in texts})
    print("\n".join(found + [f"{len(terms)} terms, {checked} files, {len(found)} used too early"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
