#!/usr/bin/env bash
# The day that a file of the repository belongs to: day_of.sh my/day05_matmul_tiled/matmul_tiled.cuh
# prints day05_matmul_tiled.
set -euo pipefail
path=${1#my/}
path=${path#build/*/exercises/}
day=${path%%/*}
if [[ $# != 1 || $path != */* || ! -f $(dirname -- "${BASH_SOURCE[0]}")/../$day/exercises.md ]]; then
    echo "day_of.sh: '${1-}' is not a file of a day; open one, such as day01_vector_add/vector_add.cuh" >&2
    exit 2
fi
echo "$day"
