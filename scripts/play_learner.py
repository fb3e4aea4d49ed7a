#!/usr/bin/env python3
"""Plays a newcomer through the exercises, in a pseudo-terminal: for each one `next`, `check` (must
fail, with a message), `hint`, the solution pasted in, `check` (must pass). The first one through
`watch`, too. In a directory of its own instead of my/.

    scripts/play_learner.py                    every exercise of every day
    scripts/play_learner.py day05 gemm_ladder  of these
    scripts/play_learner.py --by-day           each day's exercises together: the blank files compile;
                                               pasted in, the solutions make the lesson's files of the
                                               learner's; blank they all fail; each passes while those
                                               after it are blank. Commands play one of each day;
                                               of the others the tests run. Builds once
    scripts/play_learner.py --without-inspection    without what takes a build that inspects: exercises
                                               whose tests count accesses, and the verdict on a solution
                                               whose traffic counts
    scripts/play_learner.py --traffic          only this verdict: `check` accepts each solution whose
                                               traffic counts while those after it are blank

The last line is "N passed, N failed, N skipped". Exit code 1 when one failed.
"""

import argparse
import concurrent.futures
import contextlib
import fcntl
import itertools
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COURSE = os.path.join(ROOT, "course")
STEP_SECONDS = 900  # of one command: the first of a day builds its lesson
KEY = "play_learner"  # before each event of a test program, so that no other output is taken for one
# The exercise of a day that `check` judges, where that of the last one would take many seconds.
SHORT_CHECKS = {
    "day20": "five_kernels",
    "day26": "set_apart",
    "day34": "two_passes",
    "day35": "csr_scalar",
    "day38": "roles",
    "day40": "fragments",
    "day41": "ring",
    "day47": "element",
    "gemm_ladder": "double_buffering",
}


class Failed(Exception):
    pass


