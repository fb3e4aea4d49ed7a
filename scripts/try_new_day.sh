#!/usr/bin/env bash
# Does ./course new-day write a day that compiles, runs, and whose test says what to do? Makes
# day99_example, tries it and removes it again. .ci/run calls it. usage: scripts/try_new_day.sh
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

day=day99_example
[[ ! -e $day ]] || { echo "try_new_day.sh: $day exists; expected no such directory" >&2; exit 2; }
editor=$(mktemp)
cp .clangd "$editor"
trap 'rm -rf "$day"; mv "$editor" .clangd' EXIT

fail() { echo "FAILED: $1"; exit 1; }

./course new-day "$day" --title 'Title "in quotes"' --question 'Why?'
for file in CMakeLists.txt README.md exercises.md example.{hpp,cuh,cu} example_{reference,bench,test}.cpp; do
    [[ -f $day/$file ]] || fail "there is no $day/$file"
    ! grep -q '@[A-Z]' "$day/$file" || fail "$day/$file: a placeholder is left"
done
scripts/wrap_prose.py --check "$day"/*.* || fail "a line is too long"
grep -q "$day/" .clangd || fail "editors do not know the day"
! ./course new-day "$day" 2>/dev/null || fail "a second day of that name was made"
! ./course new-day 'day98' 2>/dev/null || fail "a name without a topic was taken"

./course list | grep -q "^$day .*Title \"in quotes\"" || fail "./course list does not show the day"
./course exercises "$day"
./course run "$day" --size 1000
code=0
output=$(./course test "$day" 2>&1) || code=$?
[[ $code == 1 ]] || fail "the test of a day that is not written: exit code $code; expected 1: $output"
[[ $output == *"Write, in this order"*"6 passed, 2 failed, 0 skipped"* ]] || fail "the test says: $output"
echo "a new day compiles, runs and says what to write"
