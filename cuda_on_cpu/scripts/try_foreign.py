#!/usr/bin/env python3
"""Builds and runs programs that were not written for it, with the nvcc of cuda_on_cpu, and
prints a table of what came of it.

    try_foreign.py ~/src/pmpp-solutions             every .cu file with a main(), each below this directory
    try_foreign.py -I ~/src/cuda-samples/Common ~/src/cuda-samples/Samples --exclude '*/4_CUDA_Libraries/*'
    try_foreign.py DIRECTORY --projects             directories with a CMakeLists.txt or a Makefile, built as they say
    try_foreign.py DIRECTORY --order both --markdown table.md --json results.json
    try_foreign.py DIRECTORY --nvcc-option=--inspect --order both      what an inspection finds in them
    try_foreign.py DIRECTORY --only P2P --set CUDA_ON_CPU_DEVICES=2    programs that ask for a second GPU

A program is a source with a main(). It is compiled alone; where the linker then misses a function,
together with the sources without a main() beside it, and those beside the headers that it includes.
Modules that it loads ("name64.fatbin", "name.ptx") are made of name.cu beside it. It runs in a copy
of its directory, without arguments or with those of --arguments. A directory's inc, include,
common, Common and utils, and those of the directories above it up to the one given, are searched
for headers.

What came of a program is one of
    verified    it ended with exit code 0 and says that its results are right
    ran         it ended with exit code 0 and says nothing of them
    wrong       it says that its results are wrong
    nan         it prints NaN
    found       its inspection has findings, which are named; otherwise it has ended as one of the above
    reported    the stand-in has reported a mistake of the program, or something that it does not have
    exit        another exit code
    usage       it wants arguments or files that it was not given
    crash       a signal ended it
    time limit  it was still running: the stand-in has said where, or the program was busy and no kernel alone took that long
    silent      it was still running, has done nothing, and nothing has been said
    needs       it needs a library or a header that is not there
    refused     it does not compile or link
    slow build  the compiler was still running
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

COURSE = pathlib.Path(__file__).resolve().parent.parent.parent  # in a checkout of it
SOURCES = {".cu", ".cpp", ".cc", ".cxx", ".c"}
HELPER_DIRECTORIES = ("inc", "include", "common", "Common", "utils")
CLASSES = (
    "verified",
    "ran",
    "wrong",
    "nan",
    "found",
    "reported",
    "exit",
    "usage",
    "crash",
    "time limit",
    "silent",
    "needs",
    "refused",
    "slow build",
)
BUILDS = CLASSES[: CLASSES.index("needs")]
COPIED_BYTES = 64 << 20  # of data files beside a program
OUTPUT_BYTES = 1 << 20

# A library that a program needs, by a part of the name of a header or of the library.
NEEDS = (
    (r"cublasLt", "cuBLASLt"),
    (r"cublasXt", "cuBLASXt"),
    (r"cublas", "cuBLAS"),
    (r"curand", "cuRAND"),
    (r"cufft", "cuFFT"),
    (r"cusparse", "cuSPARSE"),
    (r"cusolver", "cuSOLVER"),
    (r"cudnn", "cuDNN"),
    (r"nvrtc", "NVRTC"),
    (r"nvjpeg", "nvJPEG"),
    (r"nvjitlink", "nvJitLink"),
    (r"nvvm", "libNVVM"),
    (r"npp", "NPP"),
    (r"nvgraph", "nvGRAPH"),
    (r"nccl", "NCCL"),
    (r"nvshmem", "NVSHMEM"),
    (r"nvml", "NVML"),
    (r"cupti", "CUPTI"),
    (r"nvbench", "NVBench"),
    (r"nvtx|nvToolsExt", "NVTX"),
    (r"cudaProfiler", "CUDA profiler"),
    (r"cudla", "cuDLA"),
    (r"nvsci|nvmedia", "NvSci"),
    (r"^(cutlass|cute)/", "CUTLASS"),
    (r"^torch/|^ATen/|^c10/", "PyTorch"),
    (r"^pybind11", "pybind11"),
    (r"^Python\.h", "Python"),
    (r"^thrust/", "Thrust"),
    (r"^cub/", "CUB"),
    (r"^cuda/std|^cuda/|^nv/", "libcu++"),
    (r"^cooperative_groups", "cooperative groups"),
    (r"opencv", "OpenCV"),
    (r"^mpi\.h", "MPI"),
    (r"FreeImage", "FreeImage"),
    (r"vulkan", "Vulkan"),
    (r"^(GL|GLES|EGL)/|^GL|glut|glew|glfw|^X11|^SDL|helper_gl", "OpenGL"),
    (r"^d3d|^DirectX|^windows\.h|^dxgi", "Windows"),
    (r"^gtest/", "GoogleTest"),
    (r"^Eigen/", "Eigen"),
    (r"^openacc", "OpenACC"),
)

# What a program says of its own results. A match of RIGHT counts only where nothing is WRONG.
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
NOT_WRONG = re.compile(
    r"\b(?:no|0|zero|without(?: any)?) (?:errors?|mismatch(?:es)?|failures?|differences?)\b"
    r"|\b(?:errors?|mismatch(?:es)?|fail(?:ed|ures?)?|wrong|incorrect)\s*(?:count|found|detected|elements?)?\s*[:=]\s*0+(?:\.0*)?(?:[eE][-+]?\d+)?(?![\d.])"
    r"|\bnot? (?:failed|wrong|incorrect)\b|\bfailed as expected\b|(?P<empty>\berror[- ]check|\bif (?:it )?fail(?:s|ed)?)",
    re.IGNORECASE,
)
WRONG = re.compile(
    r"\bFAIL(?:ED|URE|S)?\b|\bmis-?match(?:es|ed)?\b|\bincorrect\b|\bwrong\b|\binvalid results?\b|\bverification error\b"
    r"|\b(?:do(?:es)?|did|is|are) ?n[o']t? (?:match|agree|equal|correct|the same|verif)|\bnot (?:equal|match|correct|identical)\b"
    r"|\b(?:match|correct|verified|equal|pass(?:ed)?|success)\w*\s*[:=?]\s*(?:no|false|0)\b"
    r"|\bresults? differ\b|\bverification: *error|[✗✘❌]",
    re.IGNORECASE,
)
RIGHT = re.compile(
    r"\bPASS(?:ED|ES)?\b|\bsuccess(?:ful(?:ly)?)?\b|\bcorrect(?:ly)?\b|\bverified\b|\bvalid(?:ated)?\b|\bresults? (?:are )?(?:match|agree|ok|equal)"
    r"|\bmatch(?:es|ed)?\b|\bidentical\b|\btest ok\b|\bOK\b|\ball (?:tests )?good\b|[✓✔✅]",
    re.IGNORECASE,
)
DIFFERENCE = re.compile(
    r"\b(?:error|diff(?:erence)?|deviation|delta|rmse|l2(?! cache))\b[^\n\d+-]{0,30}?[:=]\s*(" + NUMBER + r"|-?nan)",
    re.IGNORECASE,
)
NAN = re.compile(r"(?<![\w.])[-+]?nan(?:\(\w*\))?(?![\w.])", re.IGNORECASE)
CUDA_ERROR = re.compile(
    r"\bcudaError\w+|\bCUDA (?:runtime |driver )?error\b|illegal memory access|unspecified launch failure|invalid argument"
    r"|invalid device function|not supported",
    re.IGNORECASE,
)
USAGE = re.compile(
    r"^\s*usage\b|\busage:|cannot open|can't open|could not open|failed to open|unable to open|error opening|no such file|"
    r"(?:missing|too few|wrong number of|expected).{0,20}arguments?|file not found|could not (?:load|read|find)|cannot (?:load|read|find)|"
    r"please (?:provide|specify|enter)|\bneed run \./|\brun \./\S+ <|failed to (?:load|read)",
    re.IGNORECASE | re.MULTILINE,
)
# What the stand-in says, but for what is no mistake: a name of older versions, or where a slow kernel is.
STAND_IN = re.compile(r"^cuda_on_cpu: (?!inspect)(.*)$", re.MULTILINE)
NOTE = re.compile(
    r"^cuda_on_cpu: [^\n]*(?:CUDA 13 has this no more|: still running after \d+ s,)[^\n]*$", re.MULTILINE
)
FINDING = re.compile(r"^\s+FINDING (\w+) \(\d+\):", re.MULTILINE)
MAIN = re.compile(
    r"(?:^|[;}\s])(?:int|void|auto|signed)\s+(?:__cdecl\s+|CUDARTAPI\s+)?main\s*\(|^\s*main\s*\(",
    re.MULTILINE,
)


# A module that a program loads: the name of its file, that of its source, and nvcc's option.
MODULE = re.compile(r'"((\w+?)(?:64)?\.(fatbin|ptx|cubin))"')


def without_comments(text):
    """C++ without comments and the insides of string literals."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    return pattern.sub(lambda m: '""' if m[0][0] == '"' else " ", text)


