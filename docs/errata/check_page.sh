#!/usr/bin/env bash
# Do the programs show what docs/errata.md says that they show, no more and no less?
# usage: check_page.sh PAGE PROGRAM...
set -uo pipefail

page=$1
shift
code=0
shown=
for program in "$@"; do
    printed=$("$program" 2>&1) || { echo "$(basename "$program") ended with exit code $?; expected 0"; code=1; }
    echo "$printed"
    shown+=$(sed -nE 's/^([^ ]+) shown: .*/\1/p' <<<"$printed")$'\n'
done
# A row of the page: | 9.9 | what readers report | what happens | shown by [histogram.cu](...) |
claimed=$(sed -nE 's/^\| ([^ |]+) \|.*\| shown by .*/\1/p' "$page")
if ! difference=$(diff <(sort <<<"$claimed" | sed '/^$/d') <(sort <<<"$shown" | sed '/^$/d')); then
    echo "$page ('<') and the programs ('>') do not agree on what is shown:"
    echo "$difference"
    code=1
fi
exit "$code"
