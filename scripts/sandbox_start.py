"""The last preparations of scripts/sandbox.sh, which starts it: sandbox_start.py COMMAND...

- A new session keyring, because the teacher's may hold passwords and tickets.
- No open files but the first three, because bwrap closes none for the command, and two for bwrap: 3,
  its arguments, and 4, a filter of system calls without user namespaces and keyrings.
"""

import ctypes
import errno
import os
import struct
import sys

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # of BPF
ALLOW, ERROR = 0x7FFF0000, 0x00050000
NEW_USER = 0x10000000  # CLONE_NEWUSER
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data; little-endian
CLONE3 = 435
# AUDIT_ARCH_..., then the numbers of system calls.
MACHINES = {
    "x86_64": (0xC000003E, {"clone": 56, "unshare": 272, "setns": 308, "keys": (248, 249, 250)}),
    "aarch64": (0xC00000B7, {"clone": 220, "unshare": 97, "setns": 268, "keys": (217, 218, 219)}),
}


def filter_of(architecture, numbers):
    steps = []

    def add(code, value, if_true=0, if_false=0):
        steps.append(struct.pack("<HBBI", code, if_true, if_false, value))

    def refuse(number, error):
        add(EQUAL, number, 0, 1)
        add(RETURN, ERROR | error)

    add(LOAD, ARCHITECTURE)
    add(EQUAL, architecture, 1, 0)
    add(RETURN, ERROR | errno.ENOSYS)
    add(LOAD, NUMBER)
    if architecture == MACHINES["x86_64"][0]:
        add(AT_LEAST, 0x40000000, 0, 1)  # x32 has other numbers
        add(RETURN, ERROR | errno.ENOSYS)
    refuse(CLONE3, errno.ENOSYS)  # its flags are in memory; libraries then use clone
    for number in (numbers["setns"], *numbers["keys"]):
        refuse(number, errno.EPERM)
    add(EQUAL, numbers["clone"], 2, 0)
    add(EQUAL, numbers["unshare"], 1, 0)
    add(RETURN, ALLOW)
    add(LOAD, FIRST_ARGUMENT)
    add(ANY_BIT, NEW_USER, 0, 1)
    add(RETURN, ERROR | errno.EPERM)
    add(RETURN, ALLOW)
    return b"".join(steps)


def main():
    machine = os.uname().machine
    if machine not in MACHINES:
        sys.exit(f"sandbox.sh: there is no filter of system calls for {machine}; expected x86_64 or aarch64")
    architecture, numbers = MACHINES[machine]
    # keyctl(KEYCTL_JOIN_SESSION_KEYRING, NULL). Where it is refused, there are no keys to read.
    ctypes.CDLL(None).syscall(numbers["keys"][2], 1, None)
    os.closerange(4, 1 << 20)
    read, write = os.pipe()
    os.write(write, filter_of(architecture, numbers))
    os.close(write)
    os.dup2(read, 4)  # inheritable; the pipe may have been 4 itself
    os.set_inheritable(4, True)
    os.closerange(5, 16)
    os.execvp(sys.argv[1], sys.argv[1:])


main()
