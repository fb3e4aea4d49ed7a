#!/usr/bin/env python3
"""Takes one store after the other out of the course's own solutions: `./course check` must refuse each
such answer, or an output exists that no test reads.

    scripts/mutate_stores.py day05 day15                 of these days; none: all
    scripts/mutate_stores.py --barriers day15            takes out barriers, waits and fences, too
    scripts/mutate_stores.py --results FILE --jobs 16    appends each verdict to FILE (JSON Lines). A second
                                                         run goes on there: only what was accepted is
                                                         tried again
    scripts/mutate_stores.py --without-inspection        judges by the tests alone, in all orders of `check`:
                                                         what they accept may still race. Leaves out
                                                         exercises whose tests count accesses
    scripts/mutate_stores.py --list day15                which stores; builds nothing

A store is a statement of a function that an exercise blanks: an assignment to an element, through a
pointer, to a reference or to a shared variable (`out[i] = x`, `*p += x`, `++counts[k]`), or a call
whose result is not used (`atomicAdd(out, x)`, `store(tile, ...)`, a launch). Each becomes
`if (course_keeps(7)) out[i] = x;`, and the environment variable COURSE_MUTANT says which one is
skipped, so one build serves for all of a day.

An answer is first given to the exercise's tests alone, then, if they pass, to `./course check`, and
then to `./course check --inspect`. What they all accept must be in equivalent_mutants.txt, with the
reason why it is no wrong answer. The last line is "N refused, N equivalent, N accepted, N not tried".
Exit code 1 when one was accepted.
"""

import argparse
import concurrent.futures
import dataclasses
import itertools
import json
import os
import pathlib
import re
import sys
import tempfile
import time

import play_learner

ROOT = pathlib.Path(play_learner.ROOT)
EQUIVALENTS = ROOT / "scripts" / "equivalent_mutants.txt"

# As course_is_blank(), which make_exercise_sources --in-stages writes.
HEAD = """#ifndef COURSE_MUTANTS
#define COURSE_MUTANTS
#include <cstdio>
#include <cstdlib>
#include <type_traits>
__device__ inline int course_mutant = 0;
__device__ inline bool course_mutant_has_run = false;
struct CourseMutant {
    CourseMutant() {
        if (const char* const number = std::getenv("COURSE_MUTANT")) course_mutant = std::atoi(number);
    }
    ~CourseMutant() {
        // `check` refuses an answer that opens files.
        const char* const file = course_mutant_has_run ? std::getenv("COURSE_MUTANT_NOT_RUN") : nullptr;
        if (file) std::remove(file);
    }
};
inline const CourseMutant course_mutant_is_read;
#ifdef __SANITIZE_THREAD__  // an inspection must not count its accesses
__attribute__((noinline, no_sanitize_thread))
#endif
__host__ __device__ inline bool course_is_mutant(int number) {
    if (course_mutant != number) return false;
    course_mutant_has_run = true;
    return true;
}
__host__ __device__ constexpr bool course_keeps(int number) {
    return std::is_constant_evaluated() || !course_is_mutant(number);
}
#endif
"""

