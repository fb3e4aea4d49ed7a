#!/usr/bin/env bash
# Makes the Debian package, unpacks it into an empty directory, and does what its README says: the first program, as it is and
# inspected. Then what installed_test.sh does, with the unpacked files.
# usage: package_test.sh BUILD      BUILD: of `cmake -S cuda_on_cpu`; exit code 77: skipped
set -euo pipefail

build=$(realpath "$1")
here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
source=$(realpath "$here/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

for tool in dpkg-deb dpkg-shlibdeps; do
    command -v $tool >/dev/null || { echo "skipped: no $tool (Debian: dpkg-dev)"; exit 77; }
done
cd "$work"
export XDG_CACHE_HOME=$work/cache
cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work/package" >log 2>&1 || fail "cpack: $(cat log)"
packages=("$work"/package/*.deb)
dpkg-deb --extract "${packages[0]}" root
prefix=$work/root/usr
pages=$prefix/share/doc/cuda-on-cpu

# What belongs to it besides the files that compile.
for file in LICENSE copyright CHANGELOG.md README.md docs/settings.md; do
    [[ -s $pages/$file ]] || fail "the package has no $file"
done
! dpkg-deb --field "${packages[0]}" Depends | grep -q boost || [[ $(uname -m) != x86_64 ]] || fail "the package needs Boost"
version=$(dpkg-deb --field "${packages[0]}" Version)
grep -q "^## $version" "$pages/CHANGELOG.md" || fail "CHANGELOG.md does not list version $version"
"$source/scripts/check_links.py" "$pages" || fail "links of the installed pages"
"$source/scripts/check_links.py" "$source" || fail "links of the pages in the source"

# The README's first program, and each of the lines that it shows of what the program prints.
shown() { # N: the N-th block of code behind "A first program"
    awk -v n="$1" '/^## /{on = /A first program/} on && /^```/{if (inside) inside = 0; else {inside = 1; ++block}; next}
                   on && inside && block == n' "$pages/README.md"
}
flat() { sed "s#$work/##g" "$1" | tr -s '[:space:]' ' '; }
expect_shown() { # N FILE: the file has the lines of the block, but for the command and what is left out; long lines are wrapped there
    local line
    while IFS= read -r line; do
        [[ $line == '$ '* || $line == '...' ]] || grep -qF -- "$(tr -s ' ' <<<"${line% ...}")" <<<"$(flat "$2")" ||
            fail "README: '$line' is not in: $(cat "$2")"
    done < <(shown "$1")
}
shown 1 >reverse.cu
nvcc=$prefix/bin/cuda-on-cpu-nvcc
"$nvcc" -o reverse reverse.cu || fail "the README's program does not compile"
./reverse >plain 2>&1 || true
expect_shown 2 plain
"$nvcc" --inspect -o reverse reverse.cu || fail "the README's program does not compile with --inspect"
./reverse >inspected 2>&1 || true
expect_shown 3 inspected
sed -i 's/^\( *\)mine\[threadIdx.x\] = copy/\1__syncthreads();\n&/' reverse.cu
"$nvcc" --inspect -o reverse reverse.cu
./reverse >mended 2>&1 || fail "the mended program: $(cat mended)"
grep -q '^63 0 127$' mended || fail "the mended program prints $(cat mended)"
! grep -q FINDING mended || fail "the mended program has a finding: $(cat mended)"

"$here/installed_test.sh" "$prefix"
