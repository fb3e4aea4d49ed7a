#!/usr/bin/env python3
"""Packs an installed stand-in into a Python wheel: `pip install FILE.whl` brings the command
cuda-on-cpu-nvcc.

    cmake -S cuda_on_cpu -B build_cuda_on_cpu && cmake --build build_cuda_on_cpu
    cuda_on_cpu/python/make_wheel.py build_cuda_on_cpu  cuda_on_cpu-1.0.0-py3-none-linux_x86_64.whl in this directory

Of the system it needs g++ and binutils when it compiles, as nvcc does.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent


def version_of(build):
    found = re.search(
        r"^CMAKE_PROJECT_VERSION:STATIC=(.+)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE
    )
    if not found:
        raise SystemExit(f"{build} is no build of `cmake -S cuda_on_cpu`")
    return found[1]


def files_of(build, version):
    """Each file of the wheel: (name, content, is a program)."""
    yield "cuda_on_cpu/__init__.py", (HERE / "cuda_on_cpu.py").read_bytes(), False
    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run(
            ["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL
        )
        lib = pathlib.Path(prefix) / "lib"
        for path in sorted(lib.rglob("*")):
            if path.is_file():
                yield f"cuda_on_cpu/lib/{path.relative_to(lib)}", path.read_bytes(), os.access(path, os.X_OK)
    yield "cuda_on_cpu/lib/cuda_on_cpu/nvvm/libdevice/README", b"CMake looks for this directory.\n", False
    info = f"cuda_on_cpu-{version}.dist-info"
    yield f"{info}/METADATA", (
        f"Metadata-Version: 2.1\nName: cuda_on_cpu\nVersion: {version}\nSummary: nvcc for machines without a GPU: "
        "CUDA C++ runs on the CPU\nLicense: MIT\nRequires-Python: >=3.8\n"
    ).encode(), False
    yield f"{info}/LICENSE", (HERE.parent / "LICENSE").read_bytes(), False
    yield f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: make_wheel\nRoot-Is-Purelib: false\nTag: {tag()}\n".encode(), False
    yield f"{info}/entry_points.txt", b"[console_scripts]\ncuda-on-cpu-nvcc = cuda_on_cpu:main\n", False


def tag():
    return "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


def make_wheel(build, output):
    version = version_of(build)
    wheel = output / f"cuda_on_cpu-{version}-{tag()}.whl"
    record = f"cuda_on_cpu-{version}.dist-info/RECORD"
    lines = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name, content, is_program):
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)

        for name, content, is_program in files_of(build, version):
            add(name, content, is_program)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}")
        add(record, "\n".join([*lines, f"{record},,", ""]).encode(), False)
    return wheel


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", type=pathlib.Path, metavar="BUILD", help="of `cmake -S cuda_on_cpu`")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."), metavar="DIRECTORY")
    options = parser.parse_args()
    print(make_wheel(options.build.resolve(), options.output))
    return 0


if __name__ == "__main__":
    sys.exit(main())
