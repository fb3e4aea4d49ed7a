#!/usr/bin/env python3
"""Tests of try_foreign.py: what it makes of sources, of a compiler's messages and of what programs
print. No compiler is run but a script.
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import tempfile
import unittest
import unittest.mock

import try_foreign
from try_foreign import classify_build, classify_run, has_main, verdict


class Sources(unittest.TestCase):
    def test_a_definition_of_main(self):
        self.assertTrue(has_main("int main() {}"))
        self.assertTrue(has_main("#include <x>\nint\nmain(int argc, char *argv[])\n{ }"))
        self.assertTrue(has_main("void main(void){ }"))
        self.assertTrue(has_main("int main(int n, char** (*f)(int)) try { } catch (...) { }"))

    def test_no_definition_of_main(self):
        self.assertFalse(has_main("// int main() {}\n/* int main() {} */ int domain() {}"))
        self.assertFalse(has_main('const char* help = "int main() {}";'))
        self.assertFalse(has_main("int main(int argc, char** argv);"))


class Builds(unittest.TestCase):
    def test_a_header_that_is_not_there(self):
        self.assertEqual(
            classify_build("a.cu:1:10: fatal error: opencv2/core.hpp: No such file or directory"),
            ("needs", "OpenCV"),
        )
        self.assertEqual(
            classify_build("a.cu:1:10: fatal error: GL/glew.h: No such file or directory"),
            ("needs", "OpenGL"),
        )
        self.assertEqual(
            classify_build("a.cu:1:10: fatal error: my_utils.h: No such file or directory"),
            ("needs", "my_utils.h"),
        )

    def test_a_library_that_is_not_there(self):
        self.assertEqual(
            classify_build("nvcc fatal   : '-lcublas': this library of the CUDA Toolkit does not exist"),
            ("needs", "cuBLAS"),
        )
        self.assertEqual(
            classify_build("/usr/bin/ld: cannot find -lcusolver: No such file"), ("needs", "cuSOLVER")
        )
        self.assertEqual(classify_build("/usr/bin/ld.gold: error: cannot find -lfoo"), ("needs", "libfoo"))

    def test_the_first_error_without_directories(self):
        log = "In file included from b.cu\n/home/me/src/a b.cu:3:5: warning: x\n/home/me/src/a.cu:7:5: error: 'y' was not declared\n"
        self.assertEqual(classify_build(log), ("refused", "a.cu:7:5: error: 'y' was not declared"))
        self.assertEqual(
            classify_build("a.o: undefined reference to `f()'"),
            ("refused", "a.o: undefined reference to `f()'"),
        )


class Verdicts(unittest.TestCase):
    def verdict_of(self, *texts):
        return {verdict(text)[0] for text in texts}

    def test_right(self):
        self.assertEqual(
            self.verdict_of(
                "Test PASSED",
                "result: PASS",
                "Results match!",
                "all elements are correct",
                "0 errors, success",
                "No errors found. Test passed",
                "mismatches: 0\nverified",
                "max error = 1.2e-06",
                "Max diff: 0",
                "error rate: 0.000000",
                "Errors: 0, OK",
                "assert failed as expected",
                "✓ same as on the CPU",
            ),
            {"verified"},
        )

    def test_wrong(self):
        self.assertEqual(
            self.verdict_of(
                "Test FAILED",
                "Mismatch at 3: 1 vs 2",
                "results do not match",
                "Results don't match!",
                "Verification: incorrect",
                "PASSED\nFAILED",
                "match: false",
                "failed: 3",
                "✗ differs",
                "Results match: No",
            ),
            {"wrong"},
        )

    def test_nan(self):
        self.assertEqual(
            self.verdict_of("c[0] = nan", "max error: -nan", "1.0 NaN 2.0", "PASSED, sum -nan"), {"nan"}
        )
        self.assertEqual(self.verdict_of("nanosecond banana nan_count x.nan"), {"ran"})

    def test_nothing_is_said(self):
        self.assertEqual(
            self.verdict_of("", "1 2 3", "elapsed 3 ms", "max error: 7.5", "if failed, see the log"), {"ran"}
        )

    def test_the_size_of_the_l2_cache_is_no_difference(self):
        self.assertEqual(verdict("L2 cache size: 33554432 bytes"), ("ran", ""))
        self.assertEqual(verdict("L2 difference: 3"), ("ran", "largest difference that it prints: 3"))


class Runs(unittest.TestCase):
    REPORT = "cuda_on_cpu: kernel k: block (0,0,0), thread (1,0,0): illegal access to 0x10, in a.cu:7\n"

    def test_the_end_of_a_program(self):
        self.assertEqual(classify_run("PASSED", 0, False), ("verified", ""))
        self.assertEqual(classify_run("", 0, False)[0], "ran")
        self.assertEqual(classify_run("FAILED", 1, False)[0], "wrong")
        self.assertEqual(classify_run("FAILED", 0, False)[0], "wrong")
        self.assertEqual(classify_run("done\nlast words", 3, False), ("exit", "exit code 3: last words"))

    def test_findings_of_an_inspection(self):
        lines = (
            "PASSED\ncuda_on_cpu: inspected k: 2 blocks of 64 threads\n"
            "  FINDING uninitialised_read (3): a.cu:4: ...\n    thread (0, 0, 0) of block (0, 0, 0)\n"
            "  FINDING race (1): a.cu:3: ...\n  FINDING race (1): a.cu:5: ...\n"
            "cuda_on_cpu: inspection: 3 findings\n"
        )
        self.assertEqual(classify_run(lines, 0, False), ("found", "race, uninitialised_read"))
        clean = "PASSED\ncuda_on_cpu: inspected k: 2 blocks of 64 threads\ncuda_on_cpu: inspection: 0 findings\n"
        self.assertEqual(classify_run(clean, 0, False)[0], "verified")

    def test_a_signal(self):
        self.assertEqual(classify_run("begin", -11, False), ("crash", "SIGSEGV: begin"))
        self.assertEqual(classify_run("", 136, False), ("crash", "SIGFPE"))
        self.assertEqual(
            classify_run("a: a.cu:9: int main(): Assertion `x == y' failed.", -6, False)[0], "wrong"
        )

    def test_a_limit(self):
        self.assertEqual(
            classify_run("cuda_on_cpu: kernel k: still running after 7 s, in a.cu:3\n", -9, True)[0],
            "time limit",
        )
        self.assertEqual(classify_run("", -9, True, 0.9)[0], "time limit")
        self.assertEqual(classify_run("", -9, True, 0.01)[0], "silent")

    def test_a_report_of_the_stand_in(self):
        self.assertEqual(
            classify_run(self.REPORT, 0, False),
            ("reported", "kernel k: block (0,0,0), thread (1,0,0): illegal access to 0x10, in a.cu:7"),
        )
        self.assertEqual(classify_run(self.REPORT + "FAILED", 1, False)[0], "reported")
        self.assertEqual(classify_run(self.REPORT + "PASSED", 0, False)[0], "verified")
        self.assertEqual(classify_run("cuda_on_cpu: inspected k\nPASSED", 0, False), ("verified", ""))

    def test_a_note_of_the_stand_in(self):
        note = "cuda_on_cpu: cudaThreadSynchronize: CUDA 13 has this no more: use cudaDeviceSynchronize\n"
        slow = "cuda_on_cpu: kernel k: still running after 7 s, in a.cu:3\n"
        self.assertEqual(classify_run(note + slow + "1 2 3", 0, False), ("ran", ""))
        self.assertEqual(classify_run(note + "PASSED", 0, False), ("verified", ""))
        self.assertEqual(classify_run(note + self.REPORT, 0, False)[1][:10], "kernel k: ")

    def test_what_it_was_not_given(self):
        self.assertEqual(classify_run("Usage: a FILE", 1, False)[0], "usage")
        self.assertEqual(classify_run("usage: a FILE", 0, False)[0], "usage")
        self.assertEqual(classify_run("sum 3\nusage: 5 MB", 0, False)[0], "ran")
        self.assertEqual(classify_run("cannot open image.ppm", 255, False)[0], "usage")  # exit(-1)
        self.assertEqual(classify_run("Error: need run ./a.out <n>", 255, False)[0], "usage")
        self.assertEqual(classify_run("sum 3", 255, False), ("exit", "exit code 255: sum 3"))
        self.assertEqual(classify_run("cannot open image.ppm", 139, False)[0], "crash")
        self.assertEqual(classify_run("could not open image.ppm", 1, False)[0], "usage")


COMPILER = """#!/bin/sh
echo "$*" >>"$LOG"
case "$*" in *refused*) echo "refused.cu:1:1: error: no" >&2; exit 1 ;; esac
case "$*" in *part.cu*) ;; *whole*) echo "undefined reference to part()" >&2; exit 1 ;; esac
while [ $# -gt 0 ]; do case $1 in -o) made=$2 ;; esac; shift; done
printf '#!/bin/sh\\n[ -f data.txt ] && [ $CUDA_ON_CPU_ORDER = "${WRONG_IN:-$CUDA_ON_CPU_ORDER}" ] && echo "FAILED $1" || echo PASSED\\n' >"$made"
chmod +x "$made"
"""


class Corpus(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.temporary.name)
        self.write("nvcc", COMPILER).chmod(0o755)
        self.write("corpus/a/fine.cu", "int main() {}")
        self.write("corpus/a/fine", "the author's own program")
        self.write("corpus/a/kernels.cu", "int f();")
        self.write("corpus/b/whole.cu", '#include "included.cu"\n#include "x.h"\nint main() {}')
        self.write("corpus/b/part.cu", "")
        self.write("corpus/b/included.cu", "")
        self.write("corpus/b/inc/x.h", "#include <cublas_v2.h>")
        self.write("corpus/c/refused.cu", "int main() {}")
        self.write("corpus/d/wrong.cu", "int main() {}")
        self.write("corpus/d/data.txt", "")
        os.environ["LOG"] = str(self.root / "log")

    def tearDown(self):
        self.temporary.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def results(self, *options):
        with contextlib.redirect_stdout(io.StringIO()) as self.output:
            code = try_foreign.main(
                [
                    str(self.root / "corpus"),
                    "--nvcc",
                    str(self.root / "nvcc"),
                    "--json",
                    str(self.root / "json"),
                    "--markdown",
                    str(self.root / "markdown"),
                    *options,
                ]
            )
        self.assertEqual(code, 0)
        return {
            result["program"]: (result["class"], result["reason"])
            for result in json.loads((self.root / "json").read_text())
        }

    def test_each_program_is_built_and_run(self):
        self.assertEqual(
            self.results("--arguments", "*/wrong.cu:7"),
            {
                "a/fine.cu": ("verified", ""),
                "b/whole.cu": ("verified", ""),
                "c/refused.cu": ("refused", "refused.cu:1:1: error: no"),
                "d/wrong.cu": ("wrong", "7: FAILED 7"),
            },
        )
        log = (self.root / "log").read_text()
        self.assertIn("-I " + str(self.root / "corpus/b/inc"), log)
        self.assertIn("whole.cu " + str(self.root / "corpus/b/part.cu"), log)
        self.assertNotIn("included.cu", log)
        self.assertIn("-lcublas", log.splitlines()[1])  # of whole.cu, by a header of its own
        self.assertNotIn("-lcublas", log.splitlines()[0])
        self.assertIn("corpus         4      3               2 (50 %)", self.output.getvalue())
        self.assertIn("| corpus/d/wrong.cu | wrong | 7: FAILED 7 |", (self.root / "markdown").read_text())

    def test_a_library_is_linked_whose_header_is_included(self):
        self.write("corpus/g/sums.cu", "#include <nccl.h>\nint main() {}")
        program = try_foreign.Program(self.root, self.root / "corpus/g/sums.cu", [])
        self.assertEqual(program.libraries(), ["-lnccl"])

    def test_modules_are_made_and_sources_copied_for_programs_that_compile_them(self):
        self.write("corpus/e/loads.cu", '#define FILE_NAME "kernel64.fatbin"\nint main() {}')
        self.write("corpus/e/kernel.cu", "")
        self.write("corpus/f/compiles.cu", "#include <nvrtc.h>\nint main() {}")
        self.write("corpus/f/data.txt", "")  # without it the program says that it is right
        self.write("corpus/f/part.cu", "")
        self.assertEqual(self.results("--only", "loads")["e/loads.cu"][0], "verified")
        made = [line for line in (self.root / "log").read_text().splitlines() if "-fatbin" in line]
        self.assertEqual(len(made), 1)
        self.assertRegex(made[0], "-o .*/kernel64.fatbin " + str(self.root / "corpus/e/kernel.cu"))
        program = try_foreign.Program(self.root, self.root / "corpus/f/compiles.cu", [])
        self.assertIn("-lnvrtc", program.libraries())
        self.write("scratch/.keep", "")
        try_foreign.copy_data(self.root / "corpus/f", self.root / "scratch", without=())
        self.assertTrue((self.root / "scratch/part.cu").is_file())

    def test_headers_of_the_toolkit_are_copied_as_its_cmake_file_does(self):
        self.write(
            "corpus/h/CMakeLists.txt",
            "copy ${CUDA_INCLUDE_DIR}/groups.h ${CMAKE_CURRENT_BINARY_DIR} ${CUDA_INCLUDE_DIR}/none.h",
        )
        self.write("toolkit/bin/nvcc", "")
        self.write("toolkit/include/groups.h", "")
        self.write("scratch/.keep", "")
        program = try_foreign.Program(self.root, self.write("corpus/h/compiles.cu", "int main() {}"), [])
        try_foreign.copy_toolkit_headers(
            program, self.root / "scratch", argparse.Namespace(nvcc=str(self.root / "toolkit/bin/nvcc"))
        )
        self.assertEqual(
            [path.name for path in (self.root / "scratch").iterdir() if path.suffix == ".h"], ["groups.h"]
        )

    def test_a_busy_machine_gives_more_time(self):
        wait = ["sh", "-c", "sleep 0.4 & wait; echo done"]
        self.assertTrue(
            try_foreign.run(wait, self.root, 0.2, patience=9).timed_out
        )  # it does not want the processor
        with unittest.mock.patch("try_foreign.is_runnable", lambda process: True):
            self.assertFalse(try_foreign.run(wait, self.root, 0.2, patience=9).timed_out)
            self.assertTrue(try_foreign.run(wait, self.root, 0.2, patience=1).timed_out)
            with unittest.mock.patch("try_foreign.cpu_seconds", lambda process: 0.3):  # it has had its time
                self.assertTrue(try_foreign.run(wait, self.root, 0.2, patience=9).timed_out)

    def test_sources_of_headers_elsewhere_are_linked(self):
        self.write("corpus/g/whole.cu", '#include "part.h"\nint main() {}')
        self.write("Common/part.h", "int part();")
        self.write("Common/part.cu", "int part() { return 0; }")
        self.write("Common/other.cu", "")
        self.assertEqual(self.results("--only", "g/")["g/whole.cu"][0], "refused")
        self.assertEqual(
            self.results("--only", "g/", "-I", str(self.root / "Common"))["g/whole.cu"][0], "verified"
        )
        self.assertNotIn("other.cu", (self.root / "log").read_text())

    def test_both_orders(self):
        os.environ["WRONG_IN"] = "descending"
        self.addCleanup(os.environ.pop, "WRONG_IN")
        self.assertEqual(self.results("--only", "wrong")["d/wrong.cu"][0], "verified")
        self.assertEqual(
            self.results("--only", "wrong", "--order", "both")["d/wrong.cu"], ("wrong", "descending: FAILED")
        )

    def test_the_sources_are_left_as_they_are(self):
        before = sorted(self.root.rglob("corpus/**/*"))
        self.results("--exclude", "*/refused.cu")
        self.assertEqual(sorted(self.root.rglob("corpus/**/*")), before)


if __name__ == "__main__":
    unittest.main()
