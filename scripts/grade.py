#!/usr/bin/env python3
"""Judges what students handed in. `./course grade` starts it.

    ./course grade handed_in/*/my                   every exercise of every day
    ./course grade handed_in/* --days day05,day15   of these days
    ./course grade handed_in/* --jobs 4 --json grades.json --csv grades.csv

Each DIR is the my/ of one student, whose name is that of DIR or, where DIR is called my, of the
directory above it. Nothing in DIR is changed: a copy is judged, by `./course check`, in a sandbox
of bubblewrap. Results and a page for each student go to grades/ (--out), where a second run finds
them: it skips whose files and lessons have not changed. Exit code 1 when an exercise of anybody is
not solved, or blank.
"""

import argparse
import concurrent.futures
import contextlib
import csv
import errno
import fcntl
import hashlib
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
GRADE = BUILD / "grade"
MINE = GRADE / "my"  # in every sandbox, so that no build is configured twice
SANDBOX = ROOT / "scripts" / "sandbox.sh"
SANDBOX_START = SANDBOX.with_name("sandbox_start.py")
COMMAND = BUILD / "cpu" / "bin" / "course"
PRESETS = ("cpu", "inspect")
OF_PROGRAMS = ("OMP_", "CUDA_ON_CPU_", "COURSE_TEST_", "GTEST_")
USAGE, BUILD_FAILED, UNEXPECTED = 2, 3, 4
# Of what one student hands in. Depth costs open files.
MOST_BYTES, MOST_FILES, MOST_DIRECTORIES, DEEPEST = 50_000_000, 5000, 1000, 10
MOST_LEFT_OUT = 100  # named on a page
# Errors of this machine, not of a hand-in.
OURS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EROFS)
SEEN_EVERY, BUILD_SEEN_EVERY = 0.2, 2  # seconds
LEAST_AVAILABLE = 500_000_000  # bytes of this machine's memory
MOST_BUILT = 4_000_000_000  # bytes of one student's build


class Problem(Exception):
    """Wrong usage, or a machine that cannot grade; the message says what is expected."""

    def __init__(self, message, code=USAGE):
        super().__init__(message)
        self.code = code


def say(text):
    print(f"course: {text}", file=sys.stderr, flush=True)


# --- What was handed in ---


def is_directory(path):
    return os.path.isdir(path) and not os.path.islink(path)


class Student:
    def __init__(self, directory):
        path = pathlib.Path(os.path.abspath(directory))  # a link must not choose the name
        self.directory = path
        self.refused = None if is_directory(path) else "it is no directory; links are not followed"
        self.name = path.parent.name if path.name == "my" else path.name
        if path.name != "my" and not self.refused and is_directory(path / "my"):
            self.directory = path / "my"  # `handed_in/*` means handed_in/ada/my, too
        self.file = re.sub(r"[^\w.@ +-]", "_", self.name).lstrip(".") or "_"  # of results: no odd characters
        if len(os.fsencode(self.file)) > 200:
            self.file = self.file[:40] + hashlib.sha256(os.fsencode(self.name)).hexdigest()


def students_of(directories):
    students = []
    for directory in directories:
        if not os.path.lexists(directory):
            raise Problem(f"'{directory}' is no directory; expected the my/ of a student")
        students.append(Student(directory))
    by_file = {}
    for student in students:
        other = by_file.setdefault(student.file, student)
        if other is not student:
            raise Problem(
                f"'{other.directory}' and '{student.directory}' both belong to '{student.file}'; "
                "expected directories that are called after the students"
            )
    return students


KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class HandIn:
    """Copies the files of a hand-in to `target`. `left_out` tells what was not copied, and why:
    [(name, reason)]. The student may change everything meanwhile, even into a link or a FIFO.
    """

    def __init__(self, source, target):
        self.target = target
        self.left_out, self.files, self.directories, self.bytes = [], 0, 0, 0
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        self.copy(source, None, pathlib.PurePath())

    def copy(self, path, parent, relative):
        """`path` is below the directory that the descriptor `parent` has open."""
        try:
            status = os.stat(path, dir_fd=parent, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                reason = self.copy_directory(path, parent, relative)
            else:
                reason = self.copy_file(path, parent, relative, status)
        except OSError as error:
            if error.errno in OURS:
                raise
            reason = error.strerror
        if reason and len(self.left_out) < MOST_LEFT_OUT:
            self.left_out.append((str(relative), reason))
        elif reason and len(self.left_out) == MOST_LEFT_OUT:
            self.left_out.append(("...", "and more"))

    def copy_directory(self, path, parent, relative):
        self.directories += 1
        if self.directories > MOST_DIRECTORIES or len(relative.parts) > DEEPEST:
            return f"beyond {MOST_DIRECTORIES} directories, or more than {DEEPEST} deep"
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
        try:
            with os.scandir(descriptor) as entries:
                some = list(itertools.islice(entries, MOST_FILES + 1))
            for name in sorted(entry.name for entry in some):
                if str(relative / name) != "progress.json":  # which the student may have written
                    self.copy(name, descriptor, relative / name)
        finally:
            os.close(descriptor)
        return f"a directory of more than {MOST_FILES} files" if len(some) > MOST_FILES else None

    def copy_file(self, path, parent, relative, status):
        self.files += 1
        if stat.S_IFMT(status.st_mode) in KINDS:
            return KINDS[stat.S_IFMT(status.st_mode)]
        # What is left out does not count: no core dump takes the place of the answers after it.
        if self.files > MOST_FILES or self.bytes + status.st_size > MOST_BYTES:
            return f"beyond {MOST_FILES} files or {MOST_BYTES // 1_000_000} MB"
        self.bytes += status.st_size
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return "not a file"
            contents = file.read(status.st_size)
            if file.read(1):
                return "it grew while it was copied"
        copy = self.target / relative
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(contents)
        return None


def hash_of(directory, *words, without=None):
    """Of names and contents below a directory."""
    total = hashlib.sha256(repr(words).encode())
    for path in sorted(path for path in pathlib.Path(directory).rglob("*") if path.is_file()):
        if without and path.is_relative_to(without):
            continue
        total.update(os.fsencode(path.relative_to(directory)) + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def hash_of_files(versions, *files):
    """Of the lessons' versions and of these programs."""
    return hashlib.sha256(repr(versions).encode() + b"".join(file.read_bytes() for file in files)).hexdigest()


# --- The lesson, built and judged before any hand-in ---


def environment(mine=MINE, **more):
    # The judge sets these for programs; the teacher's own would change what is judged.
    settings = {name: value for name, value in os.environ.items() if not name.startswith(OF_PROGRAMS)}
    settings.update(COURSE_PRESET="cpu", COURSE_MY=str(mine), NO_COLOR="1", **more)
    settings.update(COURSE_ROOT=str(ROOT), COURSE_BUILD_DIR=str(BUILD / "cpu"))
    return settings


def exercises_of(days):
    """All names, in order, of the exercises of these days. Builds the command, too."""
    done = subprocess.run(
        [ROOT / "course", "progress", "--json"], env=environment(), stdout=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        raise Problem("the command cannot be built: see above", BUILD_FAILED)
    names = [exercise["id"] for exercise in json.loads(done.stdout)]
    known = list(dict.fromkeys(day_of(name) for name in names))
    for day in days or []:
        if day not in known:
            raise Problem(f"--days: there is no '{day}' with exercises; expected some of {', '.join(known)}")
    return [name for name in names if not days or day_of(name) in days]


def day_of(exercise):
    return exercise.split("/")[0]


def versions_of(days):
    """{day: hash} of what decides a verdict: the lesson, its tests, and the programs that judge."""
    tests = ROOT / "tools" / "course" / "test"  # of the judge
    judge = [
        hash_of(ROOT / place, without=tests) for place in ("common", "cuda_on_cpu", "tools/course", "cmake")
    ]
    judge += [(ROOT / name).read_bytes() for name in ("CMakeLists.txt", "CMakePresets.json")]
    lessons = {day: next(ROOT.glob(f"{day}*/exercises.md")).parent for day in days}
    return {day: hash_of(lesson, *judge)[:16] for day, lesson in lessons.items()}


def unprepared(versions):
    try:
        prepared = json.loads((GRADE / "prepared.json").read_text())
    except (OSError, ValueError):
        prepared = {}
    return [day for day, version in versions.items() if prepared.get(day) != version], prepared


def prepare(exercises, versions):
    """Judges the lesson's own solutions, which builds all that is needed, once for each version."""
    for left in GRADE.glob("work.*"):  # of a run that was killed
        shutil.rmtree(left)
    days, prepared = unprepared(versions)
    if days:
        say("the lesson's own solutions are judged first, which builds what is needed and may take minutes")
    for day in days:
        shutil.rmtree(MINE, ignore_errors=True)
        MINE.mkdir(parents=True)
        prepare_day(day, [exercise for exercise in exercises if day_of(exercise) == day])
        prepared[day] = versions[day]
        write_json(GRADE / "prepared.json", prepared)
    for preset in presets_for_others():
        command = ["cmake", "-S", ROOT, "-B", BUILD / preset, f"-DCOURSE_MY:PATH={MINE}"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise Problem(f"build/{preset} cannot be configured:\n{done.stdout}", BUILD_FAILED)


def check_of(day, verdicts):
    """With --inspect: otherwise what is counted, and the stars, would depend on the exercises before."""
    return [COMMAND, "check", day, "--keep-going", "--inspect", "--json", verdicts]


def presets_for_others():
    """Builds that were last configured for a my/ elsewhere: a check in the sandbox would do it anew."""
    wanted = f"\nCOURSE_MY:PATH={MINE}\n"
    caches = {preset: BUILD / preset / "CMakeCache.txt" for preset in PRESETS}
    return [preset for preset, cache in caches.items() if cache.exists() and wanted not in cache.read_text()]


def prepare_day(day, exercises):
    for exercise in exercises:
        command = [COMMAND, "solution", exercise, "--force", "--paste"]
        subprocess.run(command, env=environment(), stdout=subprocess.DEVNULL, check=True)
    verdicts = GRADE / "verdicts.json"
    command = check_of(day, verdicts)
    code = subprocess.run(command, env=environment(), stdout=subprocess.DEVNULL).returncode
    if code not in (0, 1):
        raise Problem(f"{day}: the lesson cannot be judged here: see above", BUILD_FAILED)
    for exercise in json.loads(verdicts.read_text()):
        if exercise["verdict"] != "solved":
            say(f"{exercise['id']}: not even the lesson's solution is solved here: {exercise['why']}")


# --- The sandbox ---


def require_users(last):
    """As root, whose namespace may have few users, each job gives its files to one of its own."""
    ranges = [list(map(int, line.split())) for line in open("/proc/self/uid_map")]
    if not any(first <= last < first + count for first, _, count in ranges):
        raise Problem(
            f"as root, hand-ins run as users up to {last}, and this container or namespace has no such user; "
            "grade as an ordinary user, or in a container that has all users"
        )


def require_sandbox(jobs):
    if os.geteuid() == 0:
        require_users(user_of(jobs - 1))
    done = subprocess.run(
        [SANDBOX, "run", "true"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode == 0:
        return
    raise Problem(
        f"the sandbox cannot be used here: {done.stdout.strip()}\n"
        "It needs bubblewrap (apt-get install bubblewrap) and the permission to make namespaces, which many\n"
        "containers withhold. --trust grades without it: then what was handed in runs with your rights, and\n"
        "can read, change and delete what you can."
    )


def is_of_an_exercise(path):
    """What a check builds from a learner's files: no student gets that of another, or the lesson's."""
    return re.search(r"_exercise(_program)?(_inspected|_debugged)?($|\.dir/)", str(path)) is not None


def link_build(preset, target):
    """A build of one student's own: links to the files of the prepared one, which cannot be
    written. Ninja appends to its two logs, so they are copied; compilers replace links.
    """
    source = BUILD / preset
    if not source.is_dir():
        return
    for directory, directories, names in os.walk(source):
        here = pathlib.Path(directory)
        to = target / here.relative_to(source)
        to.mkdir(parents=True, exist_ok=True)
        if here == source:
            directories[:] = [name for name in directories if name not in ("exercises", "results", "own")]
        for name in names:
            if is_of_an_exercise(here / name):
                continue
            if name.startswith(".ninja_"):
                shutil.copyfile(here / name, to / name)
            else:
                (to / name).symlink_to(BUILD / "prepared" / here.relative_to(BUILD) / name)
    (target / "results").mkdir(exist_ok=True)


def give_to(user, directory):
    for path, directories, names in os.walk(directory):
        for name in [".", *directories, *names]:
            os.chown(os.path.join(path, name), user, user, follow_symlinks=False)


def user_of(job):
    """As root: the user that hand-ins run as, of this job only, as processes are counted by user."""
    return 1_000_000 + 64 * os.getpid() + job


class Workspace:
    """Where one student after the other is judged: a build and a my/ in the place of the checkout's."""

    def __init__(self, number, options):
        self.options = options
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="work.", dir=GRADE))
        self.build = self.directory / "build"
        self.user = user_of(number)
        self.process = None  # the judge
        if options.trust:
            self.mine, self.verdicts, self.inside = MINE, self.directory / "verdicts.json", []
            self.verdicts_inside = self.verdicts
            return
        self.mine = self.build / "grade" / "my"
        self.verdicts = self.build / "grade" / "verdicts.json"
        self.verdicts_inside = GRADE / "verdicts.json"
        self.inside = ["bwrap", "--dev-bind", "/", "/", "--die-with-parent"]
        self.inside += ["--bind", self.build, BUILD, "--ro-bind", BUILD, BUILD / "prepared"]
        self.inside += ["--tmpfs", BUILD / "prepared" / "grade"]  # the work of others

    def clear(self):
        if self.options.trust:
            return
        shutil.rmtree(self.build, ignore_errors=True)
        (self.build / "prepared").mkdir(parents=True)
        for preset in PRESETS:
            link_build(preset, self.build / preset)

    def settings(self):
        if self.options.trust:
            return environment()
        return environment(COURSE_SANDBOX=str(SANDBOX), COURSE_SANDBOX_USER=str(self.user))

    def judge(self, day):
        """The verdicts on a day's exercises, and why there are none."""
        self.verdicts.unlink(missing_ok=True)
        command = [*self.inside, *check_of(day, self.verdicts_inside)]
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                command,
                env=self.settings(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            self.process = process
            build = None if self.options.trust else self.build
            ended = wait(process, self.options.seconds, self.options.memory * 1e9, build)
            output.seek(0)
            text = output.read(1_000_000).decode(errors="replace")
        try:
            verdicts = json.loads(self.verdicts.read_text())
        except (OSError, ValueError):
            return [], ended or f"the judge ended with {process.returncode}: {text[-2000:].strip()}"
        return verdicts, ended


def processes_below(parent):
    """{pid: (its parent, its name, bytes in memory)} of all processes that `parent` has started."""
    page = os.sysconf("SC_PAGE_SIZE")
    everything = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = pathlib.Path("/proc", name, "stat").read_text(errors="replace")
            words = text[text.rindex(")") + 2 :].split()
            everything[int(name)] = (
                int(words[1]),
                text[text.index("(") + 1 : text.rindex(")")],
                int(words[21]) * page,
            )
    found, fresh = {}, {parent}
    while fresh:
        fresh = {pid for pid, (of, _, _) in everything.items() if of in fresh} - found.keys()
        found.update({pid: everything[pid] for pid in fresh})
    return found


def available_memory():
    """Bytes. Falls with all that is in memory, such as shared memory that belongs to no process."""
    with contextlib.suppress(OSError, AttributeError):
        text = pathlib.Path("/proc/meminfo").read_text()
        return int(re.search(r"^MemAvailable: *(\d+) kB", text, re.MULTILINE).group(1)) * 1024
    return sys.maxsize


def bytes_in(directory):
    """On the disk, without what links point to."""
    size = 0
    for _, _, names, descriptor in os.fwalk(directory):
        for name in names:
            with contextlib.suppress(OSError):  # compilers remove files meanwhile
                size += os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_blocks * 512
    return size


def wait(process, seconds, memory, build):
    """Until the judge has ended. Ends it after its time, and when what compilers write to `build`
    grows too much, or the machine has no memory left; and the sandboxes that it has started when they use too much memory together: no
    limit of a process or a file holds for all of them.
    """
    ended, deadline, next_look = None, time.monotonic() + seconds, 0.0
    least = int(os.environ.get("COURSE_LIMIT_AVAILABLE", LEAST_AVAILABLE))
    disk = int(os.environ.get("COURSE_LIMIT_BUILD", MOST_BUILT))
    try:
        while process.poll() is None:
            if time.monotonic() > deadline:
                return f"not done after {seconds} s, ended"
            if build and time.monotonic() > next_look:
                if bytes_in(build) > disk:
                    return f"the build is larger than {disk / 1e9:g} GB, ended"
                next_look = time.monotonic() + BUILD_SEEN_EVERY
            if available_memory() < least:
                return "the machine was short of memory, so the judge was ended; judge this student alone"
            below = processes_below(process.pid)
            if sum(size for _, _, size in below.values()) > memory:
                ended = f"a program of this day used more than {memory / 1e9:g} GB of memory, and was ended"
                sandboxes = [pid for pid, (_, name, _) in below.items() if name == "timeout"]
                for pid in sandboxes or [pid for pid, (of, _, _) in below.items() if of == process.pid]:
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
            time.sleep(SEEN_EVERY)
        return ended
    finally:
        end(process)


def end(process):
    """Ends the judge and, with it, its sandboxes; without a sandbox it passes SIGTERM on."""
    if process.poll() is None:
        process.terminate()
        time.sleep(0.2)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


# --- The verdicts ---


def judge(student, workspace, exercises, version):
    begin = time.monotonic()
    workspace.clear()
    left_out = HandIn(student.directory, workspace.mine).left_out
    content = hash_of(workspace.mine, left_out)
    misplaced = files_of_no_day(workspace.mine)
    if not workspace.options.trust and os.geteuid() == 0:
        give_to(workspace.user, workspace.build)
    judged = {}
    for day in dict.fromkeys(map(day_of, exercises)):
        verdicts, reason = workspace.judge(day)
        for verdict in verdicts:
            verdict["why"] = readable(verdict["why"])
            judged[verdict["id"]] = verdict
        for exercise in exercises:
            if day_of(exercise) == day and exercise not in judged:
                judged[exercise] = no_verdict(exercise, readable(reason or "the judge did not name it"))
            elif day_of(exercise) == day and reason and judged[exercise]["verdict"] == "not yet":
                judged[exercise]["why"] += f"\n({reason})"
        name_unsolved_before([judged[exercise] for exercise in exercises if day_of(exercise) == day])
    return {
        "student": student.name,
        "content": content,
        "lesson": version,
        "seconds": round(time.monotonic() - begin),
        "exercises": [judged[exercise] for exercise in exercises],
        "left_out": left_out,
        "misplaced": misplaced,
    }


def files_of_no_day(mine):
    """Files that no exercise reads, because their directory has not the name of a day."""
    days = {path.parent.name for path in ROOT.glob("*/exercises.md")}
    files = [path.relative_to(mine) for path in sorted(mine.rglob("*")) if path.is_file()]
    return [str(file) for file in files if file.parts[0] not in days][:MOST_LEFT_OUT]


def name_unsolved_before(verdicts):
    """One mistake in a function that later exercises call fails them all, and one in a file that
    does not compile every exercise of the day: its messages are shown once.
    """
    unsolved, errors = [], {}
    for exercise in verdicts:
        if exercise["verdict"] == "not yet" and exercise["why"].startswith("does not compile"):
            first = errors.setdefault(exercise["why"], exercise["id"])
            if first != exercise["id"]:
                exercise["why"] = f"does not compile: the errors are those of {first}"
        elif exercise["verdict"] == "not yet":
            if unsolved:
                exercise["why"] = exercise["why"].rstrip("\n") + (
                    f"\n\n  Not solved before it: {', '.join(unsolved)}. These tests may run that code, too."
                )
        if exercise["verdict"] in ("not yet", "blank"):
            unsolved.append(exercise["id"])


def not_judged(student, exercises, version, reason):
    return {
        "student": student.name,
        "content": "",
        "lesson": version,
        "seconds": 0,
        "exercises": [no_verdict(exercise, readable(reason)) for exercise in exercises],
        "left_out": [],
    }


def no_verdict(exercise, reason):
    return {"id": exercise, "verdict": "not judged", "tests": 0, "stars": 0, "counts": [], "why": reason}


def readable(text):
    """The student's own names of files, and no characters that a terminal obeys."""
    text = text.replace(f"{MINE}/", "my/").replace("build/grade/my/", "my/").replace(f"{ROOT}/", "")
    return "".join(c if c == "\n" or c.isprintable() else f"\\x{ord(c):02x}" for c in text.expandtabs(4))


def count(result, verdict):
    return sum(exercise["verdict"] == verdict for exercise in result["exercises"])


def is_solved(result):
    return count(result, "solved") == len(result["exercises"])


def stars(result):
    return sum(exercise["stars"] for exercise in result["exercises"])


def line_of(result):
    name = readable(result["student"]).replace("\n", "\\n")
    text = f"{name}: {count(result, 'solved')} of {len(result['exercises'])} solved, {stars(result)} stars"
    for verdict in ("not yet", "blank", "cannot run", "not judged"):
        if count(result, verdict):
            text += f", {count(result, verdict)} {verdict}"
    if result.get("misplaced") and count(result, "blank") == len(result["exercises"]):
        text += f", files of no exercise: {len(result['misplaced'])}"
    return text


# --- Pages, tables and files ---


def escaped(text):
    """For a line of Markdown."""
    return re.sub(r"([\\`*_{}\[\]()#+.!|<>&~-])", r"\\\1", readable(text).replace("\n", "\\n"))


def page_of(result):
    lines = [
        f"# {escaped(result['student'])}",
        "",
        f"{count(result, 'solved')} of {len(result['exercises'])} exercises solved, {stars(result)} stars, "
        f"judged in {result['seconds']} s.",
        f"Lesson {result['lesson']}, hand-in {result['content'][:16]}.",
        "",
        "| exercise | verdict | tests | stars |",
        "|---|---|---|---|",
    ]
    for exercise in result["exercises"]:
        lines.append(
            f"| {exercise['id']} | {exercise['verdict']} | {exercise['tests'] or ''} | {exercise['stars'] or ''} |"
        )
    if result["left_out"]:
        lines += ["", "## Not judged"]
        lines += [""] + [f"- {escaped(name)}: {reason}" for name, reason in result["left_out"]]
    if result.get("misplaced"):
        lines += ["", "## Of no exercise", "", "Expected my/DAY/FILE, as `./course next` makes them."]
        lines += [""] + [f"- {escaped(name)}" for name in result["misplaced"]]
    for exercise in result["exercises"]:
        details = exercise["counts"] + exercise["why"].strip("\n").splitlines()
        if details:  # indented by four spaces, nothing in it is Markdown
            lines += ["", f"## {exercise['id']}: {exercise['verdict']}", ""]
            lines += ["    " + line for text in details for line in readable(text).splitlines()]
    return "\n".join(lines) + "\n"


def print_table(results):
    names = [readable(result["student"]).replace("\n", "\\n") for result in results]
    width = max(len("student"), *map(len, names))
    print(f"\n{'student':{width}}  solved  not yet  blank  other  stars  seconds")
    for name, result in zip(names, results):
        other = count(result, "cannot run") + count(result, "not judged")
        print(
            f"{name:{width}}  {count(result, 'solved'):6}  {count(result, 'not yet'):7}  {count(result, 'blank'):5}"
            f"  {other:5}  {stars(result):5}  {result['seconds']:7}"
        )
    print(
        f"{sum(map(is_solved, results))} of {len(results)} students solved all of {len(results[0]['exercises'])} exercises"
    )


PLACE = re.compile(r"my/[^\s:]+:\d+")  # a line of the student's files


def in_a_line(why):
    """The first two lines that say something (not "this one fails:", and no test's name), and the
    next two that name a line of the student's.
    """
    lines = [line.strip() for line in why.splitlines()]
    said = [line for line in lines if line and not line.endswith((" fails:", " fail:"))]
    said = [line for line in said if " " in line] or said
    return "; ".join(said[:2] + [line for line in said[2:] if PLACE.search(line)][:2])


def place_in(why):
    place = PLACE.search(why)
    return place.group() if place else ""


def write_csv(file, results):
    def cell(text):  # no spreadsheet takes it for a formula
        return "'" + text if text[:1] in ("=", "+", "-", "@") else text

    with open(file, "w", newline="", encoding="utf-8") as out:
        rows = csv.writer(out)
        rows.writerow(["student", "exercise", "verdict", "tests", "stars", "where", "why"])
        for result in results:
            for exercise in result["exercises"]:
                rows.writerow(
                    [
                        cell(readable(result["student"])),
                        exercise["id"],
                        exercise["verdict"],
                        exercise["tests"],
                        exercise["stars"],
                        cell(place_in(exercise["why"])),
                        cell(in_a_line(exercise["why"])),
                    ]
                )


def gradescope(result):
    """The results.json of Gradescope's autograders: a point for each exercise that is solved."""
    tests = [
        {
            "name": exercise["id"],
            "score": int(exercise["verdict"] == "solved"),
            "max_score": 1,
            "status": "passed" if exercise["verdict"] == "solved" else "failed",
            "output": "\n".join([exercise["verdict"], *exercise["counts"], exercise["why"]]).strip(),
            "output_format": "text",
        }
        for exercise in result["exercises"]
    ]
    return {
        "execution_time": result["seconds"],
        "output": line_of(result),
        "output_format": "text",
        "tests": tests,
    }


def write_json(file, value):
    """All of it or nothing: a run may be ended at any time."""
    path = pathlib.Path(file)
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(json.dumps(value, indent=2, ensure_ascii=True) + "\n")
    temporary.replace(path)


def earlier_result(student, options, exercises, version):
    """Of a run before this one, if neither the hand-in nor the lesson has changed."""
    if options.again:
        return None
    try:
        result = json.loads((options.out / (student.file + ".json")).read_text())
        with tempfile.TemporaryDirectory(dir=GRADE) as copy:
            left_out = HandIn(student.directory, pathlib.Path(copy, "my")).left_out
            content = hash_of(pathlib.Path(copy, "my"), left_out)
        same = (result["content"], result["lesson"]) == (content, version)
        same &= [exercise["id"] for exercise in result["exercises"]] == exercises
        return result if same and count(result, "not judged") == 0 else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def grade_all(students, exercises, version, options):
    workspaces = [Workspace(number, options) for number in range(options.jobs)]
    free, lock = list(workspaces), threading.Lock()

    def grade(student):
        result = None if student.refused else earlier_result(student, options, exercises, version)
        if result:
            print(f"{line_of(result)} (as before)", flush=True)
            return result
        with lock:
            workspace = free.pop()
        try:
            if student.refused:
                result = not_judged(student, exercises, version, student.refused)
            else:
                say(f"judging {readable(student.name)!r}")  # which takes minutes
                result = judge(student, workspace, exercises, version)
        except Exception as error:  # whatever it is: the next student is judged
            traceback.print_exc()
            result = not_judged(student, exercises, version, f"{type(error).__name__}: {error}")
        finally:
            with lock:
                free.append(workspace)
        (options.out / (student.file + ".md")).write_text(page_of(result), errors="replace")
        write_json(options.out / (student.file + ".json"), result)
        print(f"{line_of(result)}, {result['seconds']} s", flush=True)
        return result

    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    try:
        return list(pool.map(grade, students))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for workspace in workspaces:  # after Ctrl-C students are still being judged
            if workspace.process:
                end(workspace.process)
            shutil.rmtree(workspace.directory, ignore_errors=True)


def lock(files, name, kind):
    file = files.enter_context(open(BUILD / f"{name}.lock", "a+"))
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"waiting for another ./course, which holds build/{name}.lock")
        fcntl.flock(file, kind)
    return file


@contextlib.contextmanager
def prepared_builds(exercises, versions, options):
    """Several ./course grade may judge hand-ins at a time, from the same builds, but nothing may
    change these meanwhile. With --trust all hand-ins are judged in one place.
    """
    with contextlib.ExitStack() as files:
        alone = options.trust or unprepared(versions)[0] or presets_for_others()
        file = lock(files, "grade", fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        if alone:
            prepare(exercises, versions)
        if not options.trust:
            fcntl.flock(file, fcntl.LOCK_SH)
            for name in ("check", *PRESETS):
                lock(files, name, fcntl.LOCK_SH)
        yield


def positive(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"it is '{text}'; expected a whole number from 1 on")
    return int(text)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="./course grade",
        description="Judges what students handed in, each in a sandbox, and writes a page for each.",
        epilog="exit codes: 0 all is solved, 1 it is not, 2 wrong usage or no sandbox, 3 the build failed, "
        "4 an error of this program",
    )
    parser.add_argument("dirs", nargs="+", metavar="DIR", help="the my/ of one student")
    parser.add_argument("--days", type=lambda text: text.split(","), help="day05,day15; without it every day")
    parser.add_argument(
        "--jobs", type=positive, default=1, metavar="N", help="students at a time, 64 at most"
    )
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        default=pathlib.Path("grades"),
        metavar="DIR",
        help="of results and pages; grades/",
    )
    parser.add_argument("--json", metavar="FILE", help="all verdicts")
    parser.add_argument("--csv", metavar="FILE", help="a line for each student and exercise")
    parser.add_argument("--gradescope", metavar="FILE", help="results.json of one student, for Gradescope")
    parser.add_argument(
        "--again", action="store_true", help="also those who have not changed anything since they were judged"
    )
    parser.add_argument(
        "--memory", type=positive, default=8, metavar="GB", help="of all processes of a student together; 8"
    )
    parser.add_argument(
        "--seconds", type=positive, default=3600, metavar="N", help="for a day of a student; 3600"
    )
    parser.add_argument(
        "--trust", action="store_true", help="without a sandbox: what was handed in runs with your rights"
    )
    options = parser.parse_args(arguments)
    if options.gradescope and len(options.dirs) > 1:
        raise Problem(
            f"--gradescope: there are {len(options.dirs)} directories; expected that of one student"
        )
    if options.jobs > 64:
        raise Problem(f"--jobs is {options.jobs}; expected 64 at most")
    if options.trust and options.jobs > 1:
        raise Problem(f"--jobs is {options.jobs}; expected 1 with --trust, where all share one build")
    return options


def main():
    options = parse(sys.argv[1:])
    students = students_of(options.dirs)
    if not options.trust:
        require_sandbox(options.jobs)
    exercises = exercises_of(options.days)
    options.out.mkdir(parents=True, exist_ok=True)
    versions = versions_of(dict.fromkeys(map(day_of, exercises)))
    version = hash_of_files(versions, pathlib.Path(__file__), SANDBOX, SANDBOX_START)[:16]
    with prepared_builds(exercises, versions, options):
        results = grade_all(students, exercises, version, options)
    print_table(results)
    print(f"A page for each: {options.out}/")
    if options.json:
        write_json(options.json, results)
    if options.gradescope:
        write_json(options.gradescope, gradescope(results[0]))
    if options.csv:
        write_csv(options.csv, results)
    return 0 if all(map(is_solved, results)) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        sys.exit(main())
    except Problem as problem:
        say(problem)
        sys.exit(problem.code)
    except Exception:
        traceback.print_exc()
        sys.exit(UNEXPECTED)  # Python's own code would be 1: not all is solved
    except KeyboardInterrupt:
        say("interrupted; a second run goes on after the last student that was judged")
        os._exit(128 + signal.SIGINT)  # without waiting for the students that are being judged
