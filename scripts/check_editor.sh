#!/usr/bin/env bash
# Does an editor see what the compiler sees? `clangd --check`, with the .clangd of this repository
# and without a build, on every lesson (.cu, .cuh) and every blank exercise: 0 errors; and
# threadIdx, __syncthreads and cudaMalloc are known where a kernel is written.
set -uo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 2

usage() {
    cat <<'END'
Checks with clangd that no lesson and no blank exercise has a red line in an editor.

usage: scripts/check_editor.sh [--jobs N] [--built] [FILE|DAY...]
  --jobs N   files at the same time; default: the number of cores
  --built    the program that makes blank exercises is up to date: nothing is built
  FILE...    only these files
  DAY...     only the .cu and .cuh files and blank exercises of these directories: day05, gemm_ladder, bug_hunts, common
             default: all directories
example: scripts/check_editor.sh day05_matmul_tiled/matmul_tiled.cuh

exit codes: 0 no errors, 1 errors, 2 clangd or the build directory is missing, or a wrong argument
END
}

# The first of NAMES that is a directory.
add_directory() { # NAMES
    local name
    for name in "$@"; do
        if [[ -d $name ]]; then directories+=("$name"); return; fi
    done
    echo "check_editor.sh: there is no directory $1; expected one such as day05, gemm_ladder, bug_hunts or common" >&2
    return 1
}

jobs=$(nproc)
is_built=no
files=()
directories=()
while [[ $# != 0 ]]; do
    case $1 in
        --jobs) jobs=${2:?--jobs: expected a number}; shift ;;
        --built) is_built=yes ;;
        --help | -h) usage; exit 0 ;;
        -*) echo "check_editor.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
        *.*) files+=("$1") ;;
        day[0-9]*) add_directory "${1%/}"{,_*} || exit 2 ;;
        *) add_directory "${1%/}" || exit 2 ;;
    esac
    shift
done
if ! command -v clangd >/dev/null; then
    echo "check_editor.sh: clangd is missing; on Debian: apt-get install clangd" >&2
    exit 2
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The blank exercises, as `./course next` puts them into my/: build/editor/DAY/FILE, and none of the
# files that they include.
blank=build/editor
write_blank_exercises() {
    local build=build/cpu maker exercises day tree named
    [[ -d $build || ! -d build/gpu ]] || build=build/gpu
    if [[ $is_built == no ]]; then
        [[ -f $build/build.ninja ]] || cmake --preset "${build#build/}" >"$log" 2>&1 || return 1
        cmake --build "$build" --target make_exercise_sources >"$log" 2>&1 || return 1
    fi
    maker=$build/bin/make_exercise_sources
    rm -rf "$blank"
    for day in "${directories[@]}"; do
        exercises=$day/exercises.md
        [[ -e $exercises ]] || continue
        tree=$blank/$day
        mapfile -t named < <(sed -nE 's/^- file:[ `]*([^` ]+)[ `]*$/\1/p' "$exercises" | sort -u)
        "$maker" "$PWD/$day" /nonexistent "$PWD/$tree" "${named[@]}" >"$log" 2>&1 || return 1
        # A copy for the build begins with a #line that names the lesson.
        (cd "$tree" && sed -i '1{/^#line /d}' "${named[@]}") || return 1
        files+=("${named[@]/#/$tree/}")
    done
}

