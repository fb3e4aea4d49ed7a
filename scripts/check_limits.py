#!/usr/bin/env python3
"""Does what a lesson says limits a kernel agree with the hardware counters?

    scripts/check_limits.py              a line per contradiction, and the exit code 1 if there is one
    scripts/check_limits.py --table      every version: what is said, the class of its counters, the verdict

A lesson says it in two places: "Still limits it: ..." above a kernel (in the ladder, "Limit: ..." above
a step, about its intermediate kernels, too), and the column "what limits it" of a table, in a comment or
a README. WORDS has the words that stand for a class; a unit with a figure below 60 % is no claim. The
class of the counters, by the rule of scripts/counters.py, is that of the kernel below the sentence, in a
table that of the version's longest kernel, on the problem on which it takes longest.

    agrees        the class is among those that the text names; of several versions, each one's class
    CONTRADICTS   the text names other classes only
    no class      the text names a mechanism ("4-byte loads") but no class
    no sentence   the version has counters, but no text
    no counters   the kernel or version has no counters

A figure in the text ("counters: L2 87 % busy") must be one of the version's, to within TOLERANCE points.
"""

import argparse
import collections
import dataclasses
import fnmatch
import json
import pathlib
import re
import sys

import counters

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Versions with counters of which no text names a class. Make it less, never more.
MOST_WITHOUT_CLASS = 0
TOLERANCE = 3  # between two runs of the profiler

# Longer names first: "shared memory" is no claim about memory. A text is read in small letters.
WORDS = [
    ("constant memory", r"constant (?:memory|cache)"),
    ("shared memory", r"shared memory|shared loads?|shared atomics|bank conflicts?|(?:is|in) one bank"),
    ("special functions", r"special functions?(?: units?)?|exponentials"),
    ("tensor", r"tensor cores?|rate of mma\.sync|takes its operands from registers"),
    ("memory", r"(?:global |device )?memory(?: bandwidth)?|dram|\bn of traffic|bandwidth"),
    ("atomics", r"\batomics?\b|slice of l2"),
    ("L2", r"\bl2\b(?! cache)"),
    ("L1", r"\bl1\b"),
    ("FMA", r"\bfma\b|multiply-adds?\b(?! of a warp)"),
    ("ALU", r"\balus?\b"),
    ("FP64", r"\bfp64\b"),
    ("issue", r"\bissue slots?\b|\binstructions\b"),
    ("power", r"\bpower\b(?! law)"),
    ("barriers", r"\bbarriers?\b"),
    ("launch", r"(?<!each )(?<!four )\blaunch(?:es)?\b"),
    ("latency", r"\blatency(?:-bound)?\b|\bin flight\b|\bwaits?\b|\bwaiting\b|take turns|no unit"),
]
# "4 loads per multiply-add" says nothing about the multiply-adds.
NO_CLAIM = r"(?:per|for (?:a|one|each|every)|of every) multiply-adds?"
# The units of counters.py, as a text calls them.
UNITS = {unit.lower(): unit for unit in counters.UNITS} | {"dram": "memory", "issue slots": "issue", "tensor cores": "tensor"}
UNIT = "|".join(sorted(UNITS, key=len, reverse=True))
FIGURE = re.compile(rf"\b({UNIT})(?: is| are)?(?: only)?,? (\d+) %|\b({UNIT}) \(counters[^:()]*: (\d+) %")


@dataclasses.dataclass
class Sentence:
    path: str
    line: int
    text: str
    kernel: str = ""  # the one below it
    version: str = ""  # of a table, or of a step; with * for several


def comment_text(lines, first):
    """The paragraph of // lines that starts at `first`, and the number of the line after it."""
    words = []
    while first < len(lines) and (found := re.match(r"\s*//\s*(\S.*)", lines[first])):
        words.append(found[1])
        first += 1
    return " ".join(words), first


def kernel_after(lines, first):
    """The __global__ function that follows a comment, before the next such comment."""
    for at in range(first, len(lines)):
        if "Still limits it:" in lines[at]:
            return ""
        if "__global__" in lines[at]:
            text = re.sub(r"__launch_bounds__\((?:[^()]|\([^()]*\))*\)|__cluster_dims__\([^)]*\)", "", " ".join(lines[at : at + 4]))
            return found[1] if (found := re.search(r"__global__\s+(?:void\s+)?(\w+)\s*\(", text)) else ""
    return ""


