#!/usr/bin/env bash
# Tests the ./course script (and the arguments of install_dependencies.sh) in a made-up checkout:
# its cmake "configures" and "builds" by writing files, and what it "builds" tells how it was
# started. usage: course_script_test.sh CHECKOUT
set -euo pipefail

checkout=$1
unset COURSE_PRESET COURSE_ROOT COURSE_BUILD_DIR CUDA_PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$(readlink -f "$work")/'a checkout'
mkdir -p "$root/scripts" "$work/tools" "$work/elsewhere"
sed "s|/usr/local/cuda|$work/no_toolkit|" "$checkout/course" >"$root/course"  # this machine may have one
chmod +x "$root/course"

cat >"$root/scripts/install_dependencies.sh" <<'END'
#!/bin/sh
exit 0
END
cat >"$work/tools/cmake" <<'END'
#!/usr/bin/env bash
set -euo pipefail
echo "$*" >>"$LOG"
case $1 in
    --fresh) # --fresh -S ROOT --preset PRESET
        build=$3/build/$5
        mkdir -p "$build/bin"
        echo "CMAKE_HOME_DIRECTORY:INTERNAL=$3" >"$build/CMakeCache.txt"
        touch "$build/build.ninja"
        echo 'day01  vectors' >"$build/days.txt"
        ;;
    --build)
        mkdir "$2/busy" || { echo 'two builds at once'; exit 1; }
        sleep "${BUILD_SECONDS:-0}"
        echo '[1/1] Building everything'
        printf '#!/bin/sh\nprintf "%%s|" "$PWD" "$COURSE_ROOT" "$COURSE_BUILD_DIR" "$@"\nexit 7\n' >"$2/bin/${4%_program}"
        chmod +x "$2/bin/${4%_program}"
        rmdir "$2/busy"
        [[ -z ${BUILD_FAILS:-} ]] || { echo 'the compiler said this'; exit 1; }
        ;;
