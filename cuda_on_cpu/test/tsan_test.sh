#!/usr/bin/env bash
# Builds the runtime and host_threads_test with ThreadSanitizer, in build/cpu-threads, and runs the test
# with each order of work in streams. A data race ends it. On two idle cores it takes about two minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."

cmake --preset cpu-threads >/dev/null
cmake --build --preset cpu-threads --target host_threads_test
# Older versions of the sanitizer expect little randomness in addresses.
fixed=()
! setarch -R true 2>/dev/null || fixed=(setarch -R)
for order in issue late random:1; do
    TSAN_OPTIONS="halt_on_error=1" CUDA_ON_CPU_STREAMS=$order CUDA_ON_CPU_THREADS=3 \
        timeout 120 "${fixed[@]}" build/cpu-threads/bin/host_threads_test
done