def sentences_of_comments(path, name):
    lines = path.read_text().splitlines()
    for at, line in enumerate(lines):
        if re.match(r"\s*//.*Still limits it:", line):
            text, after = comment_text(lines, at)
            yield Sentence(name, at + 1, text.split("Still limits it:")[1], kernel=kernel_after(lines, after))
        elif name.startswith("gemm_ladder/") and line.startswith("// Limit:"):
            text = re.split(r"\s(?=[A-Z][a-z]+:\s)", comment_text(lines, at)[0])[0]  # up to the next label
            yield Sentence(name, at + 1, text.removeprefix("Limit:"), version=path.stem[:2] + "*")
        elif re.match(r"//\s+(version|kernel)\s.*\bwhat limits it$", line):
            yield from rows_of_comment(lines, at, name)


def rows_of_comment(lines, heading, name):
    """The rows of a table in a comment. A row that goes on in a second line has no name there."""
    starts, column = lines[heading].index(lines[heading].split()[1]), lines[heading].index("what limits it")
    row = None
    for at in range(heading + 1, len(lines)):
        line = lines[at]
        if not line.startswith("//") or len(line) <= starts:
            break
        text = line[column:].strip()
        if line[starts] != " ":
            if row:
                yield row
            row = Sentence(name, at + 1, text, version=line[starts:].split()[0])
        elif row:
            row.text += " " + text
    if row:
        yield row


def sentences_of_page(path, name):
    column = None
    for at, line in enumerate(path.read_text().splitlines()):
        if not line.startswith("|"):
            column = None
            continue
        cells = [cell.strip() for cell in line.strip("|\n ").split("|")]
        limits = [i for i, cell in enumerate(cells) if re.fullmatch(r"(what )?(still )?limits it", cell)]
        if limits:
            column = limits[0]
        elif column is not None and len(cells) > column:
            for version in re.findall(r"`([\w*]+)`|\[`?([\w*]+)`?\]", cells[0]):
                yield Sentence(name, at + 1, cells[column], version=version[0] or version[1])


def sentences(root):
    """Those of each day's lessons and READMEs, in a list per day."""
    found = collections.defaultdict(list)
    for directory in sorted([*root.glob("day*_*"), *root.glob("gemm_ladder")]):
        for path in sorted(directory.glob("**/*")):
            name = str(path.relative_to(root))
            if path.suffix in (".cuh", ".cu", ".hpp"):
                found[directory.name] += sentences_of_comments(path, name)
            elif path.name == "README.md":
                found[directory.name] += sentences_of_page(path, name)
    return found


def claims(text):
    """The classes that a text names."""
    text = re.sub(NO_CLAIM, "", text.lower())
    text = re.sub(rf"(?:{UNIT})(?: is| are)? (?:(?:only|below|less than|at most) )?[0-5]?\d %", "", text)
    found = []
    for name, words in WORDS:
        text, times = re.subn(words, "", text)
        if times:
            found.append(name)
    return found


def figures(text):
    """(unit, percent) of each figure that a text gives for a unit."""
    for unit, percent, other, its in FIGURE.findall(text.lower()):
        yield UNITS[unit or other], int(percent or its)


