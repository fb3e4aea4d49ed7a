"""nvcc for machines without a GPU: `cuda-on-cpu-nvcc hello.cu && ./a.out`; in a notebook `%load_ext
cuda_on_cpu`, then a cell that begins with %%cuda.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

toolkit = pathlib.Path(__file__).resolve().parent / "lib" / "cuda_on_cpu"  # laid out as a CUDA Toolkit
nvcc = toolkit / "bin" / "nvcc"


def main():
    """The command cuda-on-cpu-nvcc."""
    os.execv(nvcc, [str(nvcc), *sys.argv[1:]])


def run(text, *options, arguments=()):
    """Compiles a program of CUDA C++ with these options of nvcc and runs it. Returns what both have
    printed.
    """
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory) / "cell.cu"
        program = source.with_suffix("")
        source.write_text(text)
        for command in ([nvcc, *options, "-o", program, source], [program, *arguments]):
            done = subprocess.run(
                [str(part) for part in command],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
            if done.returncode != 0:
                return done.stdout + f"exit code {done.returncode}\n"
        return done.stdout


def load_ipython_extension(shell):
    """%%cuda [--inspect] [other options of nvcc]: the rest of the cell is a program."""

    def cuda(line, cell):
        print(run(cell, *line.split()), end="")

    shell.register_magic_function(cuda, "cell", "cuda")