class Terminal:
    """A command in a terminal of its own, 120 columns wide."""

    def __init__(self, arguments, environment):
        self.arguments = arguments
        self.output = ""
        self.seen = 0  # how much of it wait_for() has passed
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.process = subprocess.Popen(
            [COURSE, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
            close_fds=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.deadline = time.monotonic() + STEP_SECONDS

    def read_some(self):
        """Adds what there is to the output; False at its end."""
        if time.monotonic() > self.deadline:
            self.end()
            raise Failed(f"{self}: not done after {STEP_SECONDS} s:\n{self.output}")
        if not select.select([self.master], [], [], 1)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the other end is closed
            return False
        self.output += re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", data.decode(errors="replace"))
        return bool(data)

    def wait_for(self, text, instead=None):
        """Until it has printed `text` after what was waited for before; Failed when it prints
        `instead` first.
        """
        while (at := self.output.find(text, self.seen)) < 0:
            if (instead and instead in self.output[self.seen :]) or not self.read_some():
                self.end()
                raise Failed(f"{self}: expected '{text}', got:\n{self.output[self.seen:]}")
        self.seen = at + len(text)

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def press(self, key):
        os.write(self.master, key)

    def finish(self):
        while self.read_some():
            pass
        os.close(self.master)
        return self.process.wait()

    def __str__(self):
        return "./course " + " ".join(self.arguments)


class Player:
    def __init__(self, my_directory):
        self.my_directory = my_directory
        self.environment = dict(os.environ, COURSE_MY=my_directory, TERM="xterm-256color")
        for name in ("NO_COLOR", "COURSE_PRESET"):
            self.environment.pop(name, None)

    def do(self, *arguments, code=0, shows=(), hides=(), **environment):
        terminal = Terminal(arguments, self.environment | environment)
        got = terminal.finish()
        if got != code:
            raise Failed(f"{terminal}: exit code {got}, expected {code}:\n{terminal.output}")
        for text in shows:
            if text not in terminal.output:
                raise Failed(f"{terminal}: expected '{text}', got:\n{terminal.output}")
        for text in hides:
            if text in terminal.output:
                raise Failed(f"{terminal}: '{text}' in:\n{terminal.output}")
        return terminal.output

    def fail(self, exercise, name, **environment):
        self.do("next", *name, shows=[exercise, "about "])
        self.do(
            "check",
            *name,
            **environment,
            code=1,
            shows=["not yet " + exercise],
            hides=["ended by signal", "not done after", "does not compile", "cannot be checked"],
        )
        self.do("hint", *name, shows=[exercise + ", hint 1 of 3"])

    def fail_with_verdict(self, exercise):
        """The right cause and line alone do not solve an exercise that asks for them."""
        if not exercise["cause"]:
            return
        file, solution = (pathlib.Path(exercise[key]) for key in ("mine", "lesson"))
        verdict = re.search(r"^// Verdict: .*$", solution.read_text(), re.MULTILINE).group()
        given = file.read_text()
        file.write_text(given.replace("// Verdict: ?, line ?", verdict))
        said = "the verdict on {} is right", "not yet {}"
        self.do("check", exercise["id"], code=1, shows=[text.format(exercise["id"]) for text in said])
        file.write_text(given)

    def build_ahead(self, targets, jobs=None):
        """What checks would build one day after the other, with all cores or `jobs` jobs. What does
        not compile is for the check to say.
        """
        targets = list(targets)
        if not targets:
            return  # without a target ninja builds everything
        build = pathlib.Path(ROOT, "build", "cpu")
        with open(f"{build}.lock", "w") as lock:  # as ./course takes it
            fcntl.flock(lock, fcntl.LOCK_EX)
            subprocess.run(
                ["cmake", "-S", ROOT, "-B", build, f"-DCOURSE_MY:PATH={self.my_directory}"],
                stdout=subprocess.DEVNULL,
            )
            subprocess.run(
                ["ninja", "-C", build, "-k", "0", *([f"-j{jobs}"] if jobs else []), *targets],
                stdout=subprocess.DEVNULL,
            )

    def expect_blank_files_compile(self, directory):
        """As the learner has them, not in stages: what a check says of their text."""
        build = pathlib.Path(ROOT, "build", "cpu")
        commands = subprocess.run(
            ["ninja", "-C", build, "-t", "commands", directory + "_exercise"],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.splitlines()
        tree = f"/exercises/{directory}/"
        compiled = [command for command in commands if tree in command and " -c " in command]
        if not compiled:
            raise Failed(f"no file of {directory} is compiled; expected those of its exercises")
        for command in compiled:
            done = subprocess.run(
                command + " -fsyntax-only",
                shell=True,
                cwd=build,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
            if done.returncode != 0:
                raise Failed(f"a blank file does not compile:\n{done.stdout}")

    def fail_all(self, exercises, by_name=True, **environment):
        for exercise in exercises:
            self.fail(exercise, [exercise] if by_name else [], **environment)

    def solve_all(self, exercises, by_name=True, options=()):
        for exercise in exercises:
            self.do("solution", *([exercise] if by_name else []), "--paste", *options)

    def put_in_stages(self, directory):
        """Instead of the solutions: the same, of which the variable COURSE_SOLVED says how many are
        not blank. So one build serves for all exercises of a day.
        """
        subprocess.run(
            [
                pathlib.Path(ROOT, "build/cpu/bin/make_exercise_sources"),
                "--in-stages",
                pathlib.Path(ROOT, directory),
                pathlib.Path(self.my_directory, directory),
            ],
            check=True,
        )

    def expect_solved(self, exercise, by_name=True, **environment):
        self.do("check", *([exercise] if by_name else []), shows=["solved " + exercise], **environment)

    def run_tests(self, exercise, directory, seconds=STEP_SECONDS, **environment):
        """In the program that build_ahead() has made: its exit code, the results of the tests that
        ended, and what it says.
        """
        command = [
            "timeout",
            str(seconds),
            pathlib.Path(ROOT, "build/cpu/bin", directory + "_exercise"),
            "--gtest_fail_fast",
            "--gtest_filter=" + exercise["tests"],
        ]
        done = subprocess.run(
            command,
            env=self.environment
            | environment
            | {"OMP_WAIT_POLICY": "passive", "COURSE_TEST_REPORT": "-", "COURSE_TEST_KEY": KEY},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        # As common/test/main.cpp writes them.
        lines = [part.split("\n")[0] for part in done.stdout.split("\x1e" + KEY)[1:]]
        events = [json.loads(line) for line in lines]
        results = {event["result"] for event in events if event["event"] == "ended"}
        return done.returncode, results, done.stdout

    def expect_tests_pass(self, exercise, directory, **environment):
        code, results, output = self.run_tests(exercise, directory, **environment)
        if code != 0 or "passed" not in results:
            raise Failed(f"its tests ended with {code}:\n{output}")

    def expect_tests_fail(self, exercise, directory, **environment):
        code, results, output = self.run_tests(exercise, directory, **environment)
        if code != 1 or "failed" not in results:
            raise Failed(f"its tests ended with {code}, expected 1 and a test that failed:\n{output}")

    def expect_lesson(self, directory):
        """Solved, the learner's files are the lesson's, below what says whose they are."""
        for file in pathlib.Path(self.my_directory, directory).rglob("*.cu*"):
            if file.suffix not in (".cu", ".cuh"):  # what was there before
                continue
            lesson = pathlib.Path(
                ROOT, directory, file.relative_to(pathlib.Path(self.my_directory, directory))
            )
            if not file.read_text().endswith(lesson.read_text()):
                raise Failed(f"{file}: all exercises are solved, and it is not {lesson}")

    def exercises(self):
        """Of all days, each with its number among its day's."""
        command = [COURSE, "progress", "--json"]
        exercises = json.loads(
            subprocess.run(command, env=self.environment, check=True, stdout=subprocess.PIPE).stdout
        )
        for _, of_day in itertools.groupby(exercises, day_of):
            for number, exercise in enumerate(of_day, 1):
                exercise["number"] = number
        return exercises

    def play_by_watching(self, exercise):
        watch = Terminal(["watch", exercise], self.environment)
        watch.wait_for("not yet " + exercise)
        watch.wait_for("Ctrl-C leaves")
        self.do("solution", exercise, "--paste")
        watch.wait_for(
            "solved " + exercise, instead="Ctrl-C leaves"
        )  # which it prints after a check that failed
        watch.press(b"\x03")
        if watch.finish() != 0:
            raise Failed(f"{watch}: Ctrl-C ended it with {watch.process.returncode}:\n{watch.output}")
        self.do("reset", exercise)

    def judge_a_day(self):
        """Of day 0, one of three exercises is solved: the others count as well."""
        file = pathlib.Path(self.my_directory, "verdicts.json")
        self.do("solution", "day00/flatten", "--force", "--paste")
        self.do(
            *["check", "day00", "--keep-going", "--json", str(file)],
            code=1,
            shows=["solved day00/flatten", "blank: day00/host_side, day00/missing_check", "1 of 3 solved"],
        )
        verdicts = [exercise["verdict"] for exercise in json.loads(file.read_text())]
        if verdicts != ["blank", "solved", "blank"]:
            raise Failed(f"--json: expected blank, solved, blank, got {', '.join(verdicts)}")
        self.do("reset", "day00/flatten")


def day_of(exercise):
    return exercise["id"].split("/")[0]


def ids_of(exercises):
    return [exercise["id"] for exercise in exercises]


def directory_of(day):
    return next(path.name for path in pathlib.Path(ROOT).glob(day + "*") if (path / "exercises.md").is_file())


class Score:
    def __init__(self):
        self.passed, self.failed = set(), set()

    @contextlib.contextmanager
    def of(self, exercises, name):
        """The exercises that the block plays, all or none."""
        begin = time.monotonic()
        try:
            yield
        except Failed as failure:
            self.failed.update(ids_of(exercises))
            print(f"FAILED: {name}: {failure}", flush=True)
        else:
            self.passed.update(ids_of(exercises))
            print(f"ok: {name} ({time.monotonic() - begin:.0f} s)", flush=True)

    def print(self, skipped):
        """The exit code."""
        if self.failed:
            print("failed: " + ", ".join(sorted(self.failed)))
        print(f"{len(self.passed - self.failed)} passed, {len(self.failed)} failed, {skipped} skipped")
        return 1 if self.failed else 0


def has_blank_kernels(day):
    """Or does each exercise of the day start from a file of its own, as a bug hunt does?"""
    return "\n- starts_from:" not in pathlib.Path(ROOT, directory_of(day), "exercises.md").read_text()


def play_days(player, days, checked, without_all, score):
    """Exercises of each day; `checked`: those whose solution the command judges; `without_all`: the
    days of which some are not played.
    """

    def solve(day):
        with score.of(days[day], day + ", solutions pasted in"):
            player.solve_all(ids_of(days[day]), options=["--force"])  # although none has been tried
            if day not in without_all:
                player.expect_lesson(directory_of(day))

    for day, exercises in days.items():
        with score.of(exercises, day + ", begun"):
            player.do("next", exercises[0]["id"])  # which copies the day's files
    in_stages = [day for day in days if has_blank_kernels(day)]
    others = [day for day in days if day not in in_stages]

    def compile_blank(day):
        with score.of(days[day], day + ", blank files compile"):
            player.expect_blank_files_compile(directory_of(day))

    blank_files = [directory_of(day) + "_exercise_sources" for day in in_stages]
    player.build_ahead(["cuda_on_cpu_compile", *blank_files])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_blank, in_stages))
    for day in in_stages:
        solve(day)
        player.put_in_stages(directory_of(day))
    player.build_ahead(directory_of(day) + "_exercise" for day in days)
    # A bug may need the other order of threads or late stores, in which `check` runs the tests, too.
    by_tests = []
    for day, exercises in days.items():
        by_command = exercises[:1] if day in in_stages else exercises
        by_tests += [exercise for exercise in exercises if exercise not in by_command]
        with score.of(by_command, day + ", all blank"):
            player.fail_all(ids_of(by_command), COURSE_SOLVED="0")
            for exercise in by_command:
                if exercise["id"] in checked:
                    player.fail_with_verdict(exercise)
    for exercise in by_tests:
        with score.of([exercise], exercise["id"] + ", hint"):
            player.do("hint", exercise["id"], shows=[exercise["id"] + ", hint 1 of 3"])

    def fail(exercise):
        with score.of([exercise], exercise["id"] + ", all blank"):
            player.expect_tests_fail(exercise, directory_of(day_of(exercise)), COURSE_SOLVED="0")

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fail, by_tests))
    for day in others:
        solve(day)
    player.build_ahead(directory_of(day) + "_exercise" for day in others)
    in_checks, in_runs = [], []
    for day, exercises in days.items():
        judged = [id for id in ids_of(exercises) if id in checked][-1:]
        if day in SHORT_CHECKS:
            short = f"{day}/{SHORT_CHECKS[day]}"
            if short not in ids_of(exercises):
                sys.exit(f"{short} of SHORT_CHECKS is no exercise that is played")
            judged = [short] if short in checked else []  # --traffic has the others
        for exercise in exercises:
            is_checked = exercise["id"] in judged or exercise["needs_inspection"]
            (in_checks if is_checked else in_runs).append(exercise)

    def play(exercise):
        with score.of([exercise], exercise["id"] + ", those after it blank"):
            solved = {"COURSE_SOLVED": str(exercise["number"])}
            if exercise in in_checks:
                player.expect_solved(exercise["id"], **solved)
            else:
                player.expect_tests_pass(exercise, directory_of(day_of(exercise)), **solved)

    # Most tests leave cores idle.
    with concurrent.futures.ThreadPoolExecutor(min(os.cpu_count(), 4)) as pool:
        list(pool.map(play, in_runs))
    for exercise in in_checks:
        play(exercise)


def play_traffic(player, days, score):
    """The exercises of each day that `check` inspects."""
    for day, exercises in days.items():
        directory = directory_of(day)
        with score.of(exercises, day + ", solutions in stages"):
            player.do("next", exercises[0]["id"])  # which copies the day's files
            player.put_in_stages(directory)
        for exercise in exercises:
            with score.of([exercise], exercise["id"] + ", those after it blank"):
                player.expect_solved(exercise["id"], COURSE_SOLVED=str(exercise["number"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("day", nargs="*", help="day05, gemm_ladder...; none: all")
    parser.add_argument("--by-day", action="store_true")
    parser.add_argument("--without-inspection", action="store_true")
    parser.add_argument("--traffic", action="store_true")
    options = parser.parse_args()
    score, skipped = Score(), 0
    with tempfile.TemporaryDirectory(prefix="play_learner_") as directory:
        player = Player(directory)
        player.do("next")
        exercises = [e for e in player.exercises() if not options.day or day_of(e) in options.day]
        if not exercises:
            sys.exit(f"no exercises of {', '.join(options.day)}")
        if options.traffic:
            exercises = [e for e in exercises if e["is_inspected"] and not e["needs_inspection"]]
            play_traffic(player, {day: list(e) for day, e in itertools.groupby(exercises, day_of)}, score)
            sys.exit(score.print(0))
        # Without inspection: its build may be another's at this time.
        watched = [e for e in exercises if not (options.without_inspection and e["is_inspected"])]
        if watched:
            player.play_by_watching(watched[0]["id"])
        player.judge_a_day()
        left_out = set()  # days
        if options.without_inspection:
            left_out = {day_of(e) for e in exercises if e["needs_inspection"]}
            skipped = sum(e["needs_inspection"] for e in exercises)
            exercises = [e for e in exercises if not e["needs_inspection"]]
        checked = {e["id"] for e in exercises if not (options.without_inspection and e["is_inspected"])}
        if options.by_day:
            days = {day: list(group) for day, group in itertools.groupby(exercises, day_of)}
            play_days(player, days, checked, left_out, score)
        else:
            for exercise in exercises:
                name = exercise["id"]
                # Else one exercise comes after the other.
                by_name = bool(options.day or score.failed or skipped)
                with score.of([exercise], name):
                    player.fail_all([name], by_name)
                    if name in checked:
                        player.fail_with_verdict(exercise)
                    player.solve_all([name], by_name)
                    if name in checked:
                        player.expect_solved(name, by_name)
    sys.exit(score.print(skipped))


if __name__ == "__main__":
    main()