class Day:
    """The counters of a day's kernels, and what they say about a sentence."""

    def __init__(self, kernels):
        self.kernels = kernels
        self.mains = self.longest(self.kernels)  # {version: its longest kernel}

    @staticmethod
    def longest(kernels):
        """{version: the kernel, on the problem on which it takes longest}"""
        found = {}
        for kernel in kernels:
            if kernel["version"] not in found or kernel["us"] > found[kernel["version"]]["us"]:
                found[kernel["version"]] = kernel
        return found

    def about(self, sentence):
        """(kernels that a sentence is about, one per version; is each its version's longest?)"""
        if not sentence.kernel:
            named = [kernel for version, kernel in self.mains.items() if fnmatch.fnmatch(version, sentence.version)]
            if named:
                return named, True
        name = sentence.kernel or sentence.version  # some tables list kernels
        own = self.longest([kernel for kernel in self.kernels if kernel["kernel"] == name]).values()
        longest = [kernel for kernel in own if self.mains[kernel["version"]]["kernel"] == name]
        return longest or list(own), bool(longest)

    def judge(self, sentence):
        """(verdict, the counters' classes) of one sentence."""
        about, longest = self.about(sentence)
        right = {counters.limit(kernel) for kernel in about}
        named = set(claims(sentence.text))
        if not right:
            verdict = "no counters"
        elif not named:
            verdict = "no class"
        elif right <= named or not longest and right & named:
            verdict = "agrees"
        else:
            verdict = "CONTRADICTS"
        return verdict, sorted(right)

    def wrong_figures(self, sentence):
        """Figures of a sentence that no kernel of its versions has."""
        about, _ = self.about(sentence)
        versions = {kernel["version"] for kernel in about}
        mine = [kernel for kernel in self.kernels if kernel["version"] in versions]
        for unit, percent in figures(sentence.text) if mine else ():
            if all(abs(kernel["busy"].get(unit, 0) - percent) > TOLERANCE for kernel in mine):
                own = {round(kernel["busy"].get(unit, 0)) for kernel in about}
                yield f"{unit} {percent} %, but the counters have {' or '.join(map(str, sorted(own)))} %"


def versions_of(root, day):
    """The versions of a day that have a time, in their order."""
    found = {}
    for path in sorted((root / "docs/measurements/h200").glob(f"{day}.jsonl")):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            if record.get("role") == "ours":
                found[record["version"]] = None
    return list(found)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="every version, not only the contradictions")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--most", type=int, default=MOST_WITHOUT_CLASS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    root = options.root
    of_versions, of_sentences, wrong = collections.Counter(), collections.Counter(), 0
    for day, said in sentences(root).items():
        stored = root / f"docs/measurements/h200/{day}.counters.jsonl"
        kernels = Day(counters.read(stored)[1] if stored.exists() else [])
        verdicts = collections.defaultdict(list)  # of each version
        for sentence in said:
            verdict, right = kernels.judge(sentence)
            of_sentences[verdict] += 1
            for kernel in kernels.about(sentence)[0]:
                verdicts[kernel["version"]].append((verdict, sentence))
            at = f"{sentence.path}:{sentence.line}: {sentence.kernel or sentence.version}"
            if verdict == "CONTRADICTS":
                wrong += 1
                print(f"{at}: the counters say {' or '.join(right)}, the text {' and '.join(claims(sentence.text))}: "
                      f"{sentence.text.strip()}")
            for figure in kernels.wrong_figures(sentence):
                wrong += 1
                print(f"{at}: {figure}: {sentence.text.strip()}")
        for version in dict.fromkeys([*versions_of(root, day), *kernels.mains]):
            best = "no sentence"
            for one in ("CONTRADICTS", "agrees", "no class"):
                if any(verdict == one for verdict, _ in verdicts[version]):
                    best = one
                    break
            main_kernel = kernels.mains.get(version)
            if main_kernel is None:
                best = "no counters"
            of_versions[best] += 1
            if options.table:
                limit = counters.limit(main_kernel) if main_kernel else ""
                texts = [one.text.strip() for verdict, one in verdicts[version] if verdict == best]
                print(f"| {day} | {version} | {max(texts, key=len, default='')[:100]} | {limit} | {best} |")
    without = of_versions["no class"] + of_versions["no sentence"]
    print("sentences:", ", ".join(f"{count} {verdict}" for verdict, count in sorted(of_sentences.items())))
    print("versions: ", ", ".join(f"{count} {verdict}" for verdict, count in sorted(of_versions.items())))
    if without > options.most:
        print(f"{without} versions with counters have no text that names a class; expected at most {options.most}. "
              "Name it, as --table shows it")
    elif without < options.most:
        print(f"only {without} versions have no text that names a class: lower MOST_WITHOUT_CLASS to that")
    return 1 if wrong or without != options.most else 0


if __name__ == "__main__":
    sys.exit(main())
