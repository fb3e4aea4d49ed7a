#!/usr/bin/env bash
# Compiles the program.cu of each day as its first lines say, with nvcc alone: nothing of the course is linked. Needs no GPU.
# usage: scripts/compile_programs.sh [DIRECTORY...]    of these days; those that have none are left out
set -uo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 1
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
compile() { # DIRECTORY
    cd "$1" || exit 1
    grep -q '^//   nvcc -std=c++20 -I\.\. program\.cu' program.cu ||
        { echo "$1/program.cu: expected the line '//   nvcc -std=c++20 -I.. program.cu ...'"; exit 1; }
    local options
    read -ra options < <(sed -n 's/^\/\/   nvcc -std=c++20 -I\.\. program\.cu\(\( -arch=[a-z0-9_]*\| -gencode [a-z0-9_=,]*\| -rdc=true\)*\).*/\1/p' program.cu)
    "$nvcc" -std=c++20 -I.. program.cu "${options[@]}" -o "$2/$1" || { echo "$1/program.cu: does not compile"; exit 1; }
}
export -f compile
export nvcc
[[ $# != 0 ]] || set -- day*/ gemm_ladder/
for directory in "$@"; do
    [[ -d $directory ]] || { echo "compile_programs.sh: $directory is no directory of the course" >&2; exit 1; }
    [[ ! -e $directory/program.cu ]] || echo "${directory%/}"
done | xargs --no-run-if-empty -P 2 -I{} bash -c 'compile "$@"' _ {} "$folder" || exit 1
echo "$(ls "$folder" | wc -l) programs compile"
