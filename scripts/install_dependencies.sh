#!/usr/bin/env bash
# Installs what the course is built with. On Debian and Ubuntu by apt-get, as root or through sudo;
# on any other system it prints what to install. Asks nothing, installs only what is missing, and is
# quick when nothing is.
set -euo pipefail

usage() {
    cat <<'END'
Installs what the course is built with (Debian and Ubuntu, by apt-get; elsewhere it prints the list).

usage: scripts/install_dependencies.sh [--check] [--libraries] [--cluster] [--python] [--site] [--developer] [--editor]
                                       [--engine] [--help]
  --check       only report what is missing
  --libraries   also what cuBLAS, cuFFT and Thrust stand on where there is no GPU (about 150 MB)
  --cluster     also Open MPI, with which day 50 runs in several processes. NCCL for GPUs comes from NVIDIA; without
                a GPU it is a part of cuda_on_cpu
  --python      also Python's headers and venv, with which the Python package is built
  --site        also Python's venv, in which the site's generator is installed, Chromium, which opens the pages to
                check them, and fonts that the pages may fall back on
  --developer   also clang-format 14, with which the sources are laid out (other versions lay them out differently),
                Node.js, with which the page of an inspection is tested, bubblewrap, the sandbox of
                ./course grade, and Boost.Context, which the preset cpu-sanitize needs
  --editor      also clangd, with which an editor reads the sources, and gdb
  --engine      also what tests cuda_on_cpu by itself (cuda_on_cpu/ci/steps.sh): clang++, Boost.Context for
                AddressSanitizer, a compiler for arm64 and an emulator, and what packages are made with
example: scripts/install_dependencies.sh --check

exit codes: 0 everything is there, 1 something is missing, 2 unknown argument
END
}

# package | generic name | how to see that it is there: a command, or "-" for a library | what it is for
packages=(
    "g++|GCC (C++20, OpenMP)|c++|compiles the course, and its kernels where there is no GPU"
    "cmake|CMake >= 3.25|cmake|describes the build"
    "ninja-build|Ninja|ninja|runs the build"
    "git|git|git|names the commit in measurements"
    "binutils|GNU binutils|ld|links, and turns addresses into source lines"
    "libgtest-dev|GoogleTest|-|the tests"
    "libcli11-dev|CLI11|-|command lines"
    "libfmt-dev|fmt|-|printed text"
    "nlohmann-json3-dev|nlohmann-json|-|measurement files"
    "libpng-dev|libpng|-|day 0's picture"
    "libopencv-imgcodecs-dev|OpenCV (core, imgproc, imgcodecs)|-|pictures, and the reference for convolution"
)
boost="libboost-context-dev|Boost.Context|-|fibres, under AddressSanitizer and on processors other than x86-64"
[[ $HOSTTYPE == x86_64 ]] || packages+=("$boost")
library_packages=(
    "libopenblas-dev|OpenBLAS|-|cuBLAS on the CPU"
    "libfftw3-dev|FFTW|-|cuFFT on the CPU"
    "libthrust-dev|Thrust|-|Thrust on the CPU"
    "libcub-dev|CUB|-|headers that Thrust includes"
)
cluster_packages=(
    "libopenmpi-dev|Open MPI|mpicxx|processes that send messages, day 50"
    "openmpi-bin|Open MPI's mpirun|mpirun|starts them"
)
python_packages=(
    "python3-dev|Python with its headers|python3-config|compiles the Python package"
    "python3-venv|Python's venv|python3-venv|a place to install the Python package in"
)
site_packages=(
    "python3-venv|Python's venv|python3-venv|a place to install the site's generator in"
    "chromium|Chromium|chromium|opens the site's pages to check them"
    "fonts-dejavu-core|DejaVu fonts|-|text in the pages that are checked"
)
developer_packages=(
    "clang-format-14|clang-format 14|clang-format-14|the layout of the sources"
    "codespell|codespell|codespell|the spelling of the text"
    "nodejs|Node.js|node|tests of the page of an inspection"
    "bubblewrap|bubblewrap|bwrap|the sandbox of ./course grade"
    "$boost"
)
editor_packages=(
    "clangd|clangd|clangd|errors and completion in an editor"
    "gdb|gdb|gdb|stops inside kernels"
)
engine_packages=(
    "$boost"
    "clang|Clang|clang++|the other compiler"
    "dpkg-dev|dpkg-dev|dpkg-shlibdeps|makes the Debian package"
    "python3-venv|Python's venv|python3-venv|a place to install the wheel in"
    "g++-aarch64-linux-gnu|GCC for arm64|aarch64-linux-gnu-g++|compiles tests for arm64"
    "qemu-user|QEMU|qemu-aarch64|runs them"
)

