#!/usr/bin/env python3
"""Compiles kernels with nvcc for GPUs of several architectures. Needs no GPU: nothing runs.

    scripts/check_architectures.py                        every .cu file of the days, gemm_ladder, bug_hunts and common
    scripts/check_architectures.py --lessons              one file of each of them: the lesson's
    scripts/check_architectures.py day15_reduction        the files of a directory; or single files
    scripts/check_architectures.py --architectures 86,120 --jobs 8
    scripts/check_architectures.py --host --architectures 90    host code, too, of which no object is made

Files with sm_90a's own instructions (course_hopper_library) are compiled for 90a alone, which is
all they can be built for, and only where 90 is one of the architectures. The last line is "N
objects compiled, N failed, N skipped": files times architectures. Exit code 1 when one failed. A
file is skipped for an architecture that this nvcc does not know.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ARCHITECTURES = ["75", "86", "89", "90", "100", "120"]
CODE = re.compile(r"--generate-code=arch=compute_(\w+)\S*")


def run(command, **options):
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options
    )


def configure(build):
    """Without optimisation, where nvcc can: these kernels never run."""
    nvcc = "nvcc" if run(["sh", "-c", "command -v nvcc"]).returncode == 0 else "/usr/local/cuda/bin/nvcc"
    flags = []
    if "--Ofast-compile" in run([nvcc, "--help"]).stdout:
        flags = ["-DCMAKE_CUDA_FLAGS=--Ofast-compile=max -Xptxas=-suppress-stack-size-warning"]
    done = run(
        ["cmake", "--preset", "gpu", "-B", str(build), "-DCMAKE_CUDA_ARCHITECTURES=90", *flags], cwd=ROOT
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\ncheck_architectures.py: {build} cannot be configured")


def sources(build):
    """Each .cu file that nvcc compiles: its path from the root, and the command."""
    commands = json.loads((build / "compile_commands.json").read_text())
    found = {}
    for entry in commands:
        path = pathlib.Path(entry["file"])
        if path.suffix != ".cu" or ROOT not in path.parents or build in path.parents:
            continue
        relative = path.relative_to(ROOT)
        if relative.parts[0] != "cuda_on_cpu" and CODE.search(entry["command"]):
            found[str(relative)] = (entry["command"], entry["directory"])
    if not found:
        sys.exit(
            f"check_architectures.py: {build} compiles no .cu file; expected a build with COURSE_BACKEND=gpu"
        )
    return found


def lessons(found):
    """One file of each directory: the day's <topic>.cu, or the longest."""

    def rank(path):
        directory = path.split("/")[0]
        topic = re.sub(r"^day\d+_", "", directory)
        return path == f"{directory}/{topic}.cu", (ROOT / path).stat().st_size

    chosen = {}
    for path in sorted(found, key=rank):
        chosen[path.split("/")[0]] = path
    chosen.pop("common", None)
    return {path: found[path] for path in chosen.values()}


def selected(found, names):
    chosen = {}
    for name in names:
        name = os.path.relpath(name, ROOT) if os.path.exists(name) else name
        matching = {
            path: found[path] for path in found if path == name or path.startswith(name.rstrip("/") + "/")
        }
        if not matching:
            sys.exit(
                f"check_architectures.py: {name} is no .cu file that nvcc compiles, and no directory with one"
            )
        chosen |= matching
    return chosen


def compile_for(path, command, directory, architectures, host):
    """Compiles a file's kernels for all architectures at once; its host code is checked, if asked for."""
    words = shlex.split(CODE.sub("", command))
    words[words.index("-c")] = "-cuda" if host else "-fatbin"
    with tempfile.TemporaryDirectory() as temporary:
        words[words.index("-o") + 1] = os.path.join(temporary, "made")
        for architecture in architectures:
            words.append(f"--generate-code=arch=compute_{architecture},code=sm_{architecture}")
        begin = time.monotonic()
        done = run(words, cwd=directory)
    return path, architectures, done, time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="files or directories; without them all")
    parser.add_argument("--host", action="store_true", help="check host code, too")
    parser.add_argument("--lessons", action="store_true", help="one file of each directory")
    parser.add_argument(
        "--architectures",
        type=lambda text: text.split(","),
        default=ARCHITECTURES,
        metavar="N,...",
        help=",".join(ARCHITECTURES),
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="files at a time")
    parser.add_argument(
        "--build",
        type=pathlib.Path,
        default=ROOT / "build" / "architectures",
        help="a build directory; configured if it is not yet",
    )
    arguments = parser.parse_args()
    if arguments.jobs < 1:
        parser.error(f"--jobs is {arguments.jobs}; expected at least 1")
    build = arguments.build.resolve()
    if not (build / "compile_commands.json").exists():
        configure(build)
    found = sources(build)
    if arguments.files:
        found = selected(found, arguments.files)
    if arguments.lessons:
        found = lessons(found)

    nvcc = shlex.split(next(iter(found.values()))[0])[0]
    known = run([nvcc, "--list-gpu-arch"]).stdout.split()
    architectures = [each for each in arguments.architectures if f"compute_{each}" in known]
    for each in arguments.architectures:
        if each not in architectures:
            print(f"this nvcc does not know architecture {each}")

    passed = failed = skipped = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        jobs = []
        for path, (command, directory) in sorted(found.items()):
            own = [CODE.search(command)[1]]
            if own[0].endswith("a"):
                wanted = own if own[0][:-1] in architectures else []
            else:
                wanted = architectures
                skipped += len(arguments.architectures) - len(architectures)
            if wanted:
                jobs.append(pool.submit(compile_for, path, command, directory, wanted, arguments.host))
        for job in concurrent.futures.as_completed(jobs):
            path, wanted, done, seconds = job.result()
            if done.returncode == 0:
                passed += len(wanted)
                print(f"{path}: {' '.join(wanted)}, {seconds:.1f} s", flush=True)
                continue
            print(done.stdout)
            bad = wanted
            if len(wanted) > 1:
                bad = [
                    one
                    for one in wanted
                    if compile_for(path, *found[path], [one], arguments.host)[2].returncode != 0
                ]
            passed += len(wanted) - len(bad)
            failed += len(bad)
            print(f"{path}: does not compile for {' '.join(bad)}", flush=True)
    print(f"{passed} objects compiled, {failed} failed, {skipped} skipped")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