def has_main(text):
    """Is there a definition of main()?"""
    code = without_comments(text)
    for match in MAIN.finditer(code):
        depth, at = 1, match.end()
        while at < len(code) and depth:
            depth += {"(": 1, ")": -1}.get(code[at], 0)
            at += 1
        if re.match(r"\s*(?:try\s*)?\{", code[at:]):
            return True
    return False


def included(text):
    """The names in its #include directives."""
    return re.findall(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', text, re.MULTILINE)


def library_of(name):
    """What provides a header or a library of that name; None where that is not known."""
    for pattern, library in NEEDS:
        if re.search(pattern, name, re.IGNORECASE if pattern.islower() else 0):
            return library
    return None


def first_error(log):
    """The first line of a compiler's output that says what is wrong, without the directory it stands in."""
    for pattern in (
        r"(?:fatal )?error\s*:|nvcc fatal|undefined reference|multiple definition|cannot find -l|\*\*\*|CMake Error",
        r"\berror\b",
    ):
        for line in log.splitlines():
            if re.search(pattern, line):
                return shortened(re.sub(r"(?:\.{0,2}/)?(?:[^\s:'\"/]+/)+(?=[^\s:/]+)", "", line))
    lines = [line for line in log.splitlines() if line.strip()]
    return shortened(lines[-1]) if lines else "no message"


def shortened(line, width=160):
    line = " ".join(line.split())
    return line if len(line) <= width else line[: width - 3] + "..."


def classify_build(log):
    """Of a build that failed: its class and the reason."""
    header = re.search(r"fatal error: ([^\s:]+): No such file|cannot open source file \"([^\"]+)\"", log)
    if header:
        name = header[1] or header[2]
        return "needs", library_of(name) or name
    library = re.search(r"'-l(\w+)'|cannot find -l(\w+)|cannot find (?:-l)?lib(\w+)", log)
    if library:
        name = next(group for group in library.groups() if group)
        return "needs", library_of(name) or f"lib{name}"
    package = re.search(
        r"Could not find a package configuration file provided by\s+\"(\w+)\"|Could NOT find (\w+)", log
    )
    if package:
        name = package[1] or package[2]
        return "needs", library_of(name) or name
    return "refused", first_error(log)


def first_match(pattern, text):
    """The whole line of the first match, shortened; None without one."""
    match = pattern.search(text)
    if match is None:
        return None
    begin = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    return shortened(text[begin : end if end >= 0 else len(text)])


def verdict(text):
    """What a program says of its results: ("verified" | "ran" | "wrong" | "nan", reason)."""
    said = NOT_WRONG.sub(lambda match: " " if match["empty"] else " correct ", text)
    line = first_match(WRONG, said)
    if line is not None:
        return "wrong", line
    line = first_match(NAN, text)
    if line is not None:
        return "nan", line
    if RIGHT.search(said):
        return "verified", ""
    differences = [abs(float(value)) for value in DIFFERENCE.findall(text)]
    if differences:
        return (
            ("verified", "")
            if max(differences) <= 1e-2
            else ("ran", f"largest difference that it prints: {max(differences):g}")
        )
    return "ran", ""


def classify_run(output, exit_code, timed_out, busy_share=0.0):
    """Of a program that has run: its class and the reason. `exit_code` as subprocess has it: -n for
    signal n. `busy_share`: CPU time per second, of one that ran out of time.
    """
    report = STAND_IN.search(output if timed_out else NOTE.sub("", output))
    reported = shortened(report[1]) if report else None
    if timed_out:
        if reported:
            return "time limit", reported
        return (
            ("time limit", "busy; host code, or many kernels")
            if busy_share > 0.3
            else ("silent", "it waits, and nothing is said")
        )
    names = {item.value: item.name for item in signal.Signals}
    number = -exit_code if exit_code < 0 else exit_code - 128
    if exit_code < 0 or number in names:  # a program that ends with -1 has 255, which is no signal's
        last = next((shortened(line) for line in reversed(output.splitlines()) if line.strip()), "")
        if number == signal.SIGABRT and "Assertion" in output and not reported:
            return "wrong", first_match(re.compile("Assertion"), output)
        return "crash", f"{names.get(number, number)}: {reported or last}".rstrip(": ")
    findings = sorted(set(FINDING.findall(output)))
    if findings:
        return "found", ", ".join(findings)
    kind, reason = verdict(STAND_IN.sub("", output))
    if reported and kind != "verified":
        return "reported", reported
    if exit_code == 0 and kind == "ran" and re.match(r"\s*usage\b", output, re.IGNORECASE):
        return "usage", first_match(USAGE, output)
    if exit_code == 0:
        return (kind, reason) if not reported else ("verified", f"although: {reported}")
    usage = first_match(USAGE, output)
    if usage is not None:
        return "usage", usage
    if kind in ("wrong", "nan"):
        return kind, reason
    if reported:
        return "reported", reported
    last = next((shortened(line) for line in reversed(output.splitlines()) if line.strip()), "")
    return "exit", f"exit code {exit_code}: {first_match(CUDA_ERROR, output) or last}".rstrip(": ")


class Program:
    """A source with a main(), and what may belong to it."""

    def __init__(self, root, main, neighbours):
        self.root = root
        self.main = main
        self.neighbours = neighbours  # sources without a main() beside it
        self.name = str(main.relative_to(root))
        self.directory = main.parent

    def include_directories(self):
        found = []
        directory = self.directory
        while True:
            found += [directory / name for name in HELPER_DIRECTORIES if (directory / name).is_dir()]
            if directory != self.directory:
                found.append(directory)
            if directory == self.root or directory.parent == directory:
                return found
            directory = directory.parent

    def headers(self, directories):
        """The names that it includes, also by its own headers, and the files of those that were found."""
        names, files, left = set(), [], [self.main, *self.neighbours]
        while left:
            file = left.pop()
            for name in included(read(file)):
                if name not in names:
                    names.add(name)
                    found = [
                        path
                        for path in [file.parent / name, *(directory / name for directory in directories)]
                        if path.is_file()
                    ][:1]
                    left += found
                    files += found
        return names, files

    def sources_of_headers(self, directories):
        """Sources without a main() beside a header in another directory, of the same name: helpers
        that programs share.
        """
        _, files = self.headers([*directories, *self.include_directories()])
        sources = [
            file.with_suffix(suffix)
            for file in files
            for suffix in sorted(SOURCES)
            if file.parent != self.directory
        ]
        return [source for source in sources if source.is_file() and not has_main(read(source))]

    def libraries(self):
        names, _ = self.headers(self.include_directories())
        wanted = {
            "cublas": "cublas_v2.h cublas.h",
            "cublasLt": "cublasLt.h",
            "curand": "curand.h",
            "cufft": "cufft.h",
            "cusparse": "cusparse.h cusparse_v2.h",
            "cusolver": "cusolverDn.h cusolverSp.h",
            "cuda": "cuda.h cudaTypedefs.h",
            "nvrtc": "nvrtc.h nvrtc_helper.h",
            "cudnn": "cudnn.h",
            "nccl": "nccl.h",
            "nppc": "npp.h",
            "gomp": "omp.h",
        }
        return [
            "-l" + library
            for library, headers in wanted.items()
            if any(header in names for header in headers.split())
        ]


def read(path):
    return path.read_text(errors="replace")


def find_programs(root, options):
    """Each source with a main() below `root` that is CUDA, or has CUDA beside it."""
    directories = collections.defaultdict(list)
    for path in sorted(root.rglob("*")):
        if path.suffix in SOURCES and path.is_file() and ".git" not in path.parts:
            directories[path.parent].append(path)
    programs = []
    for directory, files in directories.items():
        if not any(path.suffix == ".cu" for path in files):
            continue
        texts = {path: read(path) for path in files}
        is_part = {pathlib.PurePath(name).name for text in texts.values() for name in included(text)}
        mains = [path for path in files if has_main(texts[path])]
        others = [path for path in files if path not in mains and path.name not in is_part]
        for main in mains:
            if main.suffix != ".cu" and not any(path.suffix == ".cu" for path in others):
                continue
            program = Program(root, main, others)
            if is_chosen(program.name, options):
                programs.append(program)
    return programs


def is_chosen(name, options):
    if any(
        fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch("/" + name, pattern) for pattern in options.exclude
    ):
        return False
    return not options.only or re.search(options.only, name) is not None


def find_projects(root, options):
    """Directories with a CMakeLists.txt or a Makefile that have .cu files in them."""
    found = []
    for path in sorted(root.rglob("*")):
        if path.name not in ("CMakeLists.txt", "Makefile", "makefile") or any(
            path.parent.is_relative_to(other) for other in found
        ):
            continue
        text = read(path)
        is_project = path.name != "CMakeLists.txt" or re.search(
            r"^\s*project\s*\(", text, re.MULTILINE | re.IGNORECASE
        )
        if (
            is_project
            and any(path.parent.rglob("*.cu"))
            and is_chosen(str(path.parent.relative_to(root)), options)
        ):
            found.append(path.parent)
    return found


class Outcome:
    def __init__(self, exit_code, output, timed_out, seconds, busy_seconds=0.0):
        self.busy_seconds = busy_seconds  # of CPU time, when it was ended
        self.exit_code = exit_code
        self.output = output
        self.timed_out = timed_out
        self.seconds = seconds


def cpu_seconds(process):
    """That a process has used, without its children."""
    try:
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_runnable(process):
    """Does one of its threads run, or want to?"""
    try:
        return any(
            task.read_text().rpartition(")")[2].split()[0] == "R"
            for task in pathlib.Path(f"/proc/{process}/task").glob("*/stat")
        )
    except OSError:
        return False


def run(command, directory, seconds, environment=None, memory=None, patience=1.0):
    """Runs a command, and ends it and all its children after `seconds`; on a machine that is busy
    with other work, where it has had less processor time than that, after `patience` times as many.
    """

    def limit():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))

    begin = time.monotonic()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=limit,
            env={**os.environ, **(environment or {})},
        )
        timed_out = False
        busy = 0.0
        try:
            while process.poll() is None:
                now = time.monotonic()
                if now > begin + seconds and cpu_seconds(process.pid) < seconds and is_runnable(process.pid):
                    left = begin + seconds * patience - now
                else:
                    left = begin + seconds - now
                if left <= 0 or os.fstat(log.fileno()).st_size > 64 * OUTPUT_BYTES:
                    timed_out = True
                    # On a machine that is busy with other work it may have had little time, and want more.
                    busy = seconds if is_runnable(process.pid) else cpu_seconds(process.pid)
                    break
                try:
                    process.wait(min(left, 0.5))
                except subprocess.TimeoutExpired:
                    pass
        finally:
            try:
                os.killpg(
                    process.pid, signal.SIGKILL
                )  # of this session alone: it was started for the command
            except ProcessLookupError:
                pass
            process.wait()
        log.seek(0)
        output = log.read(OUTPUT_BYTES)
        size = os.fstat(log.fileno()).st_size
        if size > OUTPUT_BYTES:
            log.seek(max(OUTPUT_BYTES, size - OUTPUT_BYTES))
            output += log.read(OUTPUT_BYTES)
    return Outcome(
        process.returncode, output.decode(errors="replace"), timed_out, time.monotonic() - begin, busy
    )


