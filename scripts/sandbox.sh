#!/usr/bin/env bash
# Starts a command in a sandbox of bubblewrap, for what a student handed in: it sees a read-only
# system, the read-only checkout, a /tmp and processes of its own, no network and no other files.
# When the command ends, all that it has started is ended. `./course grade` uses it, and
# docs/teachers.md says what it promises.
#
#     scripts/sandbox.sh compile COMMAND...              may also write to build/; runs compilers only
#     scripts/sandbox.sh run [--result FILE] COMMAND...  may write FILE, of 64 MB at most
#
# COURSE_SANDBOX_USER: as root, the number of the user that the command runs as.
set -euo pipefail

root=$(dirname -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")")
build=$root/build
kind=$1
shift
result=
if [[ $1 == --result ]]; then
    result=$2
    shift 2
fi

# The data are private, writable memory. Tests of indices beyond 32 bits reserve 17 GB of it and touch
# little, so this limit is wide; what is really used is watched by grade.py.
processes=${COURSE_LIMIT_PROCESSES:-512}
data=${COURSE_LIMIT_DATA:-40000000000}
disk=${COURSE_LIMIT_DISK:-256000000}
case $kind in
    compile)
        file_size=300000000  # a precompiled header of the course has 120 MB; grade.py watches the sum
        seconds=$((${COURSE_COMPILE_SECONDS:-300} + 10))  # after the limit of `course`, which says so
        ;;
    run) file_size=1000000000 seconds=${COURSE_RUN_SECONDS:-900} ;;
    *)
        echo "sandbox.sh: the kind is '$kind'; expected compile or run" >&2
        exit 2
        ;;
esac
limits=(prlimit --core=0 --nofile=1024 --nproc="$processes" --data="$data" --fsize="$file_size")

box=(--die-with-parent --new-session --unshare-pid --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup-try
    --clearenv --setenv PATH /usr/local/bin:/usr/bin:/bin --setenv HOME /tmp --setenv LANG C.UTF-8
    --setenv COURSE_SANDBOX inside
    --ro-bind /usr /usr --perms 0755 --dir /etc --ro-bind-try /etc/alternatives /etc/alternatives --ro-bind-try /etc/ld.so.cache /etc/ld.so.cache)
for name in bin sbin lib lib32 lib64 libx32; do
    if [[ -L /$name ]]; then
        box+=(--symlink "$(readlink "/$name")" "/$name")
    elif [[ -d /$name ]]; then
        box+=(--ro-bind "/$name" "/$name")
    fi
done
for name in ${!CUDA_ON_CPU_@} ${!COURSE_TEST_@} ${!COURSE_SET_ASIDE@} ${!OMP_@}; do
    box+=(--setenv "$name" "${!name}")
done
box+=(--proc /proc --dev /dev --perms 1777 --size "$disk" --tmpfs /dev/shm --remount-ro /dev --perms 1777 --size "$disk" --tmpfs /tmp)
for ((at = 1; at < ${#root}; ++at)); do  # another user than root must get there
    if [[ ${root:at:1} == / ]]; then box+=(--perms 0755 --dir "${root:0:at}"); fi
done
box+=(--perms 0755 --dir "$root")
for part in "$root"/*; do  # of the course: a checkout may also hold other hand-ins, grades or notes
    case ${part##*/} in
        build | cmake | docs | scripts | tools | CMake*) box+=(--ro-bind "$part" "$part") ;;
        *) if [[ -f $part/CMakeLists.txt ]]; then box+=(--ro-bind "$part" "$part"); fi ;;
    esac
done
case $kind in
    compile) box+=(--bind "$build" "$build" --ro-bind-try "$build/prepared" "$build/prepared") ;;
    run) if [[ $result ]]; then box+=(--perms 1777 --size 64000000 --tmpfs "$(dirname -- "$result")"); fi ;;
esac
box+=(--remount-ro / --chdir /tmp)

# Root needs no user namespace, and no limit of processes holds for it: another user runs the command.
user=()
if [[ $(id -u) == 0 ]]; then
    number=${COURSE_SANDBOX_USER:-65534}
    user=(setpriv --reuid "$number" --regid "$number" --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs)
fi
# In a user namespace of its own a command could mount memory of any size: a filter forbids it.
box+=(--seccomp 4)

for program in bwrap prlimit python3 setpriv timeout "$1"; do
    if ! command -v "$program" >/dev/null; then
        echo "sandbox.sh: $program is not installed" >&2
        exit 127
    fi
done
# The kernel ends these processes first where memory is short.
echo 1000 2>/dev/null >/proc/self/oom_score_adj || true
# Process 1 of the sandbox is bwrap, whose environment and arguments the command can read in /proc:
# the first holds nothing of the teacher's, and the key of a test is not among the second.
path=/usr/local/bin:/usr/bin:/bin
ending=(env -i "PATH=$path" "$(command -v setpriv)" --pdeathsig KILL)  # ends with the judge
ending+=("$(PATH=$path command -v python3 || command -v python3)" -IS "$root/scripts/sandbox_start.py")
ending+=(timeout --kill-after=1 "$seconds")
exec 3< <(printf '%s\0' "${box[@]}")
box=("$(command -v bwrap)" --args 3 --)
if [[ ! $result ]]; then
    exec "${ending[@]}" "${box[@]}" "${user[@]}" "${limits[@]}" "$@"
fi
# The file is on a file system of the sandbox, which is gone with it. What the command can write to the
# pipe, through the descriptors of the last bash, too, is cut off outside.
# shellcheck disable=SC2016
inside='result=$1; shift; code=0; "$@" 5>&- || code=$?; cat "$result" >&5; exit $code'
# shellcheck disable=SC2016
outside='result=$1; shift; exec 6>&1; "$@" 5>&1 >&6 6>&- | head -c 64000000 >"$result" 6>&-; exit "${PIPESTATUS[0]}"'
exec "${ending[@]}" setpriv --pdeathsig KILL bash -c "$outside" _ "$result" \
    "${box[@]}" "${user[@]}" "${limits[@]}" bash -c "$inside" _ "$result" "$@"
