#!/usr/bin/env bash
# Unpacks what cuda_on_cpu and its tests need of Debian's packages for arm64 into a directory; the system and its list of
# architectures stay as they are.
# usage: arm64_root.sh DIRECTORY
set -euo pipefail

mkdir -p "$1"
root=$(realpath "$1")
[[ ! -e $root/complete ]] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists,archives}/partial
of_arm64=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::status=/dev/null -o "Dir::State::Lists=$work/lists"
    -o "Dir::Cache=$work" -o APT::Sandbox::User=)
apt-get "${of_arm64[@]}" update
boost=$(apt-cache "${of_arm64[@]}" show libboost-context-dev | sed -n 's/^Depends: libboost-context\([0-9.]*\)-dev$/\1/p')
cd "$work"
apt-get "${of_arm64[@]}" download "libboost-context$boost-dev" "libboost$boost-dev" libgtest-dev nlohmann-json3-dev
for package in *.deb; do dpkg-deb --extract "$package" "$root"; done
touch "$root/complete"
