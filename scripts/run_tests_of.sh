#!/usr/bin/env bash
# Runs every test program of a build on this machine, without CMake and without the sources: for a
# machine with a GPU to which only <build>/bin was copied.
set -uo pipefail

usage() {
    cat <<'END'
usage: scripts/run_tests_of.sh BIN_DIRECTORY [--sanitizer memcheck|racecheck|initcheck|synccheck] [PROGRAM...]
  Runs the *_test programs in BIN_DIRECTORY (or those named; BIN_DIRECTORY/lib may hold their libraries), prints a line for each and the output of those that fail.
  --sanitizer   runs them under compute-sanitizer, which must find nothing
example: scripts/run_tests_of.sh build/gpu/bin --sanitizer memcheck
exit codes: 0 all passed, 1 some failed, 2 wrong usage
END
}

[[ $# -ge 1 && -d $1 ]] || { usage >&2; exit 2; }
directory=$1
shift
# Threads that wait for the next loop on the host must not take the cores from those that work.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
# Shared libraries that the machine has not got may lie there too.
[[ ! -d $directory/lib ]] || export LD_LIBRARY_PATH=$directory/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
sanitizer=()
if [[ ${1:-} == --sanitizer ]]; then
    case ${2:-} in
        memcheck | racecheck | initcheck | synccheck) ;;
        *) usage >&2; exit 2 ;;
    esac
    # Under a sanitizer a kernel runs up to a thousand times slower: without the tests that move
    # gigabytes, and the one that counts how many launches fit into a time.
    export GTEST_FILTER='-*More*Than*:*LargeShapes*:*AreMeasuredOnceAndOnlyOnAGpu*:*TimeIsThatOfOneLaunchOfABatch*'
    # These call no kernel, or run a program whose kernels have a test of their own.
    without=" common_libraries_test gemm_ladder_program_test "
    if [[ $2 == racecheck ]]; then
        without+="common_test "                            # no shared memory, and too many bytes for this tool
        GTEST_FILTER+=":*.RingInABlock:*ThatAnotherPolls"  # ordered by flags and fences; racecheck knows barriers only
        GTEST_FILTER+=":*ALongSum*"                        # some 10^9 accesses to shared memory
        GTEST_FILTER+=":DayFifty/*/graph"                  # it cannot track the launches of a graph on two GPUs
    fi
    if [[ $2 == initcheck ]]; then
        GTEST_FILTER+=":DayFifty/*/nccl:DayFifty/*/nccl_overlapped"  # kernels of NCCL read memory that was not written
    fi
    # Some tests provoke API errors to see them reported; those are not findings.
    sanitizer=(compute-sanitizer --tool "$2" --error-exitcode 86 --report-api-errors no)
    shift 2
fi
programs=("$@")
[[ ${#programs[@]} -gt 0 ]] || programs=("$directory"/*_test)

passed=0 failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for program in "${programs[@]##*/}"; do
    [[ ${without:-} != *" $program "* ]] || continue
    begin=$SECONDS
    # A program that ran no test (no GPU?) has not passed.
    if "${sanitizer[@]}" "$directory/$program" >"$log" 2>&1 && grep -qE 'PASSED  \] [1-9]' "$log"; then
        passed=$((passed + 1)) result=passed
    else
        failed=$((failed + 1)) result="FAILED ($?)"
        grep -vE '^\[ RUN|^\[       OK' "$log" | head -n 60
    fi
    counts=$(grep -oE '(PASSED|SKIPPED)  ?\] [0-9]+ tests?' "$log" | tr -d ']' | tr -s ' ' | paste -sd, -)
    printf '%-32s %-10s %3d s  %s\n' "$program" "$result" $((SECONDS - begin)) "$counts"
done
echo "$passed passed, $failed failed"
[[ $failed == 0 && $passed != 0 ]]