check_only=no
for argument in "$@"; do
    case $argument in
        --check) check_only=yes ;;
        --libraries) packages+=("${library_packages[@]}") ;;
        --cluster) packages+=("${cluster_packages[@]}") ;;
        --python) packages+=("${python_packages[@]}") ;;
        --site) packages+=("${site_packages[@]}") ;;
        --developer) packages+=("${developer_packages[@]}") ;;
        --editor) packages+=("${editor_packages[@]}") ;;
        --engine) packages+=("${engine_packages[@]}") ;;
        --help | -h) usage; exit 0 ;;
        *) echo "install_dependencies.sh: unknown argument '$argument'" >&2; usage >&2; exit 2 ;;
    esac
done

is_debian() { command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; }

cmake_is_recent() {
    local version
    version=$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
    [[ -n $version ]] && printf '3.25\n%s\n' "$version" | sort --check=quiet --version-sort
}

is_installed() { # PACKAGE COMMAND
    case $2 in
        -) [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]] ;;
        cmake) cmake_is_recent ;;
        python3-venv) python3 -c 'import ensurepip' >/dev/null 2>&1 ;;
        *) command -v "$2" >/dev/null ;;
    esac
}

print_table() { # FIELD ENTRY...: one line each; field 0 is the package, 1 the generic name
    local field=$1 entry columns
    shift
    for entry in "$@"; do
        IFS='|' read -ra columns <<<"$entry"
        printf '  %-34s %s\n' "${columns[$field]}" "${columns[3]}"
    done
}

if ! is_debian; then
    echo "This is neither Debian nor Ubuntu (no apt-get): install these by your system's own means." >&2
    print_table 1 "${packages[@]}" >&2
    exit 1
fi

find_missing() { # sets `missing`
    local entry package command
    missing=()
    for entry in "${packages[@]}"; do
        IFS='|' read -r package _ command _ <<<"$entry"
        is_installed "$package" "$command" || missing+=("$entry")
    done
}

find_missing
if [[ ${#missing[@]} == 0 ]]; then
    echo "Everything the course is built with is installed."
    exit 0
fi
if [[ $check_only == yes ]]; then
    echo "Missing:"
    print_table 0 "${missing[@]}"
    exit 1
fi

names=("${missing[@]%%|*}")
as_root=()
if [[ $EUID != 0 ]]; then
    if ! command -v sudo >/dev/null; then
        echo "Missing, and you are not root and have no sudo. Ask an administrator to run:" >&2
        echo "  apt-get install --no-install-recommends ${names[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
    [[ -t 0 ]] || as_root+=(--non-interactive)
fi

echo "Installing with apt-get${as_root:+, through sudo}:"
print_table 0 "${missing[@]}"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt_get() { # on a terminal apt-get shows its progress; elsewhere its output is shown only when it fails
    local command=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@")
    if [[ -t 1 ]]; then "${command[@]}"; else "${command[@]}" >"$log" 2>&1 </dev/null; fi
}

start=$SECONDS
apt_get --quiet update || echo "apt-get update did not succeed; trying with the package lists there are." >&2
if ! apt_get --yes --quiet install --no-install-recommends "${names[@]}"; then
    cat "$log" >&2
    echo "apt-get install failed; nothing of the course can help with that. The message is above." >&2
    exit 1
fi

hash -r
find_missing
if [[ ${#missing[@]} != 0 ]]; then
    echo "Installed, but still missing or too old:" >&2
    print_table 1 "${missing[@]}" >&2
    cmake_is_recent || echo "A newer CMake: https://cmake.org/download, or: pip install cmake" >&2
    exit 1
fi
echo "Installed in $((SECONDS - start)) s."
