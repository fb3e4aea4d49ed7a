#!/usr/bin/env bash
# ./course debug for real, on day 1, in build/cpu-debug: does gdb stop in the learner's kernel?
# usage: debug_day_test.sh CHECKOUT BUILD; exit code 77: skipped
set -euo pipefail

export COURSE_ROOT=$1 COURSE_BUILD_DIR=$2
if [[ $COURSE_BUILD_DIR != "$COURSE_ROOT/build/cpu-debug" ]]; then
    echo "skipped: ./course debug builds in $COURSE_ROOT/build/cpu-debug, this is $COURSE_BUILD_DIR"
    exit 77
fi
if ! command -v gdb >/dev/null; then
    echo "skipped: gdb is not installed"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export COURSE_MY=$work/my
course() { "$COURSE_BUILD_DIR/bin/course" "$@" >"$work/out" 2>&1; }
expect() { # WORDS: the debugger has printed them
    grep -qF "$1" "$work/out" && return
    echo "FAILED: no '$1' in"
    cat "$work/out"
    exit 1
}

course next day01
course solution day01/one_per_element --force --paste
printf '%s\n' 'print threadIdx' 'next' 'print i' 'continue' 'print threadIdx' 'quit' |
    course debug day01/one_per_element --size 70
expect 'my/day01_vector_add/vector_add.cuh:'
expect '$1 = {x = 0, y = 0, z = 0}'
expect '$2 = 0'
expect '$3 = {x = 1, y = 0, z = 0}'
echo "ok"
