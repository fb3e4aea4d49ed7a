#!/usr/bin/env bash
# Tests what a program that nvcc has made tells when it ends, and warp-synchronous code.
# usage: hints_test.sh TOOLKIT      TOOLKIT: the directory that bin/nvcc is in
set -uo pipefail

toolkit=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

failures=0
check() { # WHAT CONDITION...
    local what=$1
    shift
    if "$@"; then
        echo "ok: $what"
    else
        echo "FAILED: $what; printed:"
        cat out err
        failures=$((failures + 1))
    fi
}
# Runs a case of a program in both orders of threads.
both() { # PROGRAM CASE CODE PART_OF_STDERR ('' for none at all)
    local order code
    for order in ascending descending; do
        CUDA_ON_CPU_ORDER=$order "./$1" "$2" >out 2>err
        code=$?
        check "$2, $order: exit code $3" test "$code" = "$3"
        if [[ -z $4 ]]; then
            check "$2, $order: no hint" test ! -s err
        else
            check "$2, $order: a hint" grep -q "$4" err
            check "$2, $order: in one line" test "$(wc -l <err)" = 1
        fi
    done
}

"$toolkit/bin/nvcc" -o hints "$here/hints.cu" >out 2>err
check 'a program' test -x hints
depends='results of kernel .* depend on the order in which its threads run.*__syncthreads'
both hints missing_barrier 0 "$depends"
both hints reused_shared_memory 0 "$depends"
for wrong in same_sum same_sum_in_variable same_sum_in_number long_launch long_blocks many_threads; do both hints $wrong 0 "$depends"; done
both hints other_order_of_blocks 0 'results of kernel .* depend on the order in which its blocks run.*does a block read'
both hints unwritten_float 0 'device memory that nothing had written'
both hints unwritten_shared_double 0 'shared memory that nothing had written'
both hints unwritten_counter 0 'counted in managed memory that nothing had written'
both hints freed_counter 0 'counted in managed memory that nothing had written'
both hints shorts_of_minus_three 0 ''
both hints counter 0 ''
both hints host_pointer 0 'argument vector of kernel double_it has a pointer to host memory'
both hints device_pointer 0 ''
for kind in integers buffer tensor nested; do
    both hints unset_$kind 0 ''
done
both hints host_extents 0 'argument extents of kernel use_extents has a pointer to host memory'
both hints host_nested 0 'argument nested of kernel use_nested has a pointer to host memory'
for way in copied argument managed; do
    both hints virtual_$way 0 'handed an object with virtual functions to the device'
done
both hints virtual_of_the_device 0 ''
both hints unwritten_flag 3 'status 3. Nothing has written to 1 bytes of managed memory'
both hints failure 3 'ends with status 3'
./hints assertion >out 2>err
check 'a failed assertion: exit code 134' test $? = 134
check 'a hint behind it' grep -q 'launched kernels and aborts, as assert() does' err
both hints short_host_array 139 'copy of 8192 bytes from host memory .* after at most 4096 bytes'
CUDA_ON_CPU_ORDER=ascending ./hints racy_index >out 2>err
check 'an index that a race has changed' grep -q 'illegal access .*, 4000 byte(s) past the end' err
check 'a hint where to look' grep -q 'an index that a race has changed.*course inspect' err
for right in append sum_in_any_order lock clock places objects memory reduction printing large unwritten_tail own_sums own_sums_in_variable list_in_variable long_and_right many_and_right nans; do
    both hints $right 0 ''
done
check 'a kernel prints once' test "$(CUDA_ON_CPU_ORDER=ascending ./hints printing)" = 'from the kernel'
CUDA_ON_CPU_HINTS=off both hints missing_barrier 0 ''

"$toolkit/bin/nvcc" -o hints_atomics "$here/hints_atomics.cu" >out 2>err
for wrong in histogram_not_cleared histogram_not_complete sum_without_barriers maximum_without_barriers \
    dot_not_complete double_sum_without_barriers scan_without_a_barrier chain_without_a_barrier last_block_without_barrier; do
    both hints_atomics $wrong 0 "kernel $wrong depend on the order in which its threads run"
done
for right in histogram sum normalise double_sums scan chain last_block compact compact_by_warps push_under_a_lock relax relax_own relax_both_ways peel \
    sum_by_swaps tickets_in_ptx random_places; do
    both hints_atomics $right 0 ''
done

if [[ -e $toolkit/lib64/cuda_on_cpu_whole_program.o ]]; then  # it can inspect: what the copies do must not show
    "$toolkit/bin/nvcc" --inspect -o inspected "$here/hints_atomics.cu" >out 2>err
    for right in histogram sum normalise double_sums last_block compact; do
        ./inspected $right >out 2>err
        check "$right inspected: exit code 0" test $? = 0
        check "$right inspected: no finding" test "$(grep -c FINDING err)" = 0
    done
    "$toolkit/bin/nvcc" --inspect -o inspected "$here/hints.cu" >out 2>err
    for way in copied argument managed; do
        ./inspected virtual_$way >out 2>err
        check "virtual_$way inspected: the same hint" grep -q 'handed an object with virtual functions to the device' err
    done
    for right in virtual_of_the_device host_pointer unwritten_float; do
        ./inspected $right >out 2>err
        check "$right inspected: no hint" test "$(grep -c 'CUDA_ON_CPU_HINTS' err)" = 0
    done
fi

"$toolkit/bin/nvcc" -o steps "$here/warp_synchronous.cu" >out 2>err
"$toolkit/bin/nvcc" -c -o unset.o "$here/unset.cu" >out 2>unset.err
check 'warp-synchronous code is named' grep -q 'warp_synchronous.cu:8: warning: lanes of a warp .*__syncwarp' err
for line in 12:sum 19:c 25:best; do
    check "the variable of line $line is unset" grep -q "unset.cu:${line%:*}:.*${line#*:}.*\(nothing has set it\|used uninitialized\|be used uninitialized\)" unset.err
done
check 'and no other' test "$(grep -c 'warning: ' unset.err)" -le 5
check 'through plain shared memory, too' grep -q "warp_synchronous.cu:34: warning: .*the shared 's' without __syncwarp" err
check 'in an array, too' grep -q 'warp_synchronous.cu:27: warning: lanes of a warp .*__syncwarp' err
for order in ascending descending; do
    CUDA_ON_CPU_ORDER=$order CUDA_ON_CPU_LOCKSTEP=1 ./steps >out 2>err
    check "in lockstep it runs as on old GPUs, $order" test "$(cat out)" = '2080 496 31'
    check "and nothing is told, $order" test ! -s err
done

((failures == 0)) || echo "$failures failed"
exit $((failures > 0))
