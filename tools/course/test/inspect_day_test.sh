#!/usr/bin/env bash
# ./course inspect for real, on day 1, in a build that inspects: build/inspect itself, where
# everything is built already. usage: inspect_day_test.sh CHECKOUT BUILD; exit code 77: skipped
set -euo pipefail

export COURSE_ROOT=$1 COURSE_BUILD_DIR=$2
if [[ $COURSE_BUILD_DIR != "$COURSE_ROOT/build/inspect" ]]; then
    echo "skipped: ./course inspect builds in $COURSE_ROOT/build/inspect, this is $COURSE_BUILD_DIR"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "FAILED: $*"; cat "$work/out" "$work/err"; exit 1; }
inspect() { # EXPECTED ARGUMENTS...
    local expected=$1 code=0
    shift
    "$COURSE_BUILD_DIR/bin/course" inspect "$@" >"$work/out" 2>"$work/err" || code=$?
    [[ $code == "$expected" ]] || fail "inspect $*: exit code $code, expected $expected"
}

# 4099: the last warp has three lanes at work, whose 12 bytes take a sector.
inspect 0 day01 --size 4099 --only one_per_element --html "$work/page.html" --json "$work/all.json"
grep -q '32 adjacent elements of 4 bytes: 4 sectors' "$work/out" || fail "no sentence about the coalesced load"
grep -q 'if (i < n) c\[i\] = a\[i\] + b\[i\];' "$work/out" || fail "not the text of the line"
grep -q 'no findings' "$work/out" || fail "findings in a correct kernel"
grep -q '"transactions": 513' "$work/all.json" || fail "128 requests of 4 sectors and one of 1 make 513"
grep -q '"sectors":\[\[' "$work/page.html" || fail "nothing to draw"
# One warp: two loads and a store, each of 4 sectors.
inspect 0 day01 --size 4099 --only one_per_element --trace "$work/trace.jsonl"
[[ $(wc -l <"$work/trace.jsonl") == 1 ]] || fail "one kernel is one line"
grep -q '"recorded":\[\[0,4294967295,4,4,0,4,32\],\[1,4294967295,4,4,0,4,32\],\[2,4294967295,4,4,0,4,32\]\]' "$work/trace.jsonl" ||
    fail "not the steps of the first warp: $(cat "$work/trace.jsonl")"
inspect 2 day01 --only one_per_elment
grep -q "did you mean 'one_per_element'" "$work/err" || fail "no suggestion for an unknown version"
inspect 2 day01 --size none
grep -q "'none' is no size" "$work/err" || fail "no message about the size"
echo "ok"
