"""A kernel in the page: the kernels of days 1, 5, 6 and 15 and the part of the runtime that runs them, compiled to WebAssembly.

build() makes one script, run_here_kernels.js, with Debian's emscripten; without emscripten there is none, and the pages leave the part
out. A source that emscripten cannot compile is an error. part() is the HTML of one kernel's page; static/run_here.js makes a form of it
and runs the kernel in a worker.
"""
import concurrent.futures
import hashlib
import html
import json
import os
import pathlib
import shutil
import subprocess

STATIC = ["run_here.js"]
SCRIPT = "run_here_kernels.js"
FOLDER = "build/site/run_here"  # of the tree: object files, and in static/ the script
SOURCES = ["runtime.cpp", "page_host.cpp", "contexts.cpp", "runs.cu"]
# What a change of compiles everything anew.
READ = ["site/run_here.py", "site/wasm", "cuda_on_cpu/include", "cuda_on_cpu/src", "cuda_on_cpu/process", "cuda_on_cpu/translator", "common/device",
        "common/check", "day01_vector_add/vector_add.cuh", "day05_matmul_tiled/matmul_tiled.cuh", "day06_transpose/transpose.cuh", "day15_reduction/reduction.cuh"]
SUFFIXES = {".py", ".cpp", ".hpp", ".h", ".inc", ".cu", ".cuh", ""}
COMPILE = ["-std=c++20", "-O1", "-DCUDA_ON_CPU", "-Isite/wasm/include", "-Isite/wasm", "-Icuda_on_cpu/include", "-Icuda_on_cpu/src",
           "-Icuda_on_cpu/process", "-I.", "-Wno-everything"]
LINK = ["-Oz", "-sASYNCIFY", "-sSINGLE_FILE", "-sENVIRONMENT=worker", "-sALLOW_MEMORY_GROWTH", "-sMODULARIZE", "-sEXPORT_NAME=kernels",
        "-sEXPORTED_RUNTIME_METHODS=ccall,UTF8ToString"]
# What a worker does: one run, then the page ends it. A worker from file: must come from a Blob, so that the page needs this text.
SCRIPT_TEXT = """// Made by site/run_here.py: kernels and the runtime, for a worker.
window.runHereKernels = function () {
%s
  self.onmessage = ({data}) => {
    const said = [];
    kernels({print: text => said.push(text), printErr: text => said.push(text)}).then(module => {
      const start = performance.now();
      let result = "";
      try {
        module.ccall("run_kernel", null, ["string", ...data.numbers.map(() => "number")], [data.kernel, ...data.numbers]);
        result = module.UTF8ToString(module._result());
      } catch (error) {
        said.push(String(error.message || error));
      }
      self.postMessage({result, said, ms: performance.now() - start});
    }).catch(error => self.postMessage({result: "", said: [String(error.message || error)], ms: 0}));
  };
};
"""


# --- The script ------------------------------------------------------------------------------------


class BuildError(Exception):
    """The script cannot be made; the text says why."""


class NoEmscripten(BuildError):
    """A tool is not installed: the site can do without the script."""


def script(root):
    return root / FOLDER / "static" / SCRIPT


def fingerprint(root, version):
    digest = hashlib.sha256(version.encode())
    for name in READ:
        path = root / name
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file() and file.suffix in SUFFIXES:
                digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def run(root, command):
    # Debian's emscripten needs Debian's acorn, which a Node.js from elsewhere does not look for.
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env={"NODE_PATH": "/usr/share/nodejs", **os.environ})
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).strip().splitlines() if "error" in line] or ["no message"]
        raise BuildError(f"{pathlib.Path(command[0]).name} failed: {lines[0][:300]}")


def works(command):
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def translator(root):
    """The program that turns CUDA C++ into C++: that of a build, unless a source of it is newer, else one that is compiled here."""
    files = [*(root / "cuda_on_cpu/translator").glob("*"), *(root / "cuda_on_cpu/process").glob("child_process.*")]
    newest = max((path.stat().st_mtime for path in files), default=0)
    for built in sorted(root.glob("build/*/bin/cuda_on_cpu_compile")):
        if built.stat().st_mtime > newest and works([str(built), "em++", "--version"]):
            return built
    own = root / FOLDER / "cuda_on_cpu_compile"
    if not shutil.which("g++"):
        raise NoEmscripten("there is neither a build of the course nor g++")
    sources = sorted(str(path) for path in files if path.suffix == ".cpp")
    run(root, ["g++", "-std=c++20", "-O0", "-Icuda_on_cpu/process", "-Icuda_on_cpu/translator", *sources, "-o", str(own)])
    return own


def compile_script(root, folder):
    translate = [str(translator(root))]

    def compile_one(name):
        run(root, [*(translate if name.endswith(".cu") else []), "em++", *COMPILE, "-c", f"site/wasm/{name}", "-o", str(folder / f"{name}.o")])

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, SOURCES))
    module = folder / "kernels.js"
    run(root, ["em++", *(str(folder / f"{name}.o") for name in SOURCES), *LINK, "-o", str(module)])
    return SCRIPT_TEXT % module.read_text(encoding="utf-8")


