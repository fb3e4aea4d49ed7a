#!/usr/bin/env bash
# ./course debug for real: does gdb stop in the learner's kernel? In a day of versions, a whole
# program and a bug hunt. The command is that of BUILD, and what it debugs, it builds
# there, or in CHECKOUT/build/cpu. usage: debug_day_test.sh CHECKOUT BUILD; exit code 77: skipped
set -euo pipefail

export COURSE_ROOT=$1 COURSE_BUILD_DIR=$2
if ! command -v gdb >/dev/null; then
    echo "skipped: gdb is not installed"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export COURSE_MY=$work/my
course() { "$COURSE_BUILD_DIR/bin/course" "$@" >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }; }
expect() { # WORDS: the debugger has printed them
    grep -qF "$1" "$work/out" && return
    echo "FAILED: no '$1' in"
    cat "$work/out"
    exit 1
}

course next day01
course solution day01/one_per_element --force --paste
printf '%s\n' 'print threadIdx' 'next' 'print i' 'continue' 'print threadIdx' \
    'delete 1' 'break 32 if threadIdx.x == 7' 'continue' 'print threadIdx' 'quit' |
    course debug day01/one_per_element --size 70
expect 'my/day01_vector_add/vector_add.cuh:'
expect '$1 = {x = 0, y = 0, z = 0}'
expect '$2 = 0'
expect '$3 = {x = 1, y = 0, z = 0}'
expect '$4 = {x = 7, y = 0, z = 0}'  # docs/command.md shows these commands

# A program of its own, and a function of the host's side.
course next day00
course solution day00/host_side --force --paste
printf '%s\n' 'print n' 'quit' | course debug day00/host_side -- 33
expect 'my/day00_first_program/vector_add.cu:'
expect '$1 = 33'

# A file to repair: the breakpoint is in its kernel.
course next bug_hunts
printf '%s\n' 'print blockIdx' 'next' 'print i' 'quit' | course debug bug_hunts/fold
expect 'my/bug_hunts/fold.cu:'
expect '$1 = {x = 0, y = 0, z = 0}'
expect '$2 = 0'
echo "ok"
