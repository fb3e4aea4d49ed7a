#!/usr/bin/env python3
"""Tests of mutate_stores.py: which statements it finds and what it writes before them. And every statement of
equivalent_mutants.txt is still in its day's files."""

import unittest

import mutate_stores

STAGED = mutate_stores.HEAD + "#line 1\n"


def found(body, kind="store"):
    """The statements of a kind in a function's body."""
    text = "__global__ void kernel(float* out, float& sum, int n) {" + body + "}"
    source = mutate_stores.Source(text)
    [brace] = source.bodies()
    places = [(source.places[first], source.end_of(semicolon)) for first, semicolon in source.found(brace, [kind])]
    return [text[begin:end] for begin, end in sorted(places)]


class Statements(unittest.TestCase):
    def test_assignments_to_elements_and_through_pointers(self):
        for store in [
            "out[i] = x;",
            "*out += x;",
            "++out[i];",
            "out[i]--;",
            "c(row, col) = sum;",
            "p->next[2].x <<= 1;",
            "*reinterpret_cast<float4*>(out + 4 * i) = {a, b};",
            "sum += 1;",  # a reference
        ]:
            self.assertEqual(found(store), [store])

    def test_calls_whose_result_is_not_used(self):
        for store in [
            "atomicAdd(out, x);",
            "course::ptx::cp_async<16>(&tile[i], in);",
            "tile.template load<true>(in);",
            "cuda::atomic_ref<int>(*out).store(1);",
            "add<<<blocks, kBlock, 0, stream>>>(a, n);",
            "add<float, 4><<<blocks, kBlock>>>(a, n);",
            "CUDA_CHECK(cudaMemcpy(a, b, n, cudaMemcpyDeviceToHost));",
        ]:
            self.assertEqual(found(store), [store])

    def test_barriers_are_a_kind_of_their_own(self):
        for barrier in [
            "__syncthreads();",
            "cp_async_wait<1>();",
            "grid.sync();",
            "CUDA_CHECK(cudaEventRecord(done, stream));",
        ]:
            self.assertEqual(found(barrier, "barrier"), [barrier])
            self.assertEqual(found(barrier), [])
        stores = "cp_async_16(a, b); cudaMemcpyAsync(a, b, n); wmma::mma_sync(c, a, b, c); wmma::store_matrix_sync(c, d);"
        self.assertEqual(found(stores, "barrier"), [])

    def test_what_is_neither(self):
        for text in [
            "float x = out[i];",
            "float values[2] = {0, 1};",
            "__shared__ float tile[kBlock];",
            "const auto f = [&](int i) { return out[i]; };",
            "constexpr int n = f(2);",
            "Tile<float> tile(out);",
            "dim3 grid(4, 5);",
            "local = 3; local += out[i]; ++local;",
            "float* p = out + n; float& y = out[2];",
            "return out[0] = 1;",
            'require(n > 0, "n"); CUDA_CHECK(cudaGetLastError()); std::printf("%d", n);',
            "if (a < b && c > (d)) return;",
            "ptx::registers_increase<240>(); hold(sums); prefetch_l2(in);",
        ]:
            self.assertEqual(found(text) + found(text, "barrier"), [], text)

    def test_a_shared_variable_is_written_for_others(self):
        self.assertEqual(found("__shared__ bool is_last; is_last = true;"), ["is_last = true;"])

    def test_statements_of_blocks_and_lambdas(self):
        self.assertEqual(
            found("for (int i = 0; i < n; ++i) if (i > 2) out[i] = 1; else { out[i] = 2; }"), ["out[i] = 1;", "out[i] = 2;"]
        )
        self.assertEqual(found("do *out = 1; while (f(n));"), ["*out = 1;"])
        self.assertEqual(found("const auto f = [&](int i) { out[i] = 1; };"), ["out[i] = 1;"])
        self.assertEqual(found("for_each(n, [&] { *out = 1; });"), ["for_each(n, [&] { *out = 1; });", "*out = 1;"])
        self.assertEqual(found("switch (n) { case 1: *out = 1; break; default: *out = 2; }"), ["*out = 1;", "*out = 2;"])

    def test_comments_and_preprocessor(self):
        self.assertEqual(found("// out[0] = 1;\n/* *out = 1; */\n#define A out[1] = 1;\n *out = 2;"), ["*out = 2;"])


class Mutants(unittest.TestCase):
    exercises = [{"id": "day97/first"}, {"id": "day97/second"}]

    def mutate(self, text, repaired=None):
        return mutate_stores.mutate(STAGED + text, "sum.cuh", self.exercises, ["store"], repaired, 5)

    def test_conditions_stand_on_the_line_of_the_statement(self):
        text, [mutant] = self.mutate("// a\nvoid f(float* out) { if (course_is_blank(2)) return;\n    *out =\n        1;\n}\n")
        self.assertEqual((mutant.number, mutant.exercise["id"], mutant.line), (5, "day97/second", 3))
        self.assertEqual(mutant.text, "*out = 1;")
        self.assertTrue(text.endswith("return;\n    { if (course_keeps(5)) *out =\n        1; }\n}\n"))

    def test_one_statement_in_another(self):
        text, mutants = self.mutate("void f(int* a) { if (course_is_blank(1)) return; each([&] { *a = 1; }); }")
        self.assertEqual([(m.number, m.text) for m in mutants], [(5, "*a = 1;"), (6, "each([&] { *a = 1; });")])
        self.assertTrue(
            text.endswith("return; { if (course_keeps(6)) each([&] { { if (course_keeps(5)) *a = 1; } }); } }")
        )

    def test_only_functions_of_exercises(self):
        helper = "void g(int* a) { *a = 1; }"
        self.assertEqual(self.mutate(helper)[1], [])
        self.assertEqual(len(self.mutate(helper, repaired=self.exercises[0])[1]), 1)


class Equivalents(unittest.TestCase):
    def test_reasons_are_read(self):
        text = "# About.\n\nday97/first: *out = 1;\n    It is 1\n    already.\n"
        self.assertEqual(mutate_stores.read_equivalents(text), {("day97/first", "*out = 1;"): "It is 1 already."})

    def test_each_statement_is_in_its_day(self):
        for (exercise, statement), reason in mutate_stores.read_equivalents(mutate_stores.EQUIVALENTS.read_text()).items():
            [directory] = mutate_stores.ROOT.glob(exercise.split("/")[0] + "*/")
            lesson = " ".join(" ".join(file.read_text().split()) for file in sorted(directory.rglob("*.cu*")))
            self.assertIn(statement, lesson, exercise)
            self.assertTrue(reason, f"{exercise}: {statement}: expected a reason")


if __name__ == "__main__":
    unittest.main()
