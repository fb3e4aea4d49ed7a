#!/usr/bin/env bash
# Runs a test that is no GoogleTest program, and reports it as main.cpp reports such a program: one test, without a name of its own.
# Exit code 77 means that it is skipped, for the reason in the last line that it prints.
# usage: report_command.sh REPORT [--fail-on REGEX] COMMAND...      REGEX: in what it prints, a line that is a failure
set -uo pipefail

report=$1
shift
fail_on=
if [[ $1 == --fail-on ]]; then
    fail_on=$2
    shift 2
fi
output=$(mktemp)
trap 'rm -f "$output"' EXIT

as_json() {
    iconv -c -f UTF-8 -t UTF-8 | tr -d '\000-\010\013-\037' | sed 's/\\/\\\\/g; s/"/\\"/g; s/\t/\\t/g' |
        awk '{ printf "%s%s", (NR > 1 ? "\\n" : ""), $0 }'
}

echo '{"event": "started"}' >"$report"
"$@" 2>&1 </dev/null | tee "$output"
code=${PIPESTATUS[0]}
if [[ $code == 0 && $fail_on ]] && grep -qE -- "$fail_on" "$output"; then code=1; fi
case $code in
    0) result=passed message= ;;
    77) result=skipped message=$(tail -n 1 "$output" | as_json) ;;
    *) result=failed message=$(tail -n 8 "$output" | as_json) ;;
esac
printf '{"event": "ended", "result": "%s", "message": "%s"}\n{"event": "finished", "result": "%s"}\n' \
    "$result" "$message" "$result" >>"$report"
exit "$code"
