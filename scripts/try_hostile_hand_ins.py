#!/usr/bin/env python3
"""Hands in what attacks the machine that judges it: `./course grade` must come through, and judge
the students after it.

    scripts/try_hostile_hand_ins.py               all of tools/course/test/hostile
    scripts/try_hostile_hand_ins.py forges ...    these

Each file there is added to a right answer to day01/one_per_element. Its first lines are comments:

    // What it tries.
    // expect: a regular expression, which the verdict and the reason begin with
    // base: wrong               the answer that it is added to is wrong
    // fifo: pipe.h              there is such a FIFO beside it
    // compile seconds: 20       the limit of the compiler

@ROOT@ is the checkout, @SECRET@ a file to read, @VICTIM@ one to delete, @PORT@ where somebody
listens, @SLEEP@ what processes are known by. The last line is "N passed, N failed, N skipped".
Exit code 1 when one failed. Without the sandbox all are skipped.
"""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ATTACKS = ROOT / "tools" / "course" / "test" / "hostile"
EXERCISE, FILE = "day01/one_per_element", "day01_vector_add/vector_add.cuh"
SLEEP = "98765.4321"


def setting(text, name):
    found = re.search(rf"^// {name}: (.*)$", text, re.MULTILINE)
    return found.group(1) if found else None


def solution(directory):
    subprocess.run(
        [ROOT / "course", "solution", EXERCISE, "--force", "--paste"],
        env=dict(os.environ, COURSE_MY=str(directory)),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return pathlib.Path(directory, FILE).read_text()


def hand_in(directory, name, text, fifo=None):
    file = pathlib.Path(directory, name, FILE)
    file.parent.mkdir(parents=True)
    file.write_text(text)
    if fifo:
        os.mkfifo(file.parent / fifo)


def everything_in(directory):
    """Names, times and contents."""
    files = sorted(pathlib.Path(directory).rglob("*"))
    return [(str(f), f.lstat().st_mtime_ns, f.read_bytes() if f.is_file() else b"") for f in files]


def grade(directory, names, seconds):
    """{name: "verdict: reason"}."""
    with tempfile.TemporaryDirectory() as results:
        verdicts = pathlib.Path(results, "verdicts.json")
        subprocess.run(
            [ROOT / "course", "grade", *[pathlib.Path(directory, name) for name in names]]
            + ["--days", "day01", "--memory", "2", "--out", results, "--json", verdicts],
            env=dict(os.environ, COURSE_COMPILE_SECONDS=seconds),
            stdout=subprocess.DEVNULL,
        )
        if not verdicts.exists():
            sys.exit("./course grade wrote no verdicts")
        found = {}
        for result in json.loads(verdicts.read_text()):
            first = result["exercises"][0]
            found[result["student"]] = f"{first['verdict']}: {first['why']}"
        return found


def processes_left():
    left = []
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            left += [directory.name] if SLEEP in (directory / "cmdline").read_text(errors="replace") else []
        except OSError:
            pass
    return left


def main():
    attacks = {file.stem: file.read_text() for file in sorted(ATTACKS.glob("*.cuh"))}
    attacks = {name: attacks[name] for name in sys.argv[1:] or attacks}
    probe = subprocess.run(
        [ROOT / "scripts" / "sandbox.sh", "run", "true"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if probe.returncode != 0:
        print(f"skipped: no sandbox here: {probe.stdout.strip()}\n0 passed, 0 failed, {len(attacks)} skipped")
        return 0
    failures = {}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as work, socket.create_server(
        ("127.0.0.1", 0)
    ) as server:
        secret, victim, directory = (pathlib.Path(work, name) for name in ("secret", "victim", "hand_ins"))
        secret.write_text("a secret\n")
        victim.write_text("stays\n")
        for path in (pathlib.Path(work), secret, victim):
            path.chmod(0o777)  # only the sandbox keeps others away
        right = solution(pathlib.Path(work, "right"))
        wrong = right.replace("a[i] + b[i]", "a[i] - b[i]", 1)
        assert wrong != right
        words = {
            "ROOT": ROOT,
            "SECRET": secret,
            "VICTIM": victim,
            "PORT": server.getsockname()[1],
            "SLEEP": SLEEP,
        }
        for name, text in attacks.items():
            for word, value in words.items():
                text = text.replace(f"@{word}@", str(value))
            base = wrong if setting(text, "base") == "wrong" else right
            hand_in(directory, name, base + "\n" + text, setting(text, "fifo"))
        hand_in(directory, "z_right", right)  # they come last
        hand_in(directory, "z_wrong", wrong)
        before = everything_in(directory)
        slow = [name for name in attacks if setting(attacks[name], "compile seconds")]
        found = grade(
            directory, [name for name in attacks if name not in slow] + ["z_right", "z_wrong"], "300"
        )
        for name in slow:
            found.update(grade(directory, [name], setting(attacks[name], "compile seconds")))
        expected = {name: setting(text, "expect") for name, text in attacks.items()}
        expected.update(z_right="solved", z_wrong="not yet")
        for name, pattern in expected.items():
            if not re.match(pattern, found[name], re.DOTALL) or "ATTACK WORKED" in found[name]:
                failures[name] = f"expected '{pattern}', got '{found[name]}'"
            print(
                f"{'FAILED' if name in failures else 'ok'}: {name}{': ' + failures[name] if name in failures else ''}"
            )
        for what, is_harmless in {
            "the victim is deleted": victim.exists(),
            "a hand-in has changed": everything_in(directory) == before,
            f"processes are left: {processes_left()}": not processes_left(),
        }.items():
            if not is_harmless:
                print(f"FAILED: {what}")
                failures[what] = what
    passed = len(expected) - len([name for name in failures if name in expected])
    print(f"{passed} passed, {len(failures)} failed, 0 skipped")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
