#!/usr/bin/env python3
"""Tests scripts/grade.py and scripts/sandbox.sh in a made-up checkout, whose judge is a few lines:
an answer is a program, and is solved when it ends with 0.

usage: grade_test.py CHECKOUT Grade|Sandboxed      exit code 77: bubblewrap is not permitted

What real hand-ins do, compiled and judged by the real judge, is tried by
scripts/try_hostile_hand_ins.py.
"""

import csv
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

CHECKOUT = pathlib.Path(sys.argv.pop(1)).resolve()
SLEEP = f"sleep 4321.{os.getpid()}"  # by which its processes are found
EXERCISES = ["day01/first", "day01/second"]

# As `./course check --json` writes them. An answer that is there runs where COURSE_SANDBOX says.
JUDGE = r"""#!/usr/bin/env python3
import json, os, subprocess, sys
if sys.argv[1] == "solution":
    sys.exit()
assert sys.argv[1:6] == ["check", "day01", "--keep-going", "--inspect", "--json"], sys.argv
open(os.environ["COURSE_ROOT"] + "/judged", "a").write("x")
verdicts = []
for name in ("first", "second"):
    answer = os.path.join(os.environ["COURSE_MY"], "day01_vectors", name)
    verdict = {"id": "day01/" + name, "verdict": "blank", "tests": 0, "stars": 0, "counts": [], "why": ""}
    verdicts.append(verdict)
    if not os.path.exists(answer):
        continue
    text = open(answer).read()
    if "JUDGE CRASHES" in text:
        os.abort()
    sandbox = [os.environ["COURSE_SANDBOX"], "run"] if os.environ.get("COURSE_SANDBOX") else []
    done = subprocess.run([*sandbox, "bash", answer], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    right = done.returncode == 0
    verdict.update(verdict="solved" if right else "not yet", tests=3 * right, stars=2 * right)
    verdict["why"] = "" if right else done.stdout.decode(errors="replace")
    if right:
        verdict["counts"] = ["global memory: 64 sectors"]
json.dump(verdicts, open(sys.argv[6], "w"))
"""
COURSE = """#!/bin/sh
echo '[{"id": "day01/first"}, {"id": "day01/second"}]'
"""


def is_sleeping():
    return SLEEP in subprocess.run(["ps", "-eo", "args"], stdout=subprocess.PIPE, text=True).stdout


