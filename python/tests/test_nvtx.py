"""Each call is inside a range that a profiler shows by its name. NVTX loads the library that
NVTX_INJECTION64_PATH names and calls its functions in place of its own: here a library that writes
down what it is called with, as Nsight Systems' does. That needs no GPU.
"""

import os
import shutil
import subprocess
import sys

import pytest

from cuda_day_by_day import _extension

# The tables of NVTX 3: 1 is that of its callbacks, and in it module 1 has push (9) and pop (11).
RECORDER = """
#include <stddef.h>
#include <stdio.h>
static int depth;
static int push(const char* name) { printf("%*s%s\\n", 2 * depth, "", name); return depth++; }
static int pop(void) { printf("%*send\\n", 2 * --depth, ""); fflush(stdout); return depth; }
typedef void (*Function)(void);
struct Callbacks { size_t size; int (*functions)(int module, Function*** table, unsigned* size); };
int InitializeInjectionNvtx2(const void* (*get_table)(unsigned)) {
    const struct Callbacks* callbacks = get_table(1);
    Function** table;
    unsigned size;
    if (!callbacks->functions(1, &table, &size) || size < 12) return 0;
    *table[9] = (Function)push;
    *table[11] = (Function)pop;
    return 1;
}
"""

CALLS = """
import numpy as np
import cuda_day_by_day as cdd

x = np.ones((4, 32), np.float16)
parameters = cdd.find_parameters(x)
cdd.dequantize(cdd.quantize(x))
cdd.quantize_with(x, *parameters)
cdd.dequantize_blocks(cdd.quantize_blocks(x, code="int8", block=32))
cdd.int8_matmul(x.astype(np.int8), x.astype(np.int8))
x = x.astype(np.float32)
cdd.log_softmax(x)
cdd.scan(x[0])
cdd.bmm(x, x.T)
cdd.bmm_argmin(x, x.T)
cdd.attention(x[None, None], x[None, None], x[None, None])
x = x.astype(np.float16)
try:
    cdd.quantize(x.astype(np.int64))
except TypeError:
    print("refused")
cdd.Int8Linear(x)(x)
"""


def ranges(tmp_path, calls):
    """What a profiler sees of these calls: the name of a range, and "end"."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("there is no C compiler")
    source, library = tmp_path / "recorder.c", tmp_path / "recorder.so"
    source.write_text(RECORDER)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    run = subprocess.run(
        [sys.executable, "-u", "-c", calls],
        env={**os.environ, "NVTX_INJECTION64_PATH": str(library)},
        check=True,
        capture_output=True,
        text=True,
    )
    return run.stdout.splitlines()


def test_each_call_is_a_range_with_its_name(tmp_path):
    if not _extension.has_nvtx:
        pytest.skip("the package was built without NVTX's headers")
    seen = ranges(tmp_path, CALLS)
    names = "find_parameters quantize dequantize quantize_with quantize_blocks dequantize_blocks int8_matmul".split()
    names += "log_softmax scan bmm bmm_argmin attention".split()
    expected = [line for name in names for line in (f"cuda_day_by_day.{name}", "end")]
    assert seen[: len(expected)] == expected
    # A call that is refused ends its range, too. The layer quantises its weights first.
    quantize, layer = ["cuda_day_by_day.quantize", "end"], ["cuda_day_by_day.llm_int8", "end"]
    assert seen[len(expected) :] == [*quantize, "refused", *quantize, *layer]


def test_without_nvtx_there_is_no_range(tmp_path):
    if _extension.has_nvtx:
        pytest.skip("the package was built with NVTX's headers")
    assert ranges(tmp_path, CALLS) == ["refused"]