TOKEN = re.compile(
    r"""(?P<skipped>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:\\\n|[^\n])*)
      | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])+' | [A-Za-z_]\w* | \d[\w.']* | <<<|>>>|<<=|>>=|::|->|\+\+|--
      | [-+*/%&|^=!<>]= | .""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
ORDERS = [{}, {"CUDA_ON_CPU_ORDER": "descending"}, {"CUDA_ON_CPU_STORES": "late"}, {"CUDA_ON_CPU_STREAMS": "late"}]
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
NO_EXPRESSIONS = set("return break continue goto using typedef throw delete static_assert auto const constexpr".split())
# Calls whose removal is no wrong answer: checks, what a program prints, and what only a GPU's compiler or cache needs.
NO_STORES = re.compile(
    r"require\w*|assert|CUDA_CHECK_LAUNCH|cudaGetLastError|f?printf|f?puts|print|println|static_cast"
    r"|hold|registers_\w+|(give|take)_registers|\w*prefetch\w*"
)
BARRIER = re.compile(r"(?i)(?<!a)(?<!ma_)(?<!matrix_)sync|wait|arrive|fence|barrier|commit|EventRecord")
CHECKED = re.compile(r"(CUDA|NCCL|CUBLAS|MPI)_CHECK")  # a call of a library is in its brackets


class Source:
    """A text's tokens, without comments and preprocessor's lines, and the partners of its brackets."""

    def __init__(self, text):
        self.text = text
        self.tokens, self.places = [], []
        for found in TOKEN.finditer(text):
            if not found["skipped"]:
                self.tokens.append(found[0])
                self.places.append(found.start())
        self.partner, opened = {}, []
        for i, token in enumerate(self.tokens):
            if token in "([{":
                opened.append(i)
            elif token in ")]}":
                self.partner[opened.pop()] = i

    def end_of(self, i):
        return self.places[i] + len(self.tokens[i])

    def is_name(self, i):
        return re.match(r"[A-Za-z_]", self.tokens[i]) is not None

    def is_block(self, brace):
        """Or is it the brace of an initializer?"""
        before, type_of = self.tokens[brace - 1], self.tokens[brace - 2]
        return before in (")", "]", ";", "{", "}", ":", "else", "do", "mutable", "noexcept", "const") or type_of == "->"

    def bodies(self):
        """The opening braces of all functions."""
        i = 0
        while i < len(self.tokens):
            if self.tokens[i] == "{" and self.tokens[i - 1] in (")", "const", "noexcept"):
                yield i
                i = self.partner[i]
            i += 1

    def statements(self, i, end):
        """First token and semicolon of each statement between these tokens, those of blocks and lambdas too."""
        while i < end:
            token = self.tokens[i]
            if token in (";", "}", "else", "do"):
                i += 1
            elif token == "{":
                yield from self.statements(i + 1, self.partner[i])
                i = self.partner[i] + 1
            elif token in ("if", "for", "while", "switch"):
                i += 2 if self.tokens[i + 1] == "constexpr" else 1
                yield from self.in_brackets(i)
                i = self.partner[i] + 1
            elif token in ("case", "default"):
                i = self.tokens.index(":", i) + 1
            elif token == "[" and self.tokens[i + 1] == "[":  # an attribute
                i = self.partner[i] + 1
            else:
                first = i
                while i < end and self.tokens[i] != ";":
                    if self.tokens[i] in ("(", "[", "{"):
                        yield from self.in_brackets(i)
                        i = self.partner[i]
                    i += 1
                if i < end:
                    yield first, i

    def in_brackets(self, bracket):
        if self.tokens[bracket] == "{" and self.is_block(bracket):
            yield from self.statements(bracket + 1, self.partner[bracket])
            return
        i = bracket + 1
        while i < self.partner[bracket]:
            if self.tokens[i] in ("(", "[", "{"):
                yield from self.in_brackets(i)
                i = self.partner[i]
            i += 1

    def after_template_arguments(self, i):
        """Behind the `<...>` at i; i if a call or `::` does not follow."""
        depth, at = 0, i
        while self.tokens[at] not in (";", ")", "}"):
            if self.tokens[at] in ("(", "[", "{"):
                at = self.partner[at]
            depth += {"<": 1, ">": -1}.get(self.tokens[at], 0)
            at += 1
            if depth == 0:
                return at if self.tokens[at] in ("(", "::", "<<<", "{") else i
        return i

    def kind(self, first, semicolon, places):
        """Of a statement: "store", "barrier", or None for declarations and whatever else."""
        i = first
        if CHECKED.fullmatch(self.tokens[i]):
            first, i, semicolon = i + 2, i + 2, self.partner[i + 1]
        is_place, name, called = False, "", ""
        while self.tokens[i] in ("*", "++", "--"):
            is_place = is_place or self.tokens[i] == "*"
            i += 1
        is_counted = i > first and not is_place
        if self.tokens[i] in NO_EXPRESSIONS or not (self.is_name(i) or self.tokens[i] in ("(", "::")):
            return None
        if self.tokens[i] == "(":
            i = self.partner[i] + 1
        elif self.is_name(i):
            name = self.tokens[i]
            is_place = is_place or name in places
            i += 1
        while i < semicolon:
            token = self.tokens[i]
            if token in ("::", ".", "->"):
                is_place = is_place or token != "::"
                i += 2 if self.tokens[i + 1] == "template" else 1
                name = self.tokens[i]
                i += 1
            elif token in ("[", "("):
                called = name if token == "(" else ""
                is_place = True
                i = self.partner[i] + 1
            elif token == "<" and self.after_template_arguments(i) > i:
                i = self.after_template_arguments(i)
            elif token == "<<<":
                i = self.tokens.index(">>>", i) + 1
            else:
                break
        token = self.tokens[i]
        if token in ASSIGNMENTS or token in ("++", "--") or (is_counted and i == semicolon):
            return "store" if is_place else None
        if i < semicolon or not called or NO_STORES.fullmatch(called):
            return None
        return "barrier" if BARRIER.search(called) else "store"

    def found(self, brace, kinds):
        """First token and semicolon of each statement of these kinds in a function's body."""
        end = self.partner[brace]
        head = max((i for i in range(brace) if self.tokens[i] in (";", "}", "{")), default=0)
        function = self.text[self.places[head] : self.end_of(end)]
        references = re.findall(r"[\w>]& (\w+)\b(?!\()", function)
        shared = re.findall(r"__shared__ [^;]*?\b(\w+);", function)
        for first, semicolon in self.statements(brace + 1, end):
            if self.kind(first, semicolon, {*references, *shared}) in kinds:
                yield first, semicolon


@dataclasses.dataclass
class Mutant:
    number: int  # of its day
    exercise: dict
    file: str
    line: int
    text: str

    @property
    def key(self):
        return self.exercise["id"], self.text

    def __str__(self):
        return f"{self.exercise['id']} | {self.file}:{self.line} | {self.text}"


def files_of_repairs(directory):
    """The files of exercises that start from a broken one, each with its exercise."""
    text = (ROOT / directory / "exercises.md").read_text()
    for section in text.split("\n## ")[1:]:
        if "\n- starts_from:" in section:
            yield re.search(r"^- file: `(.*)`", section, re.MULTILINE)[1], section.split("\n")[0]


def mutate(text, file, exercises, kinds, repaired, first_number):
    """`text`, in stages, with a condition before each statement of these kinds; and those statements.
    `repaired`: the exercise for which all of the file was given.
    """
    source = Source(text)
    mutants, inserted = [], []
    for brace in source.bodies():
        stage = re.match(r"\{ if \(course_is_blank\((\d+)\)\)", text[source.places[brace] :])
        exercise = exercises[int(stage[1]) - 1] if stage else repaired
        if not exercise or text[: source.places[brace]].count("#line 1\n") == 0:
            continue
        for first, semicolon in source.found(brace, kinds):
            begin, end = source.places[first], source.end_of(semicolon)
            number = first_number + len(mutants)
            line = text.count("\n", text.index("#line 1\n"), begin)
            mutants.append(Mutant(number, exercise, file, line, " ".join(text[begin:end].split())))
            inserted += [(begin, f"{{ if (course_keeps({number})) "), (end, " }")]
    for place, words in sorted(inserted, reverse=True):
        text = text[:place] + words + text[place:]
    return HEAD + text, mutants


def mutate_day(player, directory, exercises, kinds):
    """Writes the learner's files of a day; its mutants."""
    player.put_in_stages(directory)
    mine = pathlib.Path(player.my_directory, directory)
    repairs = {file: name for file, name in files_of_repairs(directory)}
    mutants = []
    for file in sorted(mine.rglob("*.cu*")):
        if file.suffix not in (".cu", ".cuh"):
            continue
        name = str(file.relative_to(mine))
        repaired = [e for e in exercises if e["id"].split("/")[1] == repairs.get(name)]
        text, found = mutate(file.read_text(), name, exercises, kinds, repaired[0] if repaired else None, len(mutants) + 1)
        file.write_text(text)
        mutants += found
    return mutants


def one_line(text):
    return " ".join(text.split())[:200]


def first_failure(output):
    """What a test program says of its first failure."""
    test = ""
    for part in output.split("\x1e" + play_learner.KEY)[1:]:
        event = json.loads(part.split("\n")[0])
        test = event.get("test", test)
        if event["event"] == "failure":
            return one_line(f"{test}: {event['message']}")
    return one_line(f"{test}: {output[-300:]}")


class Judge:
    def __init__(self, player, options):
        self.player, self.options = player, options
        self.seconds = {}  # of an exercise's tests, when nothing is taken out

    def environment(self, mutant, exercise):
        return {"COURSE_SOLVED": str(exercise["number"]), "COURSE_MUTANT": str(mutant.number if mutant else 0)}

    def try_solution(self, exercise):
        begin = time.monotonic()
        directory = play_learner.directory_of(play_learner.day_of(exercise))
        self.player.expect_tests_pass(exercise, directory, **self.environment(None, exercise))
        self.seconds[exercise["id"]] = time.monotonic() - begin

    def by_tests(self, mutant):
        """Why the tests refuse it, or "", and whether they run the statement."""
        exercise = mutant.exercise
        directory = play_learner.directory_of(play_learner.day_of(exercise))
        limit = int(30 + 10 * self.seconds[exercise["id"]])
        not_run = pathlib.Path(self.player.my_directory, f"{mutant.number}.not_run")
        not_run.touch()
        environment = self.environment(mutant, exercise) | {"COURSE_MUTANT_NOT_RUN": str(not_run)}
        for order in ORDERS if self.options.without_inspection else ORDERS[:1]:
            code, results, output = self.player.run_tests(exercise, directory, limit, **environment, **order)
            if code == 124:
                return f"not done after {limit} s", True
            if code != 0 or "passed" not in results:
                return first_failure(output), True
        return "", not not_run.exists()

    def by_check(self, mutant, *options):
        """Why `./course check` refuses it, or ""."""
        terminal = play_learner.Terminal(
            ["check", mutant.exercise["id"], "--limit", "60", *options],
            self.player.environment | self.environment(mutant, mutant.exercise),
        )
        code = terminal.finish()
        id = mutant.exercise["id"]
        if code == 0 and "solved " + id in terminal.output:
            return ""
        if code != 1 or "not yet " + id not in terminal.output or "reaches into the program" in terminal.output:
            raise play_learner.Failed(f"{terminal}: exit code {code}:\n{terminal.output}")
        return one_line(terminal.output.split("not yet " + id, 1)[1])


def verdicts_in(file):
    """The last verdict on each statement, by exercise and text."""
    verdicts = {}
    if file and file.exists():
        for line in file.read_text().splitlines():
            verdict = json.loads(line)
            verdicts[verdict["exercise"], verdict["text"], verdict["nth"]] = verdict
    return verdicts


def read_equivalents(text):
    """Reasons by exercise and statement: a line `dayNN/name: statement`, then its reason, indented."""
    reasons, key = {}, None
    for line in text.splitlines():
        if line.startswith("    ") and key:
            reasons[key] = (reasons[key] + " " + line.strip()).strip()
        elif line and not line.startswith("#"):
            key = tuple(line.split(": ", 1))
            reasons[key] = ""
    return reasons


class Log:
    def __init__(self, options):
        self.file = options.results
        self.before = verdicts_in(self.file)
        self.equivalents = read_equivalents(EQUIVALENTS.read_text())
        self.refused, self.equivalent, self.accepted, self.not_tried = 0, 0, 0, 0

    def enter(self, mutant, nth, by, why, has_run=True):
        """`by`: "" if it was accepted."""
        if by:
            self.refused += 1
            words = f"refused by {by}: {why}"
            if mutant.key in self.equivalents:
                words += f" ({EQUIVALENTS.name} calls it equivalent)"
        elif mutant.key in self.equivalents:
            self.equivalent += 1
            words = "equivalent: " + self.equivalents[mutant.key]
        else:
            self.accepted += 1
            words = "ACCEPTED" + ("" if has_run else ", and no test runs it")
        print(f"{mutant} | {words}", flush=True)
        verdict = {"exercise": mutant.exercise["id"], "file": mutant.file, "line": mutant.line}
        verdict |= {"text": mutant.text, "nth": nth, "by": by, "why": why, "has_run": has_run}
        if self.file and self.before.get((*mutant.key, nth)) != verdict:
            with open(self.file, "a") as file:
                file.write(json.dumps(verdict) + "\n")


def try_day(player, exercises, options, log):
    directory = play_learner.directory_of(play_learner.day_of(exercises[0]))
    player.do("next", exercises[0]["id"])  # which copies the day's files
    mutants = mutate_day(player, directory, exercises, ["store", "barrier"] if options.barriers else ["store"])
    if options.list:
        print("".join(f"{mutant}\n" for mutant in mutants), end="")
        return
    seen, todo = {}, []
    for mutant in mutants:
        nth = seen[mutant.key] = seen.get(mutant.key, 0) + 1  # among those with the same text
        before = log.before.get((*mutant.key, nth))
        if before and before["by"]:
            log.enter(mutant, nth, before["by"], before["why"])
        elif not (options.without_inspection and mutant.exercise["needs_inspection"]):
            todo.append((mutant, nth))
    if not todo:
        return
    player.build_ahead([directory + "_exercise"], options.jobs)
    judge = Judge(player, options)
    for id in dict.fromkeys(mutant.exercise["id"] for mutant, _ in todo):
        exercise = next(e for e in exercises if e["id"] == id)
        if not exercise["needs_inspection"]:
            judge.try_solution(exercise)

    def by_tests(entry):
        return ("", True) if entry[0].exercise["needs_inspection"] else judge.by_tests(entry[0])

    survivors = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for (mutant, nth), (why, has_run) in zip(todo, pool.map(by_tests, todo)):
            if why or options.without_inspection or mutant.key in log.equivalents:
                log.enter(mutant, nth, "tests" if why else "", why, has_run)
            else:
                survivors.append((mutant, nth, has_run))
    for mutant, nth, has_run in survivors:
        by = "check"
        why = judge.by_check(mutant)
        if not why and not mutant.exercise["is_inspected"]:  # else `check` has inspected it
            by = "check --inspect"
            why = judge.by_check(mutant, "--inspect")
        log.enter(mutant, nth, by if why else "", why, has_run)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("day", nargs="*", help="day05, gemm_ladder...; none: all")
    parser.add_argument("--barriers", action="store_true")
    parser.add_argument("--without-inspection", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    options = parser.parse_args()
    log = Log(options)
    with tempfile.TemporaryDirectory(prefix="mutate_stores_") as directory:
        player = play_learner.Player(directory)
        exercises = [e for e in player.exercises() if not options.day or play_learner.day_of(e) in options.day]
        if not exercises:
            sys.exit(f"no exercises of {', '.join(options.day)}")
        for day, of_day in itertools.groupby(exercises, play_learner.day_of):
            try:
                try_day(player, list(of_day), options, log)
            except play_learner.Failed as failure:
                log.not_tried += 1
                print(f"NOT TRIED: {day}: {failure}", flush=True)
    if options.list:
        return
    print(f"{log.refused} refused, {log.equivalent} equivalent, {log.accepted} accepted, {log.not_tried} not tried")
    sys.exit(1 if log.accepted or log.not_tried else 0)


if __name__ == "__main__":
    main()