def copy_data(source, target, without=frozenset(SOURCES)):
    """What a program may read beside itself, up to a size."""
    left = COPIED_BYTES
    for path in sorted(source.rglob("*")):
        if (
            not path.is_file()
            or path.is_symlink()
            or path.suffix in {".o", ".a", *without}
            or ".git" in path.parts
        ):
            continue
        size = path.stat().st_size
        to = target / path.relative_to(source)
        if size > left or to.exists():  # some authors keep the programs that they have made
            continue
        left -= size
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)


def arguments_of(name, options):
    """The lists of arguments that a program runs with."""
    found = [
        shlex.split(arguments)
        for pattern, arguments in options.arguments
        if fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch("/" + name, pattern)
    ]
    return found or [[]]


def run_all(program, name, scratch, options):
    """Runs a program with each of its arguments in each order. The worst that came of it: (class,
    reason, seconds).
    """
    worst = None
    for arguments in arguments_of(name, options):
        for order in options.orders:
            environment = {
                "CUDA_ON_CPU_ORDER": order,
                "CUDA_ON_CPU_BLOCKS": order,
                "CUDA_ON_CPU_NOTICE": str(max(1, int(options.run_limit * 0.6))),
                **options.environment,
            }
            outcome = run(
                [program, *arguments],
                scratch,
                options.run_limit,
                environment,
                int(options.memory * (1 << 30)),
                options.patience,
            )
            kind, reason = classify_run(
                outcome.output, outcome.exit_code, outcome.timed_out, outcome.busy_seconds / outcome.seconds
            )
            told = " ".join(arguments + ([order] if len(options.orders) > 1 else []))
            result = (
                kind,
                f"{told}: {reason}" if told and kind not in ("verified", "ran") else reason,
                outcome.seconds,
            )
            if worst is None or CLASSES.index(kind) > CLASSES.index(worst[0]):
                worst = result
    return worst


