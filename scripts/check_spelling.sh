#!/usr/bin/env bash
# Spelling, by codespell's own list of mistakes and by scripts/house_words.txt: words of this course that have a better one of the trade.
# usage: scripts/check_spelling.sh [FILE...]      default: all that git knows
# exit codes: 0 nothing found, 1 mistakes, 2 codespell is missing (scripts/install_dependencies.sh --developer)
set -uo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." || exit 2
command -v codespell >/dev/null || { echo "check_spelling.sh: codespell is missing; on Debian: apt-get install codespell" >&2; exit 2; }

# Names (coo, kInf, kOwn, Lod, URE), NVIDIA's own spelling of a message (occured), and mistakes that tests make on purpose.
ignored=coo,kinf,kown,lod,ure,ges,occured,frist,rigth,miror,fro,nd,nin,te
files=("$@")
[[ ${#files[@]} != 0 ]] || mapfile -d '' -t files < <(git ls-files -z '*.md' '*.cu' '*.cuh' '*.hpp' '*.cpp' '*.h' '*.inc' '*.py' '*.sh' '*.txt' .ci/run course \
    ':!cuda_on_cpu/test/fuzz/corpus' ':!scripts/house_words.txt')
codespell --dictionary - --dictionary scripts/house_words.txt --ignore-words-list "$ignored" "${files[@]}" || exit 1
echo "${#files[@]} files, no misspelt word"
