#!/usr/bin/env bash
# Grades a class by scripts/grade_array.sh with a Slurm of one node, which it starts and ends: a right answer, a wrong one, a blank one,
# and a task too many. For a machine that may be thrown away: it needs root, and munged runs on its key of the machine.
# Debian: apt-get install slurm-wlm munge. The last line is "N passed, N failed, N skipped".
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

skip() { # REASON
    echo "skipped: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
for program in munged slurmctld slurmd sbatch; do
    command -v "$program" >/dev/null || skip "there is no $program (Debian: slurm-wlm, munge)"
done
[[ $EUID == 0 ]] || skip "it is root who starts Slurm"

work=$(mktemp -d)
finish() {
    local started
    mapfile -t started < <(cat "$work"/slurmd.pid "$work"/slurmctld.pid 2>/dev/null; echo "${munge-}")
    for pid in "${started[@]}"; do
        [[ -n $pid ]] && kill "$pid" 2>/dev/null || continue
        timeout 10 tail --pid="$pid" -f /dev/null || true
    done
    rm -rf "$work"
}
trap finish EXIT
fail() { # WHAT FILE...
    echo "FAILED: $1"
    shift
    cat "$@"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}

node=$(hostname -s)
mkdir "$work/state" "$work/spool"
export SLURM_CONF=$work/slurm.conf
cat >"$SLURM_CONF" <<END
ClusterName=one
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(($(free -m | awk '/^Mem/ {print $2}') - 1000)) State=UNKNOWN
PartitionName=all Nodes=$node Default=YES State=UP
END
if ! munge -n >/dev/null 2>&1; then
    mkdir -p /run/munge
    chown munge:munge /run/munge
    [[ -f /etc/munge/munge.key ]] || mungekey --create
    chown munge:munge /etc/munge/munge.key
    runuser -u munge -- munged
    munge=$(pidof munged)
fi
slurmctld
slurmd
for ((i = 0; i < 100; i++)); do
    if sinfo --noheader --format=%T 2>/dev/null | grep -q idle; then break; fi
    sleep 0.2
done
sinfo --noheader --format=%T | grep -q idle || fail "the node is not idle" "$work"/*.log

day=day01_vector_add
mkdir -p "$work"/class/{right,wrong,blank}/$day
cp $day/vector_add.cuh "$work/class/right/$day/"
sed 's/if (i < n)/if (i <= n)/' $day/vector_add.cuh >"$work/class/wrong/$day/vector_add.cuh"
grade=("$work"/class/{blank,right,wrong})
options=(--days day01 --out "$work/grades")
./course grade "$work/class/right" "${options[@]}" >"$work/first.txt" 2>&1 || fail "the first ./course grade" "$work/first.txt"
sbatch --wait --array=0-3 --output="$work/task_%a.txt" scripts/grade_array.sh "${grade[@]}" -- "${options[@]}" >"$work/sbatch.txt" ||
    true # its exit code is the largest of the tasks'
expect() { # FILE WORDS
    grep -qF -- "$2" "$work/$1" || fail "no '$2' in $1" "$work/$1"
}
expect task_0.txt "blank: 0 of 4 solved"
expect task_1.txt "right: 4 of 4 solved"
expect task_2.txt "wrong: 3 of 4 solved"
expect task_3.txt "task 3 of 3 directories; expected --array=0-2"
./course grade "${grade[@]}" "${options[@]}" --csv "$work/grades.csv" >"$work/table.txt" 2>&1 || true # not all are solved
expect table.txt "1 of 3 students solved all of 4 exercises"
expect table.txt "(as before)"
expect grades.csv "bytes after the output were overwritten"
echo "a class of three, graded by a job array"
echo "1 passed, 0 failed, 0 skipped"
