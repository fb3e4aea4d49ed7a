#!/usr/bin/env python3
"""Hands in wrong answers, which `./course check` must refuse and say why.

    scripts/try_wrong_answers.py              all of tools/course/test/wrong_answers
    scripts/try_wrong_answers.py day15 ...    those to exercises of these days

Each file there is an answer: functions that take the place of the lesson's, or a whole file. Each
#include and #define goes to the beginning of the learner's file; functions that the lesson does not
have stand before the others, and come first. The first lines of an answer are comments:

    // What is wrong.
    // exercise: day15/coarsened
    // expect: text of the refusal, or a regular expression
    // inspect: yes                      with --inspect; else only where there is a build for it
    // needs: co_rank, basic             exercises of the day whose solutions its tests run
    // whole file: reduction.cuh         this is the learner's file; @ROOT@: the checkout
    // added to: reduction.cuh           this stands at the end of the learner's file, whose functions are blank
    // added to the solution: reduction.cuh    the same, but the exercise is solved

The learner's files are in a directory of their own, not in my/. The last line is "N passed, N
failed, N skipped". Exit code 1 when one failed.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ANSWERS = ROOT / "tools" / "course" / "test" / "wrong_answers"


def setting(text, name):
    found = re.search(rf"^// {name}: (.*)$", text, re.MULTILINE)
    return found.group(1) if found else None


def body_end(text, begin):
    """Behind the brace that closes the first one after `begin`."""
    depth = 0
    for at in range(text.index("{", begin), len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return at + 1
    sys.exit("a brace is never closed")


def functions(text):
    """Names and whole definitions of the functions of an answer."""
    for found in re.finditer(r"^(?=[A-Za-z_])[^;{}/#]*?\b(?!__launch_bounds__)(\w+)\([^;{}]*?\)\s*\{", text, re.MULTILINE):
        yield found.group(1), text[found.start() : body_end(text, found.start())]


def replace_function(text, name, definition):
    found = re.search(rf"^[A-Za-z_][^;{{}}/#]*?\b{name}\([^;{{}}]*?\)\s*\{{", text, re.MULTILINE)
    if not found:
        sys.exit(f"the learner's file does not define {name}")
    return text[: found.start()] + definition + text[body_end(text, found.start()) :]


class Learner:
    def __init__(self, directory):
        self.mine = pathlib.Path(directory)
        self.environment = dict(os.environ, COURSE_MY=directory)
        self.environment.pop("COURSE_PRESET", None)

    def course(self, *arguments):
        done = subprocess.run(
            [ROOT / "course", *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        return done.returncode, done.stdout

    def hand_in(self, answer):
        """Why the answer is not refused as it should be; empty if it is."""
        text = answer.read_text()
        exercise = setting(text, "exercise")
        day = exercise.split("/")[0]
        directory = next(ROOT.glob(day + "*")).name
        needed = [f"{day}/{name}" for name in (setting(text, "needs") or "").split(", ") if name]
        for name in [*needed, exercise]:
            code, output = self.course("solution", name, "--force", "--paste")
            if code != 0:
                return f"./course solution {name} ended with {code}:\n{output}"
        if whole := setting(text, "whole file"):
            (self.mine / directory / whole).write_text(text.replace("@ROOT@", str(ROOT)))
        elif added := setting(text, "added to") or setting(text, "added to the solution"):
            if not setting(text, "added to the solution"):
                self.course("reset", day)
            with open(self.mine / directory / added, "a") as file:
                file.write(text.replace("@ROOT@", str(ROOT)))
        else:
            found = list(functions(text))
            if not found:
                return "no function is defined in it"
            first_lines = "".join(re.findall(r"^#(?:include|define) .*\n", text, re.MULTILINE))
            for file in (self.mine / directory).rglob("*.cu*"):
                if file.suffix not in (".cu", ".cuh"):  # what was there before a reset
                    continue
                mine = file.read_text()
                here = [name for name, _ in found if re.search(rf"\b{name}\(", mine)]
                if found[-1][0] in here:
                    added = "\n".join(definition for name, definition in found if name not in here)
                    for name, definition in found:
                        if name in here:
                            mine = replace_function(mine, name, added + "\n" + definition if added else definition)
                            added = ""
                    file.write_text(first_lines + mine)
                    break
            else:
                return f"no file of {self.mine / directory} has {found[-1][0]}"
        code, output = self.course("check", exercise, "--limit", "20", *(["--inspect"] if setting(text, "inspect") else []))
        self.course("reset", day)
        if code != 1 or "not yet " + exercise not in output:
            return f"exit code {code}, expected 1 and 'not yet':\n{output}"
        if not re.search(setting(text, "expect"), output):
            return f"expected '{setting(text, 'expect')}' in:\n{output}"
        return ""


def check_heads():
    """Ends the program if an answer, of any day, lacks a setting."""
    for answer in sorted(ANSWERS.iterdir()):
        for name in ("exercise", "expect"):
            if not setting(answer.read_text(), name):
                sys.exit(f"{answer.relative_to(ROOT)}: expected a line '// {name}: ...'")


def main():
    days = sys.argv[1:]
    check_heads()
    answers = [file for file in sorted(ANSWERS.iterdir()) if not days or file.name.split(".")[0] in days]
    if not answers:
        print(f"skipped: {ANSWERS.relative_to(ROOT)} has no answer to an exercise of {', '.join(days)}")
        print("0 passed, 0 failed, 1 skipped")
        return
    failed = 0
    with tempfile.TemporaryDirectory(prefix="wrong_answers_") as directory:
        learner = Learner(directory)
        for answer in answers:
            why = learner.hand_in(answer)
            failed += bool(why)
            print(f"FAILED: {answer.name}: {why}" if why else f"ok: {answer.name}", flush=True)
    print(f"{len(answers) - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