def compile_program(program, scratch, options):
    """(path of the program, or None; log; timed out)"""
    made = scratch / program.main.stem
    command = [options.nvcc, *options.nvcc_options, "-o", made]
    for directory in [*options.include, *program.include_directories()]:
        command += ["-I", directory]
    alone = [program.main] if program.main.suffix == ".cu" else [program.main, *program.neighbours]
    outcome = run(command + alone + program.libraries(), program.directory, options.build_limit)
    helpers = program.sources_of_headers(options.include)
    for more in (program.neighbours, helpers, [*program.neighbours, *helpers]):
        if outcome.exit_code == 0 or outcome.timed_out or "undefined reference" not in outcome.output:
            break
        if more:
            outcome = run(
                command + [program.main, *more] + program.libraries(), program.directory, options.build_limit
            )
    return (made if outcome.exit_code == 0 else None), outcome


def make_modules(program, scratch, options):
    """The modules that a program of the driver API loads by name, of the .cu files beside it; the
    log of one that does not compile.
    """
    texts = [read(path) for path in [program.main, *program.neighbours]]
    for name, stem, kind in sorted({match for text in texts for match in MODULE.findall(text)}):
        source = program.directory / (stem + ".cu")
        if not source.is_file():
            continue
        command = [options.nvcc, *options.nvcc_options, "-" + kind, "-o", scratch / name, source]
        for directory in [*options.include, *program.include_directories()]:
            command += ["-I", directory]
        outcome = run(command, program.directory, options.build_limit)
        if outcome.exit_code != 0:
            return outcome.output
    return None