# Knows clangd the words of a kernel? As in an editor: initialize, open a file, ask what may stand at a place.
check_completion() {
    python3 - <<'END'
import json, os, subprocess, sys

LINES = ["#include <cuda_runtime.h>", "__global__ void kernel(float* x) {", "    threadI", "    __syncthr", "}",
         "void host(float* x) {", "    cudaMall", "    kernel<<<1, 32>>>(x);", "}"]
EXPECTED = {2: "threadIdx", 3: "__syncthreads", 6: "cudaMalloc"}

server = subprocess.Popen(["clangd", "--log=error"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

def send(method, params, number=None):
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        message["id"] = number
    body = json.dumps(message).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    server.stdin.flush()

def wait_for(is_it):
    while True:
        length = 0
        while (line := server.stdout.readline().strip()):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        if length == 0:
            sys.exit("completion: clangd ended")
        message = json.loads(server.stdout.read(length))
        if is_it(message):
            return message.get("result")

def answer(number):
    return wait_for(lambda message: message.get("id") == number)

uri = "file://" + os.path.join(os.getcwd(), "my", "completion.cu")
send("initialize", {"processId": None, "rootUri": "file://" + os.getcwd(), "capabilities": {}}, 0)
answer(0)
send("initialized", {})
send("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "cuda-cpp", "version": 1, "text": "\n".join(LINES)}})
wait_for(lambda message: message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri)  # read
missing = []
for line, word in EXPECTED.items():
    where = {"line": line, "character": len(LINES[line])}
    send("textDocument/completion", {"textDocument": {"uri": uri}, "position": where}, line)
    found = answer(line)
    labels = [item["label"].strip(" •") for item in (found["items"] if isinstance(found, dict) else found)]
    if not any(label.split("(")[0] == word for label in labels):
        missing.append(f"{word} (offered after '{LINES[line].strip()}': {', '.join(labels[:5]) or 'nothing'})")
send("shutdown", None, 99)
answer(99)
send("exit", None)
server.wait(10)
if missing:
    sys.exit("completion does not know " + "; ".join(missing))
print("completion knows " + ", ".join(EXPECTED.values()))
END
}

# A launcher that is a template must not call a __device__ function: nvcc says nothing, and the
# program ends there with exit code 1. clang++ sees it where the template is used, which clangd does
# not show.
check_sides() { # FILE
    [[ $1 == *.cu ]] && command -v clang++ >/dev/null || return 0
    local flags errors directory=$PWD/${1%/*}
    flags=$(sed -n 's/^ *Add: \[\(-xcuda, .*\)\]$/\1/p' .clangd | tr -d ,)
    errors=$(cd cmake/editor && clang++ $(<compile_flags.txt) $flags -fsyntax-only "-I$directory" "-I$directory/.." "$OLDPWD/$1" 2>&1 |
        grep -F 'reference to __device__ function')
    [[ -z $errors ]] || { echo "$1:"; echo "$errors"; return 1; }
}

# The first line only is tested for completion and the like, which is what takes time; diagnostics
# are those of the whole file.
check_file() { # FILE
    local log errors
    check_sides "$1" || return
    log=$(clangd --check="$1" --check-lines=1 2>&1) && return
    # clangd 14 may take operator new and delete, out of headers that it has read before, for device
    # code; clang does not.
    errors=$(grep -E '^E\[' <<<"$log" | grep -vE "'operator (new|delete)'" | sed -E 's/^E\[[^]]*\]/ /')
    [[ -n $errors ]] || ! grep -q 'All checks completed' <<<"$log" || return 0
    echo "$1:"
    echo "$errors"
    return 1
}
export -f check_file check_sides

[[ ${#files[@]} != 0 || ${#directories[@]} != 0 ]] || directories=(day*_* gemm_ladder bug_hunts common)
if [[ ${#directories[@]} != 0 ]]; then
    mapfile -t -O ${#files[@]} files < <(for directory in "${directories[@]}"; do git ls-files "$directory/*.cu" "$directory/*.cuh"; done)
    if ! write_blank_exercises; then
        cat "$log" >&2
        echo "check_editor.sh: the blank exercises could not be made; the messages are above" >&2
        exit 2
    fi
fi
# Without Open MPI (scripts/install_dependencies.sh --cluster) its program has red lines.
command -v mpicxx >/dev/null || mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -v '/mpi\.cu$')
# NVSHMEM is no package of the distribution.
[[ -e /usr/include/nvshmem.h ]] || mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -v '/nvshmem\.cu$')

code=0
for directory in */beyond; do
    grep -qF -- "-I../../$directory" .clangd && continue
    echo "check_editor.sh: .clangd does not name $directory, where a learner's copy of a file finds the others" >&2
    code=1
done
check_completion || code=1
printf '%s\0' "${files[@]}" | xargs -0 --max-procs="$jobs" --max-args=1 bash -c 'check_file "$1"' _ || code=1
[[ $code == 0 ]] && echo "${#files[@]} files, 0 errors"
exit $code
