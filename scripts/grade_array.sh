#!/usr/bin/env bash
# A job array of Slurm that grades a class, one student a task.
#
#     ./course grade handed_in/ada --days day05,day15      builds what is needed, once
#     sbatch --array=0-199 scripts/grade_array.sh handed_in/* -- --days day05,day15
#     ./course grade handed_in/* --days day05,day15        the table, from what the tasks have judged
#
# The checkout and the directories must be on a file system that all nodes share.
#SBATCH --job-name=grade --cpus-per-task=2 --mem=12G --time=02:00:00
set -euo pipefail

directories=()
while [[ $# -gt 0 && $1 != -- ]]; do
    directories+=("$1")
    shift
done
[[ $# -eq 0 ]] || shift
task=${SLURM_ARRAY_TASK_ID:?expected a job array: sbatch --array=0-$((${#directories[@]} - 1))}
if ((task >= ${#directories[@]})); then
    echo "grade_array.sh: task $task of ${#directories[@]} directories; expected --array=0-$((${#directories[@]} - 1))" >&2
    exit 2
fi
# Slurm runs a copy of this script. The job starts in the directory that it was submitted from.
exec "${COURSE:-./course}" grade "${directories[task]}" "$@"