def copy_toolkit_headers(program, scratch, options):
    """The headers of the toolkit that a CMakeLists.txt copies beside its program, where that looks
    for them to hand them to NVRTC.
    """
    file = program.directory / "CMakeLists.txt"
    for name in re.findall(r"\$\{CUDA\w*INCLUDE_DIRS?\}/([\w./]+\.h)", read(file) if file.is_file() else ""):
        header = pathlib.Path(options.nvcc).parent.parent / "include" / name
        if header.is_file():
            shutil.copyfile(header, scratch / header.name)


def result_of(root, name, kind, reason, build_seconds, run_seconds=0.0):
    return {
        "directory": root.name,
        "program": name,
        "class": kind,
        "reason": reason,
        "build_seconds": round(build_seconds, 1),
        "run_seconds": round(run_seconds, 1),
    }


def try_program(program, options):
    with tempfile.TemporaryDirectory(prefix="try_foreign_") as directory:
        scratch = pathlib.Path(directory)
        made, outcome = compile_program(program, scratch, options)
        if made is None:
            kind, reason = (
                ("slow build", f"after {options.build_limit:g} s")
                if outcome.timed_out
                else classify_build(outcome.output)
            )
            return [result_of(program.root, program.name, kind, reason, outcome.seconds)]
        log = make_modules(program, scratch, options)
        if log is not None:
            return [result_of(program.root, program.name, *classify_build(log), outcome.seconds)]
        copy_toolkit_headers(program, scratch, options)
        copy_data(program.directory, scratch, without=() if "-lnvrtc" in program.libraries() else SOURCES)
        kind, reason, seconds = run_all(made, program.name, scratch, options)
        return [result_of(program.root, program.name, kind, reason, outcome.seconds, seconds)]