class Grade(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(directory.cleanup)
        self.work = pathlib.Path(directory.name)
        self.work.chmod(0o755)
        self.root = self.work / "test" / "a checkout"  # no name above it may matter
        for place in ("scripts", "build/cpu/bin", "build/inspect", "day01_vectors"):
            (self.root / place).mkdir(parents=True)
        for name in ("grade.py", "sandbox.sh", "sandbox_start.py"):
            shutil.copy(CHECKOUT / "scripts" / name, self.root / "scripts")
        (self.root / "day01_vectors" / "exercises.md").write_text("the lesson\n")
        for name in ("day01_vectors/CMakeLists.txt", "CMakeLists.txt", "CMakePresets.json"):
            (self.root / name).touch()
        self.write_program(self.root / "course", COURSE)
        self.write_program(self.root / "build/cpu/bin/course", JUDGE)
        script = self.root / "scripts" / "grade.py"
        self.write_program(self.work / "grade", f'#!/bin/sh\nshift\nexec {sys.executable} "{script}" "$@"\n')

    def write_program(self, file, text):
        file.write_text(text)
        file.chmod(0o755)

    def hand_in(self, name, first="", second=""):
        answers = self.work / "handed in" / name / "day01_vectors"
        answers.mkdir(parents=True, exist_ok=True)
        for exercise, text in (("first", first), ("second", second)):
            if text:
                (answers / exercise).write_text(text + "\n")
        return answers.parent

    def grade(self, *arguments, trust=True, **environment):
        options = ["--trust"] if trust else []
        self.done = subprocess.run(
            [sys.executable, self.root / "scripts" / "grade.py", *arguments, *options],
            cwd=self.work,
            env=dict(os.environ, **environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=50,
        )
        return self.done.returncode

    def verdicts(self, name):
        result = json.loads((self.work / "grades" / f"{name}.json").read_text())
        return [exercise["verdict"] for exercise in result["exercises"]]

    def why(self, name):
        return json.loads((self.work / "grades" / f"{name}.json").read_text())["exercises"][0]["why"]

    def judged(self):
        """How often the judge was started, the first time for the lesson's own solutions."""
        return len((self.root / "judged").read_text())

    def test_all_solved_is_0_and_one_that_is_blank_is_1(self):
        ada = self.hand_in("ada", "exit 0", "exit 0")
        self.assertEqual(self.grade(ada), 0, self.done.stderr)
        self.assertIn("ada: 2 of 2 solved, 4 stars", self.done.stdout)
        bob = self.hand_in("bob", "exit 0")
        self.assertEqual(self.grade(ada, bob), 1)
        self.assertIn("bob: 1 of 2 solved, 2 stars, 1 blank", self.done.stdout)
        self.assertIn("1 of 2 students solved all of 2 exercises", self.done.stdout)

    def test_nothing_stops_at_the_first_failure(self):
        students = [
            self.hand_in(name, text, "exit 0") for name, text in (("ada", "exit 3"), ("bob", "exit 0"))
        ]
        self.assertEqual(self.grade(*students), 1)
        self.assertEqual(self.verdicts("ada"), ["not yet", "solved"])
        self.assertEqual(self.verdicts("bob"), ["solved", "solved"])

    def test_a_mistake_may_fail_later_exercises_and_the_page_says_so(self):
        ada = self.hand_in("ada", "echo wrong; false", "echo wrong, too; false")
        self.assertEqual(self.grade(ada), 1)
        self.assertIn("judging 'ada'", self.done.stderr)
        first, second = (self.work / "grades" / "ada.md").read_text().split("## day01/second")
        self.assertNotIn("Not solved before it", first)
        self.assertIn("Not solved before it: day01/first. These tests may run that code, too.", second)

    def test_my_below_the_directory_of_a_student_is_found(self):
        ada = self.hand_in("ada/my", "exit 0", "exit 0").parent
        self.assertEqual(self.grade(ada), 0, self.done.stdout)
        self.assertEqual(self.verdicts("ada"), ["solved", "solved"])

    def test_files_that_no_exercise_reads_are_named(self):
        bob = self.hand_in("bob")
        (bob / "homework").mkdir()
        (bob / "homework" / "first").write_text("exit 0\n")
        self.assertEqual(self.grade(bob), 1)
        self.assertIn("bob: 0 of 2 solved, 0 stars, 2 blank, files of no exercise: 1", self.done.stdout)
        self.assertIn("- homework/first", (self.work / "grades" / "bob.md").read_text())

    def test_errors_of_a_compiler_are_shown_once(self):
        ada = self.hand_in("ada", *2 * ["echo does not compile:; echo a.cu:7; false"])
        self.assertEqual(self.grade(ada), 1)
        page = (self.work / "grades" / "ada.md").read_text()
        self.assertEqual(page.count("a.cu:7"), 1)
        self.assertIn("does not compile: the errors are those of day01/first", page)

    def test_a_large_file_does_not_hide_the_answers_after_it(self):
        ada = self.hand_in("ada", "exit 0", "exit 0")
        (ada / "day01_vectors" / "core").touch()  # before "first" and "second"
        os.truncate(ada / "day01_vectors" / "core", 10**9)
        self.assertEqual(self.grade(ada), 0, self.done.stderr)

    def test_a_judge_that_crashes_is_told_and_the_next_student_is_judged(self):
        students = [self.hand_in("ada", "# JUDGE CRASHES", "exit 0"), self.hand_in("bob", "exit 0", "exit 0")]
        self.assertEqual(self.grade(*students), 1)
        self.assertEqual(self.verdicts("ada"), ["not judged", "not judged"])
        self.assertIn("the judge ended with", self.why("ada"))
        self.assertEqual(self.verdicts("bob"), ["solved", "solved"])

    def test_a_student_who_takes_too_long_is_ended(self):
        students = [self.hand_in("ada", SLEEP), self.hand_in("bob", "exit 0", "exit 0")]
        self.assertEqual(self.grade(*students, "--seconds", "2"), 1)
        self.assertIn("not done after 2 s", self.why("ada"))
        self.assertFalse(is_sleeping())
        self.assertEqual(self.verdicts("bob"), ["solved", "solved"])

    def test_a_second_run_skips_what_has_not_changed(self):
        ada = self.hand_in("ada", "exit 0", "exit 0")
        self.grade(ada)
        self.assertEqual(self.judged(), 2)
        self.assertEqual(self.grade(ada), 0)
        self.assertIn("(as before)", self.done.stdout)
        self.assertEqual(self.judged(), 2)
        self.grade(ada, "--again")
        self.assertEqual(self.judged(), 3)
        self.hand_in("ada", "exit 1")
        self.assertEqual(self.grade(ada), 1)
        self.assertEqual(self.judged(), 4)
        (self.root / "day01_vectors" / "vectors_test.cpp").write_text("a new test\n")
        self.grade(ada)
        self.assertEqual(self.judged(), 6)  # the lesson, too

    def test_a_new_judge_judges_all_again(self):
        ada = self.hand_in("ada", "exit 0", "exit 0")
        self.grade(ada)
        times = self.judged()
        for name in ("common/test/main.cpp", "cmake/course.cmake", "CMakeLists.txt", "CMakePresets.json"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text("another\n")
            self.grade(ada)
            self.assertEqual(self.judged(), times + 2, name)
            times += 2
        (self.root / "tools/course/test").mkdir(parents=True)
        (self.root / "tools/course/test/grade_test.py").write_text("another\n")
        self.grade(ada)
        self.assertEqual(self.judged(), times)

    def test_a_hand_in_stays_as_it_was(self):
        ada = self.hand_in("ada", 'echo changed >"$0"; rm -r "$(dirname "$0")"; exit 1')
        file = ada / "day01_vectors" / "first"
        before = file.stat().st_mtime_ns, file.read_text(), sorted(ada.rglob("*"))
        self.grade(ada)
        self.assertEqual((file.stat().st_mtime_ns, file.read_text(), sorted(ada.rglob("*"))), before)

    def test_what_is_no_file_is_left_out_and_named(self):
        ada = self.hand_in("ada", "exit 0")
        os.mkfifo(ada / "pipe")
        (ada / "day01_vectors" / "second").symlink_to("/etc/passwd")
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        here = os.getcwd()
        os.chdir(ada)
        server.bind("socket")
        os.chdir(here)
        self.assertEqual(self.grade(ada), 1)
        self.assertEqual(self.verdicts("ada"), ["solved", "blank"])
        page = (self.work / "grades" / "ada.md").read_text()
        for line in ("- day01\\_vectors/second: a symbolic link", "- pipe: a FIFO", "- socket: a socket"):
            self.assertIn(line, page)

    def test_a_link_does_not_hand_in_for_another(self):
        bob = self.hand_in("bob", "exit 0", "exit 0")
        students = [self.work / "handed in" / name / "my" for name in ("ada", "eve")] + [bob]
        for student in students[:2]:
            student.parent.mkdir()
        students[0].symlink_to(bob)
        students[1].write_text("no directory\n")
        self.assertEqual(self.grade(*students), 1, self.done.stderr)
        for name in ("ada", "eve"):
            self.assertEqual(self.verdicts(name), ["not judged", "not judged"])
            self.assertIn("it is no directory; links are not followed", self.why(name))
        self.assertEqual(self.verdicts("bob"), ["solved", "solved"])
        self.assertEqual(self.judged(), 2)  # the lesson and bob

    def test_a_hand_in_that_cannot_be_copied_ends_no_run(self):
        long = "long" * 60
        ada = self.hand_in("ada", "exit 0", "exit 0")
        place = os.open(ada, os.O_RDONLY)
        for depth in range(20):  # longer than a path may be
            os.mkdir(long, dir_fd=place)
            place, outer = os.open(long, os.O_RDONLY, dir_fd=place), place
            os.close(outer)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=place))
        os.close(place)
        eve = self.hand_in("é" * 120, "exit 0", "exit 0")
        self.assertEqual(self.grade(ada, eve), 0, self.done.stderr)
        left_out = json.loads((self.work / "grades" / "ada.json").read_text())["left_out"]
        self.assertEqual([name.count("/") for name, _ in left_out], [10])
        self.assertIn("more than 10 deep", left_out[0][1])

    def test_a_hand_in_is_copied_up_to_its_limits(self):
        ada = self.hand_in("ada", "exit 0", "exit 0")
        for number in range(200):
            (ada / f"z{number}").symlink_to("nowhere")
        (ada / "large").touch()
        os.truncate(ada / "large", 10**12)
        (ada / "zz_after").write_text("beyond\n")
        self.assertEqual(self.grade(ada), 0, self.done.stderr)
        left_out = json.loads((self.work / "grades" / "ada.json").read_text())["left_out"]
        self.assertIn(["large", "beyond 5000 files or 50 MB"], left_out)
        self.assertEqual(left_out[-1], ["...", "and more"])
        self.assertEqual(len(left_out), 101)

    def test_an_unreadable_directory_is_named(self):
        if os.geteuid() == 0:
            self.skipTest("root can read everything")
        ada = self.hand_in("ada", "exit 0", "exit 0")
        (ada / "closed").mkdir()
        (ada / "closed").chmod(0)
        self.grade(ada)
        left_out = json.loads((self.work / "grades" / "ada.json").read_text())["left_out"]
        self.assertEqual(left_out, [["closed", "Permission denied"]])

    def test_an_error_of_the_judge_itself_is_4_or_of_one_student(self):
        students = [self.hand_in(name, "exit 0", "exit 0") for name in ("ada", "bob")]
        judge = JUDGE.replace("json.dump(", "if 'WRITE NONSENSE' in globals().get('text', ''): verdicts = [1]\njson.dump(")
        self.write_program(self.root / "build/cpu/bin/course", judge)
        self.hand_in("ada", "exit 0", "exit 0 # WRITE NONSENSE")
        self.assertEqual(self.grade(*students), 1, self.done.stderr)
        self.assertEqual(self.verdicts("ada"), ["not judged", "not judged"])
        self.assertIn("TypeError", self.why("ada"))
        self.assertEqual(self.verdicts("bob"), ["solved", "solved"])
        self.assertEqual(self.grade(*students, "--json", "/nowhere/grades.json"), 4)

    def test_names_and_output_cannot_break_the_page_or_the_terminal(self):
        ada = self.hand_in("<b>a|d`a\x1b[2J\n# grade A", "printf '\\033[31m```\\n# Solved\\n'; exit 1")
        os.mkfifo(ada / "x|\n| second | solved |\x1b]0;title\x07")
        self.assertEqual(self.grade(ada, "--csv", self.work / "grades.csv"), 1)
        pages = list((self.work / "grades").glob("*.md"))
        self.assertEqual(len(pages), 1)
        page = pages[0].read_text()
        for text in (page, self.done.stdout, (self.work / "grades.csv").read_text()):
            self.assertNotIn("\x1b", text)
        lines = page.splitlines()
        self.assertTrue(lines[0].startswith("# \\<b\\>a\\|d\\`a\\\\x1b"), lines[0])
        self.assertNotIn("# grade A", lines)
        self.assertNotIn("# Solved", lines)
        self.assertIn("    # Solved", lines)
        self.assertFalse([line for line in lines if line.startswith("| second | solved")])

    def test_json_and_csv_hold_every_exercise(self):
        ada = self.hand_in("=ada", "exit 0")
        self.grade(ada, "--json", self.work / "grades.json", "--csv", self.work / "grades.csv")
        result = json.loads((self.work / "grades.json").read_text())[0]
        self.assertEqual([e["id"] for e in result["exercises"]], EXERCISES)
        self.assertEqual(result["exercises"][0]["counts"], ["global memory: 64 sectors"])
        with open(self.work / "grades.csv", newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows[1][:5], ["'=ada", "day01/first", "solved", "3", "2"])
        self.assertEqual(rows[2][:5], ["'=ada", "day01/second", "blank", "0", "0"])

    def test_the_csv_names_the_line_of_the_student(self):
        said = [
            "this one fails:",
            "  4 of 9 values differ",
            "    [0]: expected 1, got 2",
            "    [1]: expected 1, got 2",
            "  a race: build/grade/my/day01_vectors/first:7 and build/grade/my/day01_vectors/first:9",
        ]
        ada = self.hand_in("ada", "\n".join(f'echo "{line}"' for line in said) + "\nexit 1")
        self.grade(ada, "--csv", self.work / "grades.csv")
        with open(self.work / "grades.csv", newline="") as file:
            row = list(csv.DictReader(file))[0]
        self.assertEqual(row["where"], "my/day01_vectors/first:7")
        self.assertEqual(
            row["why"],
            "4 of 9 values differ; [0]: expected 1, got 2; "
            "a race: my/day01_vectors/first:7 and my/day01_vectors/first:9",
        )

    def test_gradescope_gets_a_point_for_each_solved_exercise(self):
        ada = self.hand_in("ada", "exit 0", "echo late; exit 1")
        self.grade(ada, "--gradescope", self.work / "results.json")
        result = json.loads((self.work / "results.json").read_text())
        self.assertEqual(
            [(t["name"], t["score"], t["max_score"], t["status"]) for t in result["tests"]],
            [("day01/first", 1, 1, "passed"), ("day01/second", 0, 1, "failed")],
        )
        self.assertEqual(result["tests"][1]["output"], "not yet\nlate")
        self.assertEqual(result["output"], "ada: 1 of 2 solved, 2 stars, 1 not yet")

    def test_settings_of_programs_are_the_judges_own(self):
        judge = JUDGE.replace(
            "verdicts = []",
            "open(os.environ['COURSE_ROOT'] + '/settings', 'a').write(' '.join(os.environ))\n"
            "verdicts = []",
        )
        self.write_program(self.root / "build/cpu/bin/course", judge)
        names = ("OMP_NUM_THREADS", "CUDA_ON_CPU_ORDER", "COURSE_TEST_LIMIT", "GTEST_FILTER")
        ada = self.hand_in("ada", "exit 0", "exit 0")
        self.assertEqual(self.grade(ada, **dict.fromkeys(names, "1"), LATER="1"), 0, self.done.stderr)
        settings = (self.root / "settings").read_text()
        self.assertIn("LATER", settings)
        for name in names:
            self.assertNotIn(name, settings)

    def test_wrong_usage_is_2_and_says_what_is_expected(self):
        ada = self.hand_in("ada", "exit 0")
        for arguments, words in (
            ([self.work / "no_student"], "is no directory; expected the my/ of a student"),
            ([ada, "--days", "day77"], "there is no 'day77' with exercises; expected some of day01"),
            ([ada, "--jobs", "0"], "it is '0'; expected a whole number from 1 on"),
            ([ada, "--jobs", "2"], "expected 1 with --trust"),
            (
                [ada, self.hand_in("bob"), "--gradescope", "x"],
                "there are 2 directories; expected that of one student",
            ),
            ([ada, ada], "expected directories that are called after the students"),
        ):
            self.assertEqual(self.grade(*arguments), 2, arguments)
            self.assertIn(words, self.done.stderr)

    def test_without_bubblewrap_it_refuses_and_names_trust(self):
        ada = self.hand_in("ada", "exit 0")
        tools = self.work / "tools"
        tools.mkdir()
        for name in (
            "bash",
            "env",
            "dirname",
            "readlink",
            "id",
            "prlimit",
            "timeout",
            "true",
            "python3",
            "setpriv",
        ):
            (tools / name).symlink_to(shutil.which(name))
        self.assertEqual(self.grade(ada, trust=False, PATH=str(tools)), 2)
        self.assertIn("bwrap is not installed", self.done.stderr)
        self.assertIn("--trust", self.done.stderr)
        self.assertFalse((self.root / "judged").exists())


class Sandboxed(Grade):
    """The same, and attacks, where bubblewrap is permitted."""

    def setUp(self):
        super().setUp()
        probe = subprocess.run(
            [CHECKOUT / "scripts/sandbox.sh", "run", "true"], capture_output=True, text=True
        )
        if probe.returncode != 0:
            print(f"no sandbox here: {probe.stderr.strip()}", flush=True)
            os._exit(77)

    def grade(self, *arguments, trust=False, **environment):
        return super().grade(*arguments, trust=False, **environment)

    test_without_bubblewrap_it_refuses_and_names_trust = None
    test_wrong_usage_is_2_and_says_what_is_expected = None

    def attack(self, script, *arguments, **environment):
        """The verdict on a script that ends with 0 where its attack fails, and its output. The
        student after it is judged all the same.
        """
        students = [self.hand_in("eve", script, "exit 0"), self.hand_in("zoe", "exit 0", "exit 0")]
        self.grade(*students, *arguments, **environment)
        self.assertEqual(self.verdicts("zoe"), ["solved", "solved"], self.done.stderr)
        return self.verdicts("eve")[0], self.why("eve")

    def secret(self):
        file = self.work / "secret"
        file.write_text("a secret\n")
        file.chmod(0o666)
        return file

    def test_files_outside_cannot_be_read(self):
        verdict, why = self.attack(
            f"cat '{self.secret()}' /etc/passwd '{self.work}/handed in/zoe/day01_vectors/first' && exit 1; exit 0"
        )
        self.assertEqual((verdict, why), ("solved", ""))

    def test_what_is_no_part_of_the_course_cannot_be_read_in_the_checkout(self):
        for name in ("grades", "my", ".git"):
            (self.root / name).mkdir()
            (self.root / name / "ada.json").write_text("a treasure\n")
        (self.root / "notes").write_text("a treasure\n")
        verdict, why = self.attack(f"cd '{self.root}'; cat notes; grep -r 'treas[u]re' . && exit 1; exit 0")
        self.assertEqual((verdict, why), ("solved", ""))

    def test_files_outside_cannot_be_deleted(self):
        file = self.secret()
        self.work.chmod(0o777)
        self.attack(f"rm -f '{file}'; rm -rf '{self.root}/day01_vectors' '{self.work}/handed in/zoe'")
        self.assertTrue(file.exists())
        self.assertTrue((self.root / "day01_vectors" / "exercises.md").exists())

    def test_processes_that_are_left_are_ended(self):
        self.attack(f"for i in 1 2 3; do (setsid nohup {SLEEP} >/dev/null 2>&1 &); done; exit 0")
        time.sleep(0.2)
        self.assertFalse(is_sleeping())

    def test_a_fork_bomb_ends(self):
        verdict, why = self.attack(
            "f() { f | f & f; }; f 2>/dev/null; sleep 1; exit 1", COURSE_RUN_SECONDS="5"
        )
        self.assertEqual(verdict, "not yet")

    def test_processes_are_limited(self):
        script = (
            "exec python3 -c 'import os, signal\n"
            "for i in range(400):\n"
            "    try: os.fork() or signal.pause()\n"
            "    except OSError: exit(0 if i < 100 else 1)\n"
            "exit(1)'"
        )
        verdict, why = self.attack(script, COURSE_LIMIT_PROCESSES="100")
        self.assertEqual(verdict, "solved", why)

    def test_memory_is_limited(self):
        verdict, why = self.attack("python3 -c 'x = bytearray(50_000_000_000)' && exit 1; exit 0")
        self.assertEqual(verdict, "solved", why)

    def test_memory_of_several_processes_is_limited(self):
        take = "python3 -c 'x = b\"1\" * 600_000_000; import time; time.sleep(30)'"
        verdict, why = self.attack(f"{take} & {take} & wait", "--memory", "1")
        self.assertEqual(verdict, "not yet")
        self.assertIn("used more than 1 GB of memory", why)

    def test_the_disk_cannot_be_filled(self):
        script = (
            "ulimit -f unlimited; for place in /tmp /dev/shm / /dev \"$HOME\" '{0}' '{0}/build' '{0}/build/cpu'; do\n"
            "head -c 400M /dev/zero >$place/full && exit 1; done; du -sm /tmp /dev/shm; exit 0"
        )
        verdict, why = self.attack(script.format(self.root))
        self.assertEqual(verdict, "solved", why)

    def test_a_file_of_a_compiler_is_limited(self):
        file = self.root / "build" / "cpu" / "large"
        file.parent.chmod(0o777)
        done = self.sandboxed("compile", f"head -c 400M /dev/zero >'{file}'")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(file.stat().st_size, 300_000_000)

    def test_a_build_that_grows_is_ended(self):
        compiles = JUDGE.replace(
            "    right = ",
            "    if 'COMPILES' in text:\n"
            "        place = os.environ['COURSE_BUILD_DIR'] + '/large'\n"
            "        for i in range(5): open(place + str(i), 'wb').write(b'x' * 10_000_000)\n"
            "        __import__('time').sleep(30)\n"
            "    right = ",
        )
        self.write_program(self.root / "build/cpu/bin/course", compiles)
        verdict, why = self.attack("# COMPILES", COURSE_LIMIT_BUILD="40000000")
        self.assertEqual(verdict, "not judged")
        self.assertIn("the build is larger than 0.04 GB, ended", why)

    def test_root_of_a_namespace_with_few_users_is_told(self):
        if os.geteuid() != 0:
            self.skipTest("only root gives hand-ins to other users")
        ada = self.hand_in("ada", "exit 0", "exit 0")
        command = ["unshare", "--user", "--map-root-user", sys.executable, self.root / "scripts/grade.py", ada]
        done = subprocess.run(command, cwd=self.work, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("has no such user", done.stderr)

    def test_a_machine_without_memory_ends_the_judge(self):
        ada = self.hand_in("ada", "sleep 5; exit 0", "exit 0")
        self.assertEqual(self.grade(ada, COURSE_LIMIT_AVAILABLE=str(10**15)), 1)
        self.assertEqual(self.verdicts("ada"), ["not judged", "not judged"])
        self.assertIn("the machine was short of memory", self.why("ada"))

    def test_there_are_no_namespaces_within(self):
        verdict, why = self.attack("unshare -Urm mount -t tmpfs -o size=90G none /tmp && exit 1; exit 0")
        self.assertEqual(verdict, "solved", why)

    def test_there_is_no_network(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            verdict, why = self.attack(
                f"echo >/dev/tcp/127.0.0.1/{server.getsockname()[1]} && exit 1; exit 0"
            )
        self.assertEqual(verdict, "solved", why)

    def test_verdicts_cannot_be_written(self):
        script = (
            "cd '{0}/build'; find . -type f -o -type l | while read -r file; do\n"
            "echo '[]' >\"$file\" && touch /tmp/written; done; echo x >'{0}/build/cpu/bin/course' && exit 0\n"
            "[[ -e /tmp/written ]] && exit 0; grep -l course /proc/[0-9]*/comm && exit 0; exit 1"
        )
        self.assertEqual(self.attack(script.format(self.root))[0], "not yet")

    def test_the_environment_is_clean(self):
        verdict, why = self.attack("env; [[ -z $TOKEN ]]", TOKEN="a secret")
        self.assertEqual(verdict, "solved", why)

    def test_process_1_tells_nothing_of_the_teacher_or_the_judge(self):
        script = (
            "tr '\\0' '\\n' </proc/1/cmdline >/tmp/told; tr '\\0' '\\n' </proc/1/environ >>/tmp/told\n"
            "cat /tmp/told; [[ $COURSE_TEST_KEY == key-4711 ]] || exit 1\n"
            "grep -q -e TOKEN -e key-4711 -e COURSE_TEST_KEY /tmp/told && exit 1; exit 0"
        )
        done = self.sandboxed("run", script, TOKEN="a secret", COURSE_TEST_KEY="key-4711")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("bwrap", done.stdout)

    def test_keys_of_the_teacher_cannot_be_read(self):
        keyctl, add_key = {"x86_64": (250, 248), "aarch64": (219, 217)}[os.uname().machine]
        teacher = (
            "import ctypes, subprocess, sys; call = ctypes.CDLL(None).syscall\n"
            f"call({keyctl}, 1, None)\n"
            f"key = call({add_key}, b'user', b'course', b'treasure', 8, ctypes.c_int(-3))\n"
            "print('no keyring here', flush=True) if key < 0 else 0\n"
            "sys.exit(subprocess.call([*sys.argv[1:], str(key)]))"
        )
        student = (
            "import ctypes, sys; text = ctypes.create_string_buffer(99)\n"
            f"ctypes.CDLL(None).syscall({keyctl}, 11, int(sys.argv[1]), text, 99)\n"
            "print(text.value); sys.exit(text.value != b'')"
        )
        plain = [sys.executable, "-c", teacher, sys.executable, "-c", student]
        done = subprocess.run(plain, stdout=subprocess.PIPE)
        if b"treasure" not in done.stdout:
            self.skipTest(f"the kernel keeps no keys here: {done.stdout}")
        for kind in ("run", "compile"):
            inside = [self.root / "scripts" / "sandbox.sh", kind, "python3", "-c", student]
            done = subprocess.run([sys.executable, "-c", teacher, *inside], stdout=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stdout), (0, b"b''\n"))

    def test_a_result_is_64_MB_at_most(self):
        result = self.work / "results" / "result"
        result.parent.mkdir()
        script = f"echo printed; echo figures >'{result}'; exit 7"
        done = self.sandboxed("run", "--result", result, script)
        self.assertEqual((done.returncode, done.stdout, result.read_text()), (7, "printed\n", "figures\n"))
        script = "for i in 1 2 3; do head -c 40M /dev/zero >>/proc/$PPID/fd/5; done; exit 0"
        done = self.sandboxed("run", "--result", result, script)
        self.assertEqual(done.returncode, 0, done.stdout)
        # What root has opened, the student's user cannot open again.
        self.assertEqual(result.stat().st_size, 64_000_000 if os.geteuid() else 0, done.stdout)
        begin = time.monotonic()
        done = self.sandboxed("run", "--result", result, f"{SLEEP} & {SLEEP}", COURSE_RUN_SECONDS="1")
        self.assertLess(time.monotonic() - begin, 10)
        time.sleep(0.2)
        self.assertFalse(is_sleeping())

    def test_open_files_of_the_judge_cannot_be_read(self):
        with open(self.secret()) as file:
            os.dup2(file.fileno(), 77, inheritable=True)
            self.addCleanup(os.close, 77)
            command = [self.root / "scripts" / "sandbox.sh", "run", "bash", "-c", "cat <&77 && exit 1; exit 0"]
            done = subprocess.run(command, pass_fds=[77], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout), (0, b""))

    def sandboxed(self, *arguments, **environment):
        """The end and the output of a script, the last argument, in the sandbox without the judge."""
        script = self.root / "scripts" / "attack"
        script.write_text(arguments[-1] + "\n")
        command = [self.root / "scripts" / "sandbox.sh", *arguments[:-1], "bash", script]
        return subprocess.run(
            command,
            env=dict(os.environ, **environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=50,
        )

    def test_a_program_that_runs_too_long_is_ended(self):
        verdict, why = self.attack("trap '' TERM; sleep 40", COURSE_RUN_SECONDS="1")
        self.assertEqual(verdict, "not yet")

    def test_two_students_at_a_time_do_not_see_each_other(self):
        script = "cat '{0}'/build/prepared/grade/*/build/grade/my/*/* && exit 1; exit 0"
        students = [self.hand_in(name, script.format(self.root), "exit 0") for name in ("ada", "bob")]
        self.assertEqual(self.grade(*students, "--jobs", "2"), 0, self.why("ada"))

    def test_several_runs_at_a_time_share_one_checkout(self):
        sixty = (
            "exec python3 -c 'import os, time\nfor i in range(60): os.fork() or time.sleep(9)\ntime.sleep(2)'"
        )
        students = [self.hand_in(name, sixty, "exit 0") for name in ("ada", "bob")]
        self.grade(self.hand_in("zoe", "exit 0", "exit 0"))
        script = CHECKOUT / "scripts" / "grade_array.sh"
        runs = [
            subprocess.Popen(
                [script, *students, "--", "--days", "day01"],
                cwd=self.work,
                env=dict(
                    os.environ,
                    COURSE=str(self.work / "grade"),
                    SLURM_ARRAY_TASK_ID=str(task),
                    COURSE_LIMIT_PROCESSES="100",
                ),
                stdout=subprocess.DEVNULL,
            )
            for task in range(2)
        ]
        self.assertEqual([run.wait(timeout=50) for run in runs], [0, 0])
        self.assertEqual(self.grade(*students), 0)
        self.assertEqual(self.done.stdout.count("(as before)"), 2)
        self.assertEqual(self.judged(), 4)  # the lesson and three students

    def test_ctrl_c_ends_all_that_was_started(self):
        ada = self.hand_in("ada", SLEEP)
        process = subprocess.Popen(
            [sys.executable, self.root / "scripts" / "grade.py", ada],
            cwd=self.work,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(100):
            if is_sleeping():
                break
            time.sleep(0.1)
        self.assertTrue(is_sleeping())
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, messages)
        self.assertIn("interrupted", messages)
        time.sleep(0.5)
        self.assertFalse(is_sleeping())
        self.assertEqual(list((self.root / "build" / "grade").glob("work.*")), [])


if __name__ == "__main__":
    unittest.main()