def build(root):
    """Makes the script unless it is there, made from the same sources. Returns a line that says what has been done; raises a BuildError if
    the tools are there and fail."""
    target, stamp = script(root), root / FOLDER / "made_from"
    try:
        if not shutil.which("em++"):
            raise NoEmscripten("there is no em++ (apt-get install emscripten)")
        version = subprocess.run(["em++", "--version"], capture_output=True, text=True).stdout
        wanted = fingerprint(root, version)
        if not (target.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == wanted):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(compile_script(root, root / FOLDER), encoding="utf-8")
            stamp.write_text(wanted, encoding="utf-8")
    except BuildError as error:
        target.unlink(missing_ok=True)
        if not isinstance(error, NoEmscripten):
            raise
        return f"kernels cannot be run in the pages: {error}"
    return f"kernels can be run in the pages: {SCRIPT}, {target.stat().st_size / 1e3:.0f} kB"


def remove_script_of_before(root, out):
    """Removes the script from the site in the folder `out`, if an earlier build put it there and this one has none."""
    if not script(root).is_file():
        (out / "_static" / SCRIPT).unlink(missing_ok=True)


# --- The part of a page ----------------------------------------------------------------------------


def number(label, value, most):
    return {"label": label, "value": value, "most": most}


VECTOR = {"sizes": [number("elements", 10007, 1000000)], "block": [number("threads of a block", 256, 1024)]}
MATRICES = {"sizes": [number("rows of C", 65, 256), number("columns of C", 66, 256), number("columns of A", 67, 256)]}
MATRIX = {"sizes": [number("rows", 65, 1024), number("columns", 130, 1024)]}
SUM = {"sizes": [number("elements", 10007, 200000)], "grid": number("blocks", 16, 256), "block": [number("threads of a block", 256, 1024)]}


def plane(x, y):
    return [number("threads of a block in x", x, 1024), number("in y", y, 1024)]


ANY = "The kernel is right for any block."
TILES = "The kernel is written for blocks of {} threads; with another block it is wrong, which the comparison or the runtime shows."
SQUARE = TILES.format("32 × 32")
SLICE = TILES.format("32 × 8")
LINE = TILES.format("256")
KERNELS = {
    "add_one_per_element": {**VECTOR, "note": ANY},
    "add_grid_stride": {**VECTOR, "grid": number("blocks", 16, 4096), "note": "The kernel is right for any grid and any block."},
    "add_float4": {**VECTOR, "note": "The kernel is right for any block of at least 3 threads, which add the last elements."},
    "multiply_naive": {**MATRICES, "block": plane(16, 16), "note": "The kernel is right for any square block."},
    "multiply_coalesced": {**MATRICES, "block": plane(16, 16), "note": ANY},
    "multiply_tiled": {**MATRICES, "block": plane(32, 32), "note": SQUARE},
    "multiply_coarsened": {**MATRICES, "block": plane(32, 32), "note": SQUARE},
    "transpose_naive": {**MATRIX, "block": plane(32, 32), "note": SQUARE},
    "transpose_strided_loads": {**MATRIX, "block": plane(32, 32), "note": SQUARE},
    "transpose_tiled": {**MATRIX, "block": plane(32, 32), "note": SQUARE},
    "transpose_padded": {**MATRIX, "block": plane(32, 32), "note": SQUARE},
    "transpose_coarsened": {**MATRIX, "block": plane(32, 8), "note": SLICE},
    "transpose_swizzled": {**MATRIX, "block": plane(32, 8), "note": SLICE},
    "reduce_interleaved": {**SUM, "note": LINE},
    "reduce_sequential": {**SUM, "note": LINE},
    "reduce_shared_memory": {**SUM, "note": LINE},
    "reduce_coarsened": {**SUM, "note": LINE},
    "reduce_shuffle": {**SUM, "note": LINE},
    "reduce_vectorised": {**SUM, "note": LINE},
}


def part(root, kernel):
    """HTML: what run_here.js makes a form of, and a sentence for readers without JavaScript; empty if the kernel cannot be run."""
    choice = KERNELS.get(kernel)
    if choice is None or not script(root).is_file():
        return ""
    version = hashlib.sha256(script(root).read_bytes()).hexdigest()[:8]  # a script that a browser keeps from an earlier release does not fit
    data = html.escape(json.dumps({"kernel": kernel, "version": version, **{key: choice[key] for key in ("sizes", "grid", "block") if key in choice}}))
    return (f'<div class="run-here" data-run="{data}"><p>Here the kernel runs in this page, compiled to WebAssembly: each of its threads, one after the '
            f"other. The result is compared with that of a plain loop. {choice['note']}</p>"
            '<p class="run-here-without">This needs JavaScript.</p></div>')