def is_program(path):
    if not path.is_file() or not os.access(path, os.X_OK) or "CMakeFiles" in path.parts or ".so" in path.name:
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def try_project(root, project, options):
    """Builds a directory as its CMakeLists.txt or its Makefile says, and runs the programs that
    this makes.
    """
    name = str(project.relative_to(root))
    with tempfile.TemporaryDirectory(prefix="try_foreign_") as directory:
        scratch = pathlib.Path(directory)
        toolkit = pathlib.Path(options.nvcc).parent.parent
        begin = time.monotonic()
        if (project / "CMakeLists.txt").exists():
            steps = [
                [
                    "cmake",
                    "-S",
                    project,
                    "-B",
                    scratch,
                    f"-DCMAKE_CUDA_COMPILER={options.nvcc}",
                    "-DCMAKE_CUDA_ARCHITECTURES=80",
                ],
                ["cmake", "--build", scratch],
            ]
            where = project
        else:
            shutil.copytree(
                root, scratch / "copy", symlinks=True, ignore=shutil.ignore_patterns(".git")
            )  # makefiles name what is above them
            where = scratch / "copy" / project.relative_to(root)
            steps = [["make", f"NVCC={options.nvcc}", f"CUDA_HOME={toolkit}", f"CUDA_PATH={toolkit}"]]
        before = {path for path in scratch.rglob("*") if is_program(path)}
        environment = {"PATH": f"{toolkit / 'bin'}:{os.environ['PATH']}"}
        for step in steps:
            outcome = run(step, where, options.build_limit, environment)
            if outcome.timed_out or outcome.exit_code != 0:
                kind, reason = (
                    ("slow build", f"after {options.build_limit:g} s")
                    if outcome.timed_out
                    else classify_build(outcome.output)
                )
                return [result_of(root, name, kind, reason, time.monotonic() - begin)]
        seconds = time.monotonic() - begin
        results = []
        for program in sorted({path for path in scratch.rglob("*") if is_program(path)} - before):
            path = f"{name}/{program.name}"
            if where == project:
                copy_data(project, program.parent)
            kind, reason, run_seconds = run_all(program, path, program.parent, options)
            results.append(result_of(root, path, kind, reason, seconds, run_seconds))
        return results or [result_of(root, name, "refused", "the build makes no program", seconds)]


