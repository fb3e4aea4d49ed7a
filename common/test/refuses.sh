#!/usr/bin/env bash
# refuses.sh PROGRAM ARGUMENT...: does PROGRAM end with 2 and say what it expected? Exit code 1 if not.
said=$("$@" 2>&1 >/dev/null)
code=$?
[[ $code == 2 && $said == *expected* ]] && exit 0
echo "$*: exit code $code, expected 2; it said '$said', expected what it accepts"
exit 1
