#!/usr/bin/env bash
# What continuous integration runs of cuda_on_cpu as a project of its own. Each step builds in a directory of its own, without
# optimisation: the tests are small, and compiling takes most of the time.
#
# usage: ci/steps.sh STEP DIRECTORY    DIRECTORY: for the builds
#   packages     without tests: the Debian package and the wheel, and what they compile; nvcc's own tests are the course's
#   clang        tests, by clang++
#   sanitizers   tests, with AddressSanitizer and UndefinedBehaviorSanitizer
#   fuzz         tokens, translation and merging, with 60,000 of libFuzzer's texts, about a minute (by clang++);
#                CUDA_ON_CPU_FUZZ_SEED chooses others
#   arm64        tests, cross-compiled, in qemu; launches_test is an inspection
#
# The last line is "N passed, N failed, N skipped". A step whose tools are missing is skipped, unless
# CUDA_ON_CPU_CI_NEEDS_ALL is set: then it fails.
set -euo pipefail

source=$(dirname -- "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")")

skip() { # REASON
    if [[ -n ${CUDA_ON_CPU_CI_NEEDS_ALL-} ]]; then
        echo "not skipped, as CUDA_ON_CPU_CI_NEEDS_ALL is set: $1"
        echo "0 passed, 1 failed, 0 skipped"
        exit 1
    fi
    echo "skipped: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

need() { # COMMAND PACKAGE
    command -v "$1" >/dev/null || skip "no $1 (Debian: $2)"
}

quietly() { # LOG COMMAND...
    local log=$1
    shift
    "$@" >"$log" 2>&1 || { cat "$log"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
}

configure() { # OPTION...
    mkdir -p "$build"
    quietly "$build/configure.log" cmake -G Ninja -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-g1 "$@"
}

# Those of ctest.
run_tests() { # REGULAR_EXPRESSION
    local code=0 figures
    ctest --test-dir "$build" --no-tests=error --output-on-failure --parallel "$(nproc)" -R "$1" --output-junit tests.xml >"$build/tests.log" 2>&1 || code=$?
    [[ $code == 0 ]] || cat "$build/tests.log"
    [[ -e $build/tests.xml ]] || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
    figures=$(tr '\n\t' '  ' <"$build/tests.xml" | sed -n 's/.*<testsuite [^>]*tests="\([0-9]*\)" *failures="\([0-9]*\)" *disabled="\([0-9]*\)" *skipped="\([0-9]*\)".*/\1 \2 \3 \4/p')
    read -r tests failures disabled skipped <<<"$figures"
    echo "$((tests - failures - disabled - skipped)) passed, $failures failed, $((disabled + skipped)) skipped"
    [[ -z ${CUDA_ON_CPU_CI_NEEDS_ALL-} || $skipped == 0 ]] || code=1
    exit "$code"
}

# Builds these tests and runs each in one process, in each of ORDERS. EMULATOR runs them where they are
# for another processor.
build_and_run() { # TEST...
    quietly "$build/build.log" cmake --build "$build" --target "$@"
    local test order passed=0 failed=0 skipped=0
    for test in "$@"; do
        for order in $ORDERS; do
            [[ $test != translator_test || $order == ascending ]] || continue  # has no kernels
            CUDA_ON_CPU_ORDER=$order "${EMULATOR[@]}" "$build/bin/$test" --gtest_brief=1 >"$build/tests.log" 2>&1 || {
                echo "$test, $order: exit code $?"
                cat "$build/tests.log"
                failed=$((failed + 1))
            }
            passed=$((passed + $(count PASSED)))
            skipped=$((skipped + $(count SKIPPED)))
        done
    done
    echo "$passed passed, $failed failed, $skipped skipped"
    exit $((failed > 0))
}
EMULATOR=() ORDERS="ascending descending"
count() { # RESULT: so many tests, as GoogleTest sums them up
    sed -n "s/^\[ *$1 *\] \([0-9]*\) tests*[.,].*/\1/p" "$build/tests.log" | tail -n 1 | grep . || echo 0
}

packages() {
    need dpkg-shlibdeps dpkg-dev
    python3 -c 'import ensurepip' 2>/dev/null || skip "no virtual environments of Python (Debian: python3-venv)"
    configure -DCUDA_ON_CPU_TESTS=OFF
    quietly "$build/build.log" cmake --build "$build"
    run_tests '^(package|wheel)$'
}

clang() {
    need clang++ clang
    configure -DCUDA_ON_CPU_TESTS=ON -DCMAKE_CXX_COMPILER=clang++
    build_and_run translator_test streams_test barriers_test warp_test cooperative_groups_test hopper_reports_test
}

sanitizers() {
    [[ -e /usr/include/boost/context/detail/fcontext.hpp ]] || skip "no Boost.Context (Debian: libboost-context-dev)"
    configure -DCUDA_ON_CPU_TESTS=ON -DCUDA_ON_CPU_SANITIZE=address,undefined
    build_and_run translator_test streams_test barriers_test warp_test
}

fuzz() {
    need clang++ clang
    [[ -e /usr/include/boost/context/detail/fcontext.hpp ]] || skip "no Boost.Context (Debian: libboost-context-dev)"
    configure -DCMAKE_CXX_COMPILER=clang++ -DCUDA_ON_CPU_FUZZER=ON \
        -DCMAKE_CXX_FLAGS="-g1 -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
    quietly "$build/build.log" cmake --build "$build" --target translator_fuzzer
    mkdir -p "$build/found"
    quietly "$build/fuzz.log" "$build/bin/translator_fuzzer" -seed="${CUDA_ON_CPU_FUZZ_SEED:-1}" -runs=60000 -max_total_time=120 -max_len=2048 -timeout=10 -print_final_stats=1 \
        -artifact_prefix="$build/" "$build/found" "$source/test/fuzz/corpus"
    grep '^stat::number_of_executed_units' "$build/fuzz.log"
    echo "1 passed, 0 failed, 0 skipped"
}

arm64() {
    need aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
    need qemu-aarch64 qemu-user
    need apt-get apt
    "$source/ci/arm64_root.sh" "$build/root" || skip "no packages for arm64"
    # The translator runs here: the one of the step `packages`, where it was built.
    local translator=$build/../packages
    [[ -e $translator/CMakeCache.txt ]] || translator=$build/translator
    quietly "$build/translator-configure.log" cmake -G Ninja -S "$source" -B "$translator"
    quietly "$build/translator-build.log" cmake --build "$translator" --target cuda_on_cpu_compile
    # The translator and the reports call the host's binutils by name; here they must be those for arm64.
    mkdir -p "$build/tools"
    for tool in addr2line nm objcopy; do ln -sf "$(command -v aarch64-linux-gnu-$tool)" "$build/tools/$tool"; done
    export PATH=$build/tools:$PATH
    configure -DCMAKE_TOOLCHAIN_FILE="$source/ci/arm64.cmake" -DARM64_ROOT="$build/root" -DBoost_NO_BOOST_CMAKE=ON \
        -DCUDA_ON_CPU_TESTS=ON -DCUDA_ON_CPU_TRANSLATOR="$(realpath "$translator")/bin/cuda_on_cpu_compile"
    EMULATOR=(qemu-aarch64 -L /usr/aarch64-linux-gnu) ORDERS=ascending
    build_and_run barriers_test warp_test pipeline_test launches_test
}

case ${1-} in
    packages | clang | sanitizers | fuzz | arm64)
        [[ $# == 2 ]] || { echo "steps.sh: $# arguments; expected STEP DIRECTORY" >&2; exit 2; }
        mkdir -p "$2/$1"
        build=$(realpath "$2/$1")
        "$1"
        ;;
    *) echo "steps.sh: the step is '${1-}'; expected packages, clang, sanitizers, fuzz or arm64" >&2; exit 2 ;;
esac