def table(results):
    """One row for each directory, and one for all: cells of text."""
    directories = sorted({result["directory"] for result in results})
    used = [kind for kind in CLASSES if any(result["class"] == kind for result in results)]
    rows = [["", "programs", "build", "run right or unjudged", *used]]
    for directory in [*directories, "all"]:
        own = [result for result in results if directory in (result["directory"], "all")]
        counts = collections.Counter(result["class"] for result in own)
        fine = counts["verified"] + counts["ran"]
        rows.append(
            [
                directory,
                str(len(own)),
                str(sum(counts[kind] for kind in BUILDS)),
                f"{fine} ({100 * fine / len(own):.0f} %)",
                *(str(counts[kind]) if counts[kind] else "" for kind in used),
            ]
        )
    return rows if len(directories) > 1 else rows[:-1]


def as_text(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    )


def as_markdown(rows, results):
    def escaped(text):
        return text.replace("|", "\\|").replace("<", "&lt;")

    lines = ["| " + " | ".join(rows[0]) + " |", "|---" + "|--:" * (len(rows[0]) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows[1:]]
    lines += ["", "| program | what came of it | reason |", "|---|---|---|"]
    lines += [
        f"| {escaped(result['directory'])}/{escaped(result['program'])} | {result['class']} | {escaped(result['reason'])} |"
        for result in results
        if result["class"] not in ("verified", "ran")
    ]
    return "\n".join(lines) + "\n"


def reasons(results):
    """Why programs failed, the most frequent reason first."""
    counts = collections.Counter(
        (result["class"], result["reason"]) for result in results if result["class"] in ("needs", "refused")
    )
    return [f"{count:4}  {kind}: {reason}" for (kind, reason), count in counts.most_common(25)]


def pair(text):
    pattern, separator, arguments = text.partition(":")
    if not separator:
        raise argparse.ArgumentTypeError(f"'{text}'; expected PATTERN:ARGUMENTS")
    return pattern.strip(), arguments.strip()


def variable(text):
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"'{text}'; expected NAME=VALUE")
    return name, value


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directories", nargs="+", type=pathlib.Path, metavar="DIRECTORY")
    parser.add_argument(
        "--nvcc",
        default=shutil.which("cuda-on-cpu-nvcc") or str(COURSE / "build/cpu/cuda/bin/nvcc"),
        help="default: cuda-on-cpu-nvcc, where it is installed; otherwise that of the course's build/cpu",
    )
    parser.add_argument(
        "-I",
        dest="include",
        action="append",
        default=[],
        type=pathlib.Path,
        metavar="DIRECTORY",
        help="also search here for headers",
    )
    parser.add_argument(
        "--nvcc-option",
        dest="nvcc_options",
        action="append",
        default=["-w"],
        metavar="OPTION",
        help="e.g. --nvcc-option=-DN=1024",
    )
    parser.add_argument("--build-limit", type=float, default=180, metavar="SECONDS")
    parser.add_argument("--run-limit", type=float, default=20, metavar="SECONDS")
    parser.add_argument(
        "--patience",
        type=float,
        default=1,
        metavar="FACTOR",
        help="on a busy machine: so many times the limit for a program that has had less processor time than the limit",
    )
    parser.add_argument(
        "--memory", type=float, default=12, metavar="GB", help="that a program may allocate or reserve"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="programs at the same time")
    parser.add_argument(
        "--order", choices=("ascending", "descending", "both"), default="ascending", help="of lanes, warps and blocks"
    )
    parser.add_argument(
        "--arguments",
        action="append",
        default=[],
        type=pair,
        metavar="PATTERN:ARGUMENTS",
        help="arguments of the programs that match; several: the program runs several times",
    )
    parser.add_argument(
        "--set",
        dest="environment",
        action="append",
        default=[],
        type=variable,
        metavar="NAME=VALUE",
        help="environment of the programs",
    )
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERN", help="programs to leave out"
    )
    parser.add_argument("--only", default="", metavar="REGEX", help="programs to try")
    parser.add_argument(
        "--projects",
        action="store_true",
        help="directories with a CMakeLists.txt or a Makefile, instead of single files",
    )
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--quiet", action="store_true", help="no line for each program")
    options = parser.parse_args(arguments)
    options.directories = [directory.resolve() for directory in options.directories]
    options.include = [directory.resolve() for directory in options.include]
    options.nvcc = os.path.abspath(options.nvcc)
    options.orders = ["ascending", "descending"] if options.order == "both" else [options.order]
    options.environment = dict(options.environment)
    for directory in options.directories:
        if not directory.is_dir():
            parser.error(f"there is no directory '{directory}'")
    if not os.access(options.nvcc, os.X_OK):
        parser.error(f"there is no compiler '{options.nvcc}'; ninja -C build/cpu cuda_on_cpu_nvcc_and_libraries builds it")
    return options


def main(arguments):
    options = parse(arguments)
    tasks = []
    for root in options.directories:
        if options.projects:
            tasks += [
                lambda root=root, project=project: try_project(root, project, options)
                for project in find_projects(root, options)
            ]
        else:
            tasks += [
                lambda program=program: try_program(program, options)
                for program in find_programs(root, options)
            ]
    results = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for number, group in enumerate(pool.map(lambda task: task(), tasks), 1):
            results += group
            for result in group:
                if not options.quiet:
                    print(
                        f"[{number}/{len(tasks)}] {result['class']:10} {result['directory']}/{result['program']}  {result['reason']}",
                        flush=True,
                    )
    if not results:
        print("no program: there is no .cu file with a main()", file=sys.stderr)
        return 2
    rows = table(results)
    print("\n" + as_text(rows))
    print("\n" + "\n".join(reasons(results)))
    if options.markdown:
        options.markdown.write_text(as_markdown(rows, results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