esac
END
printf '#!/bin/sh\nexit 9\n' >"$work/tools/nvidia-smi"
printf '#!/bin/sh\nexit 0\n' >"$work/tools/ninja"
chmod +x "$work"/tools/* "$root"/scripts/*
export PATH=$work/tools:$PATH LOG=$work/log

failures=0
check() { # WHAT EXPECTED ACTUAL
    if [[ $2 == "$3" ]]; then echo "ok: $1"; return; fi
    echo "FAILED: $1"
    echo "  expected: $2"
    echo "  got:      $3"
    failures=$((failures + 1))
}
contains() { # WHAT PART WHOLE
    if [[ $3 == *"$2"* ]]; then echo "ok: $1"; return; fi
    echo "FAILED: $1: '$2' is not in: $3"
    failures=$((failures + 1))
}
run() { # sets `output` (stdout), `messages` (stderr) and `code`
    code=0
    output=$("$@" 2>"$work/messages") || code=$?
    messages=$(cat "$work/messages")
}

cd "$work/elsewhere"
run "$root/course" doctor
contains "the first build says what it takes of the disk" "2 GB there; ./course clean removes it" "$messages"
run "$root/course" doctor
[[ $messages != *GB* ]] && echo "ok: it is said once" || check "it is said once" '' "$messages"
rm -r "$root/build" && : >"$LOG"
run "$root/course" run 'two words' "a'b" '*' ''
check "from another directory, arguments as they are" \
    "$work/elsewhere|$root|$root/build/cpu|run|two words|a'b|*||" "$output"
check "the program's exit code" 7 "$code"
check "configured and built" "--fresh -S $root --preset cpu
--build $root/build/cpu --target course" "$(cat "$LOG")"

: >"$LOG"
run "$root/course" doctor
check "configured once" "--build $root/build/cpu --target course" "$(cat "$LOG")"

mkdir "$root/day01_vectors" "$root/day00_programs"
touch "$root/day01_vectors/vectors_bench.cpp"
for day in day01 day01_vectors; do
    rm -r "$root/build" && : >"$LOG"
    run "$root/course" run "$day" --size 5 'two words'
    check "the first run of $day: its program alone, arguments as they are" "$work/elsewhere|||--size|5|two words|" "$output"
    check "the first run of $day: the program's exit code" 7 "$code"
    check "the first run of $day builds no command" "--fresh -S $root --preset cpu
--build $root/build/cpu --target day01_vectors_program" "$(cat "$LOG")"
done
for arguments in 'day01 --mine' 'day01 -- --help' day00 vectors day1 'day0?' my.cu; do
    rm -r "$root/build" && : >"$LOG"
    run "$root/course" run $arguments
    contains "a first 'run $arguments' needs the command" "--target course" "$(cat "$LOG")"
done
: >"$LOG"
run "$root/course" run day01
check "where the command is, it runs the day" "--build $root/build/cpu --target course" "$(cat "$LOG")"

rm -r "$root/build" && : >"$LOG"
run "$root/course" list
check "list prints the days" 'day01  vectors' "$output"
check "list compiles nothing" "--fresh -S $root --preset cpu
--build $root/build/cpu --target build.ninja" "$(cat "$LOG")"

ln -s "$root/course" "$work/elsewhere/link"
run ./link doctor
check "through a symbolic link" "$work/elsewhere|$root|$root/build/cpu|doctor|" "$output"

COURSE_PRESET=cpu-sanitize run "$root/course" doctor
check "COURSE_PRESET" "$work/elsewhere|$root|$root/build/cpu-sanitize|doctor|" "$output"

COURSE_PRESET=inspect run "$root/course" doctor
check "COURSE_PRESET=inspect" "$work/elsewhere|$root|$root/build/inspect|doctor|" "$output"

COURSE_PRESET=cuda run "$root/course" doctor
check "an unknown preset is wrong usage" 2 "$code"
contains "an unknown preset: the choices" "'cuda'; expected cpu, gpu, cpu-sanitize, cpu-debug or inspect" "$messages"

mkdir "$root/moved"
cp -r "$root/course" "$root/scripts" "$root/build" "$root/moved/"
: >"$LOG"
run "$root/moved/course" doctor
contains "a copied checkout is configured anew" "--fresh -S $root/moved --preset cpu" "$(cat "$LOG")"

BUILD_FAILS=yes run "$root/course" doctor
check "a failed build is 3" 3 "$code"
contains "a failed build says why" 'the compiler said this' "$messages"

export BUILD_SECONDS=1
"$root/course" run >"$work/first" 2>&1 &
first=$!
run "$root/course" run
first_code=0
wait "$first" || first_code=$?
check "two at once: both get through" '7 7' "$first_code $code"

# The build directory is locked as long as file descriptor 8 is open here.
exec 8>>"$root/build/cpu.lock"
flock 8
echo "building day01" >"$root/build/cpu.lock"
: >"$LOG"
run timeout 20 "$root/course" hint
check "a command that builds nothing does not wait" 7 "$code"
check "a command that does not wait does not build" '' "$(cat "$LOG")"
run timeout 5 "$root/course" run
check "a command that builds waits" 124 "$code"
contains "the message names what it waits for" "waiting for another ./course, which has been building day01 for " "$messages"
exec 8>&-

# clean waits for each build, checks among them, and removes all but the locks.
for name in check inspect; do
    exec 8>>"$root/build/$name.lock"
    flock 8
    run timeout 2 "$root/course" clean
    check "clean waits for build/$name.lock" 124 "$code"
    contains "clean says that it waits for build/$name.lock" "waiting for another ./course" "$messages"
    exec 8>&-
done
check "what is locked is not removed" yes "$([[ -f $root/build/cpu/CMakeCache.txt ]] && echo yes)"
mkdir "$root/my" && touch "$root/my/kernel.cu"
: >"$LOG"
mkdir -p "$root/build/cpu/own/mine"
exec 8>>"$root/build/cpu/own/mine/lock"
flock 8
run timeout 2 "$root/course" clean
check "clean waits for the compilation of one's own program" 124 "$code"
exec 8>&-
run "$root/course" clean
check "clean builds nothing" '' "$(cat "$LOG")"
check "clean succeeds" 0 "$code"
contains "clean says what it freed" "removed the builds in $root/build, 0.0 GB; the next command builds again" "$output"
check "the locks are all that clean leaves" '' "$(find "$root/build" -mindepth 1 ! -name '*.lock')"
check "your files stay" yes "$([[ -f $root/my/kernel.cu ]] && echo yes)"
run "$root/course" clean
contains "clean twice" "nothing to clean" "$output"

# The site is built by a Python program: no C++ is built for it.
mkdir -p "$root/site"
printf 'import sys\nprint("site", *sys.argv[1:])\nsys.exit(6)\n' >"$root/site/build.py"
: >"$LOG"
run "$root/course" site --serve 8001
check "site hands its arguments on" "site --serve 8001" "$output"
check "site returns the exit code of the build" 6 "$code"
check "site builds nothing of C++" '' "$(cat "$LOG")"
mkdir "$work/no_python"
for tool in bash env cat readlink dirname mkdir; do ln -s "$(command -v "$tool")" "$work/no_python/"; done
PATH=$work/no_python run "$root/course" site
check "site without python3: exit code" 2 "$code"
contains "site without python3: what to install" "apt-get install python3" "$messages"

# Which GPU tools there are decides, not the machine that the test runs on.
printf '#!/bin/sh\necho "GPU 0: made up"\n' >"$work/tools/nvidia-smi"
printf '#!/bin/sh\nexit 0\n' >"$work/tools/nvcc"
chmod +x "$work/tools/nvcc"
export BUILD_SECONDS=0
run "$root/course" doctor
check "with nvcc and a GPU" "$work/elsewhere|$root|$root/build/gpu|doctor|" "$output"
printf '#!/bin/sh\necho cuda_on_cpu\n' >"$work/tools/nvcc"
PATH=$work/tools:/usr/bin:/bin run "$root/course" doctor
check "with a GPU, and an nvcc that compiles for the CPU" "$work/elsewhere|$root|$root/build/cpu|doctor|" "$output"
printf '#!/bin/sh\nexit 9\n' >"$work/tools/nvidia-smi"
run "$root/course" doctor
check "with nvcc, no GPU" "$work/elsewhere|$root|$root/build/cpu|doctor|" "$output"

run "$checkout/scripts/install_dependencies.sh" --wrong
check "install_dependencies.sh: an unknown argument is wrong usage" 2 "$code"
contains "install_dependencies.sh: names the argument" "'--wrong'" "$messages"
run "$checkout/scripts/install_dependencies.sh" --help
check "install_dependencies.sh --help" 0 "$code"

# A system without apt-get: the list, by names that no package has.
mkdir "$work/bare"
for tool in bash env cat; do ln -s "$(command -v "$tool")" "$work/bare/"; done
PATH=$work/bare run "$checkout/scripts/install_dependencies.sh"
check "install_dependencies.sh elsewhere: exit code" 1 "$code"
contains "install_dependencies.sh elsewhere: the list" 'GoogleTest' "$messages"

[[ $failures == 0 ]] || { echo "$failures failed"; exit 1; }
