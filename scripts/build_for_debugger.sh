#!/usr/bin/env bash
# Builds the program of a day, not optimised, for a debugger, under one name: build/cpu-debug/debugged.
#   build_for_debugger.sh lesson FILE      with the lesson's kernels; FILE is any file of the day
#   build_for_debugger.sh exercise FILE    with the learner's, in my/
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
if [[ $# != 2 || ! $1 =~ ^(lesson|exercise)$ ]]; then
    echo "usage: scripts/build_for_debugger.sh lesson|exercise FILE" >&2
    exit 2
fi
day=$(scripts/day_of.sh "$2")
if [[ -f $day/programs_test.cpp ]]; then # whole programs: the one that is open
    name=${2##*/}
    target=${day%%_*}_${name%.cu}
    [[ $1 == lesson ]] || target+=_exercise
elif [[ $1 == lesson ]]; then
    target=${day}_program program=$day
else
    target=${day}_exercise_program
fi
[[ -f build/cpu-debug/build.ninja ]] || cmake --preset cpu-debug
cmake --build build/cpu-debug --target "$target"
ln -sf "bin/${program:-$target}" build/cpu-debug/debugged
