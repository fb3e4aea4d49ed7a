"""Tests of kernels.py and of scripts/record_traces.py: python3 -m unittest discover site"""
import html
import json
import pathlib
import re
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import kernels  # noqa: E402
import record_traces  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent

LESSON = """// A lesson.
#include <cuda_runtime.h>

__device__ float twice(float value) {
    return 2 * value;
}

// Idea: the first.
__global__ void first(const float* in, float* out) {
    out[threadIdx.x] = in[threadIdx.x] < 1;

    __syncthreads();
}

inline void launch_first(const float* in, float* out) {
    first<<<1, 32>>>(in, out);
}

// Idea: the second.
__global__ void second(const float* in, float* out) {
    out[threadIdx.x] = twice(in[threadIdx.x]);
    __shfl_xor_sync(~0U, 1, 1);
}
"""


def access(line, operation="load", transactions=4, space="global", requests=10, ideal=4, array="in"):
    return {"file": "day99_made_up/made_up.cuh", "line": line, "space": space, "operation": operation, "bytes": 4, "array": array,
            "requests": requests, "transactions": transactions * requests, "ideal": ideal * requests, "active_lanes": 32 * requests, "bytes_used": 128}


def trace(version, line, **more):
    file = "day99_made_up/made_up.cuh"
    return {"format": "course trace 1", "day": "day99_made_up", "version": version, "problem": "p 32", "kernel": version, "blocks": 1,
            "inspected_blocks": 1, "threads": 32, "launches": 1, "sources": {file: record_traces.text_hash(LESSON)},
            "lines": [access(line), access(line, "store", 32)],
            "block": [0, 0, 0], "warp": 0, "steps": 3,
            "places": [{"file": file, "line": line, "kind": "load", "space": "global", "bytes": 4, "array": "in"},
                       {"file": file, "line": line, "kind": "store", "space": "shared", "bytes": 4, "array": "tile"},
                       {"file": file, "line": 12 if version == "first" else 22, "kind": "barrier" if version == "first" else "collective"}],
            "recorded": [[0, 0xFFFFFFFF, 4, 4, 0, 4, 32], [1, 0x5, 2, 1, 8, 128, 2], [2, 0xFFFFFFFF]], **more}


class MadeUp(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "day99_made_up").mkdir()
        (self.root / "docs/traces").mkdir(parents=True)
        (self.root / "docs/measurements/h200").mkdir(parents=True)
        (self.root / "day99_made_up/made_up.cuh").write_text(LESSON)
        self.write([trace("first", 10), trace("second", 21)])

    def write(self, traces):
        (self.root / "docs/traces/day99_made_up.jsonl").write_text("".join(json.dumps(one) + "\n" for one in traces))

    def page(self, version):
        return kernels.pages(self.root)[f"kernels/day99/{version}"]

    def test_there_is_a_page_for_each_version_and_a_link_to_it(self):
        self.assertEqual(list(kernels.pages(self.root)), ["kernels/day99/first", "kernels/day99/second"])
        links = kernels.links(self.root, "day99_made_up")
        self.assertIn("(../kernels/day99/first.md), [second](../kernels/day99/second.md)", links)
        self.assertEqual(kernels.links(self.root, "day98_none"), "")

    def test_a_page_has_the_kernel_and_what_its_lines_count(self):
        page = self.page("first")
        rows = dict(re.findall(r'<tr id="k1-day99_made_up/made_up.cuh-(\d+)">(.*)</tr>', page))
        self.assertEqual(list(rows), ["8", "9", "10", "11", "12", "13"], "its comment to its last brace, no other function")
        text = html.unescape(re.sub(r"<[^>]*>", "|", rows["10"]))
        self.assertRegex(text, r"^\|10\|\|20\|\|4, 32 \|×8\|\|\|\|\|32\|", "20 requests, of 4 and of 32 sectors, no wavefronts, 32 lanes")
        self.assertIn('class="poor"', rows["10"])
        self.assertIn("&lt;", rows["10"])

    def test_one_wavefront_is_one(self):
        table = kernels.access_table(trace("first", 10, lines=[access(10, transactions=1, space="shared"), access(10, transactions=2, space="shared")]))
        self.assertIn("<td>1 wavefront</td>", table)
        self.assertIn("<td>2 wavefronts</td>", table)

    def test_the_foot_leads_to_the_versions_before_and_after(self):
        self.assertIn("\nNext: [second](second.md)", self.page("first"))
        self.assertIn("\nPrevious: [first](first.md)", self.page("second"))
        (self.root / "day99_made_up/README.md").write_text("# Day 99: made up, or not\n")
        self.assertIn("A version of [Day 99: made up](../../day99/index.md)", self.page("first"))

    def test_raw_html_has_no_empty_line(self):
        for page in kernels.pages(self.root).values():
            for block in re.findall(r"^<(?:div|pre|details).*?(?=^## |\Z)", page, re.S | re.M):
                for part in block.split("\n\n"):
                    opened, closed = (len(re.findall(pattern, part)) for pattern in (r"<(?:div|table|tr|details)\b", r"</(?:div|table|tr|details)>"))
                    self.assertEqual(opened, closed, part[:200])

    def test_offsets_are_those_of_the_lanes(self):
        load, store, barrier = kernels.decode(trace("first", 10))
        self.assertEqual(load["offsets"], [4 * lane for lane in range(32)])
        self.assertEqual(store["offsets"], [8, None, 136] + [None] * 29)
        self.assertEqual((store["transactions"], store["ideal"]), (2, 1))
        self.assertNotIn("offsets", barrier)
        with self.assertRaisesRegex(ValueError, "32 offsets of 1 lanes"):
            kernels.decode(trace("first", 10, recorded=[[0, 1, 4, 4, 0, 4, 32]]))

    def test_steps_are_said_in_words(self):
        page = self.page("first")
        for text in ('32 lanes load 4 bytes each from "in": 4 sectors</td><td>0, 4, …, 124',
                     '2 lanes store 4 bytes each to "tile": 2 wavefronts, ideal 1</td><td>8, 136</td>', "32 lanes wait at the barrier of the block"):
            self.assertIn(text, html.unescape(page))
        self.assertIn("32 lanes wait at __shfl_xor_sync", self.page("second"))

    def test_what_is_no_request_is_said_in_words(self):
        def said(kind, text, lanes=0xFFFFFFFF, **more):
            return kernels.sentence({"kind": kind, "lanes": lanes, **more}, text)
        for expected, kind, text in (
                ("32 lanes execute a matrix product of the warp (mma_m16n8k16_bf16), from registers", "collective", "course::ptx::mma_m16n8k16_bf16(d, a, b);"),
                ("32 lanes execute a matrix product of the warp (mma_sync), from registers", "collective", "wmma::mma_sync(sum, a, b, sum);"),
                ("32 lanes start a matrix product of the warpgroup (wgmma_tf32_set), which reads shared memory", "collective", "ptx::wgmma_tf32_set(run, a, b);"),
                ("32 lanes wait for products of the warpgroup (wgmma_wait<1>)", "collective", "ptx::wgmma_wait<1>();"),
                ("32 lanes execute wgmma_commit, an instruction of all warps of the warpgroup", "collective", "ptx::wgmma_commit();"),
                ("32 lanes execute load_matrix_sync, a transfer of a matrix by the whole warp", "collective", "wmma::load_matrix_sync(fragment, at, 16);"),
                ("32 lanes wait at warp.sync", "collective", "warp.sync();"),
                ("32 lanes wait at an instruction of the whole warp", "collective", "together(x);"),
                ("32 lanes wait at an mbarrier (mbarrier_wait)", "wait", "ptx::mbarrier_wait(&full[stage], parity);"),
                ("32 lanes wait at a barrier of some threads (named_barrier)", "wait", "ptx::named_barrier(1, 64);"),
                ("32 lanes wait at a barrier of some threads (named_barrier)", "wait", "void wait() const { ptx::named_barrier(1, 64); }"),
                ("32 lanes arrive at a barrier of some threads", "arrival", "done();"),
                ("32 lanes arrive at the barrier of the cluster", "blocks_barrier", "cluster.sync();"),
                ("32 lanes arrive at the barrier of the grid", "blocks_barrier", "grid.sync();"),
                ("32 lanes are at a step of the kind telepathy", "telepathy", "")):
            self.assertEqual(said(kind, text), expected)
        self.assertEqual(said("bulk_load", "", lanes=1, bytes=16384), "1 lane issues a bulk copy of 16384 bytes to shared memory")
        self.assertEqual(said("wait", "wait(x);", lanes=8), "1 lane waits at a barrier of some threads (wait)")

    def test_steps_that_repeat_others_are_counted(self):
        self.write([trace("first", 10, repeats=[[1, 6], [2, 1]], steps=12)])
        page = html.unescape(self.page("first"))
        self.assertIn('"tile": 2 wavefronts, ideal 1; 6 steps like those before follow</td>', page)
        self.assertIn("32 lanes wait at the barrier of the block; 1 step like those before follows</td>", page)
        self.assertIn("; the first 10 of 12 steps, without 7 that repeat others.", page)
        self.write([trace("first", 10, repeats=[[1, 6], [2, 1]], steps=10)])
        self.assertIn("; 10 steps, without 7 that repeat others.", self.page("first"))

    def test_the_data_of_the_replay_can_be_read_and_ends_no_script(self):
        self.write([trace("first", 10, kernel="first</script>")])
        data = re.findall(r'<script type="application/json">(.*?)</script>', self.page("first"))
        self.assertEqual(len(data), 1)
        self.assertEqual(json.loads(data[0])["recorded"], trace("first", 10)["recorded"])

    def test_a_replay_can_stand_alone(self):
        self.assertEqual(kernels.sample(self.root), "")
        alone = kernels.sample(self.root, "day99_made_up", "first")
        self.assertTrue(alone.startswith('<div class="replay"'))
        data = json.loads(re.findall(r'<script type="application/json">(.*?)</script>', alone)[0])
        self.assertEqual([place["text"] for place in data["places"]], ["out[threadIdx.x] = in[threadIdx.x] < 1;"] * 2 + ["__syncthreads();"])
        self.assertIn("<td>32 lanes wait at the barrier of the block</td>", alone)

    def test_the_front_page_says_what_it_replays(self):
        self.assertEqual(kernels.on_front_page(self.root), "")
        text = kernels.on_front_page(self.root, "day99_made_up", "first")
        for part in ('<a href="kernels/day99/first.html"><code>first</code></a> of [`made_up.cuh`](day99_made_up/made_up.cuh)', "Warp 0 of block (0, 0, 0)", "p 32",
                     "This day has a page for each kernel"):
            self.assertIn(part, text)

    def test_a_page_has_the_difference_to_the_version_before(self):
        self.assertNotIn("kernel-diff", self.page("first"))
        page = self.page("second")
        self.assertIn("<del>-     out[threadIdx.x] = in[threadIdx.x] &lt; 1;</del>", page)
        self.assertIn("<ins>+     __shfl_xor_sync(~0U, 1, 1);</ins>", page)
        self.assertNotIn("Idea", page.split("kernel-diff")[1])

    def test_times_and_limits_are_those_of_the_records(self):
        self.assertIn("Not measured yet", self.page("first"))
        one = {"problem": "p", "version": "first", "role": "ours", "dtype": "float", "median_ms": 0.5, "l2": "flushed", "bytes": 10**9, "flops": 0,
               "percent_of_limit": 47.31, "device": "GPU"}
        more = [one, {**one, "l2": "warm", "median_ms": 0.25, "percent_of_limit": 94.6}, {**one, "device": "host CPU", "median_ms": 77}, {**one, "version": "other", "median_ms": 88},
                {**one, "role": "peer", "median_ms": 99}]
        lines = [{"format": "course records 1", "day": "day99_made_up"}, *more]
        (self.root / "docs/measurements/h200/day99_made_up.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        counters = [{"format": "course counters 1", "device": "GPU"},
                    {"problem": "p", "version": "first", "kernel": "first", "us": 500.0, "busy": {"L2": 87.4, "L1": 3, "memory": 12}, "stalls": {"drain": 0.6},
                     "occupancy": 56.1, "sectors_per_load": 4.0, "sectors_per_store": 32.0, "shared_wavefronts": 200.0, "bank_conflicts": 50.0,
                     "registers": 16, "limited_by": "L2"}]
        (self.root / "docs/measurements/h200/day99_made_up.counters.jsonl").write_text("".join(json.dumps(line) + "\n" for line in counters))
        page = self.page("first")
        self.assertIn("| GPU | p | float | 250 µs | 500 µs | 4000 GB/s | 94.6 |", page)
        of_tensor_cores = {**one, "l2": "warm", "flops": 10**12, "limit_flops_per_second": 1e12, "percent_of_limit": 3.0}
        lines = [{"format": "course records 1", "day": "day99_made_up"}, of_tensor_cores]
        (self.root / "docs/measurements/h200/day99_made_up.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.assertIn("| 500 µs |  | 2000 TFLOP/s |  |", self.page("first"))
        self.assertIn("| GPU | p | `first` | 500 µs | **L2** | L2 87 %, memory 12 % | `drain` 60 % | 4, 32 | 25 % | 56 % | 16 |", page)
        for other in ("77", "88 ", "99 "):
            self.assertNotIn(f"| {other}", page)

    def test_a_shorter_source_has_no_text_for_old_lines(self):
        (self.root / "day99_made_up/made_up.cuh").write_text(LESSON.split("\n")[0] + "\n")
        self.assertIn("lines may have moved", self.page("first"))

    def test_a_changed_source_is_said(self):
        self.assertNotIn("lines may have moved", self.page("first"))
        (self.root / "day99_made_up/made_up.cuh").write_text(LESSON + "// more\n")
        self.assertIn("before the last change of day99_made_up/made_up.cuh: lines may have moved", self.page("first"))


class Recording(unittest.TestCase):
    def test_the_hash_is_that_of_the_course_command(self):
        # The same published values as in tools/course/test/inspect_command_test.cpp.
        self.assertEqual([record_traces.text_hash(text) for text in ("", "a", "foobar")], ["cbf29ce484222325", "af63dc4c8601ec8c", "85944171f73967e8"])

    def test_only_the_core_is_kept_each_version_on_its_first_problem(self):
        beyond = trace("beyond", 10, sources={"day99_made_up/beyond/more.cuh": ""})
        mixed = [trace("mixed", 10, kernel="a"), trace("mixed", 10, kernel="b", sources={"day99_made_up/beyond/more.cuh": ""})]
        two = [trace("first", 10), trace("first", 10, kernel="again")]
        of_two_problems = [trace("first", 10, problem="q"), trace("first", 10, problem="r", sources={"day99_made_up/beyond/more.cuh": ""})]
        self.assertEqual(record_traces.core_of([*two, beyond, *mixed, *of_two_problems]), two)
        with unittest.mock.patch.dict(record_traces.ALSO, {"day99_made_up": ["mixed"]}):
            self.assertEqual(record_traces.core_of([*two, beyond, *mixed, *of_two_problems]), two + mixed)
        with unittest.mock.patch.dict(record_traces.PROBLEMS, {"day99_made_up": "q"}):
            self.assertEqual(record_traces.core_of([*two, beyond, *mixed, *of_two_problems]), of_two_problems[:1])

    def test_versions_with_nothing_to_step_through_are_left_out(self):
        one, none = [[0, 1, 1, 1, 0, 0, 1], [2, 1]], []
        traces = [trace("registers", 10, recorded=one), trace("two", 10, recorded=one), trace("two", 10, kernel="more", recorded=one + one),
                  trace("two", 10, kernel="idle", recorded=none), trace("auto", 10), trace("two_repaired", 10)]
        self.assertEqual([(kept["version"], kept["kernel"]) for kept in record_traces.kept_of(traces)], [("two", "two"), ("two", "more")])
        many = [trace("many", 10, kernel=str(number)) for number in range(9)]
        self.assertEqual(record_traces.kept_of(many), many[:record_traces.MOST_KERNELS])
        with unittest.mock.patch.dict(record_traces.MORE_KERNELS, {"day99_made_up": 8}):
            self.assertEqual(record_traces.kept_of(many), many[:8])
        alike = [trace("first", 10, kernel="one"), trace("again", 10, kernel="one"), trace("other", 10, kernel="one", threads=64)]
        self.assertEqual([kept["version"] for kept in record_traces.kept_of(alike)], ["first", "other"])

    def test_parts_that_overlap_are_one(self):
        self.assertEqual(kernels.merged([(8, 12), (1, 3), (10, 11), (13, 14), (5, 6)]), [(1, 3), (5, 6), (8, 14)])

    def test_what_is_stored_once_is_read_as_it_was_recorded(self):
        twice, other = [0, 7, 4, 4, 0, 0, 1, 2048, 0, 1, 4, 0, 1], [0, 7, 4, 4, 0, 0, 1, 2048, 0, 1, 8, 0, 1]
        recorded = [twice, [0, 3, 1, 1, 12, 4, 2], other, twice[:4] + [64, 0, 1, 2112, 0, 1, 68, 0, 1], [2, 7]]
        before = trace("first", 10, recorded=recorded)
        before["lines"][1]["file"] = "gone.cuh"  # not among the sources
        copy = json.loads(json.dumps(before))
        stored = json.loads(json.dumps(record_traces.compact(before)))
        self.assertEqual(before, copy, "compact() changes nothing")
        self.assertEqual([len(entry) for entry in stored["recorded"]], [6, 7, 13, 6, 2])
        self.assertEqual((stored["lines"][0]["file"], stored["lines"][1]["file"]), (0, "gone.cuh"))
        self.assertEqual(record_traces.expand(stored), before)

    def test_another_format_is_refused(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write('{"format": "course trace 0"}\n')
            file.flush()
            with self.assertRaisesRegex(ValueError, "'course trace 0'; expected 'course trace 1'"):
                record_traces.read(pathlib.Path(file.name))


class Stored(unittest.TestCase):
    """The traces of the tree."""

    def test_all_can_be_decoded_and_name_lines_that_exist(self):
        for path in sorted((ROOT / "docs/traces").glob("*.jsonl")):
            self.assertLess(path.stat().st_size, 120_000, path.name)
            for one in record_traces.read(path):
                with self.subTest(day=path.stem, version=one["version"]):
                    steps = kernels.decode(one)
                    self.assertLessEqual(len(steps), 200)
                    self.assertTrue(any("offsets" in step for step in steps))
                    parts = kernels.parts_of(ROOT, one)
                    self.assertTrue(parts)
                    lines = [(file, line) for file, first, last in parts for line in range(first, last + 1)]
                    self.assertEqual(len(set(lines)), len(lines), "no line is shown twice")

    def test_a_column_of_a_tile_takes_32_wavefronts_and_one_with_padding(self):
        traces = {one["version"]: one for one in record_traces.read(ROOT / "docs/traces/day06_transpose.jsonl")}
        def of_tile(version):
            return [step["transactions"] for step in kernels.decode(traces[version]) if step.get("array") == "tile" and step["kind"] == "load"]
        self.assertEqual(of_tile("tiled"), [32])
        self.assertEqual(of_tile("padded"), [1])

    def test_a_trace_counts_as_the_lines_do(self):
        """In transpose all requests of a line are alike, so the trace of one warp has the average of the line."""
        for one in record_traces.read(ROOT / "docs/traces/day06_transpose.jsonl"):
            for line in one["lines"]:
                steps = [step for step in kernels.decode(one) if step["line"] == line["line"] and step.get("array") == line["array"]
                         and step["kind"] == line["operation"]]
                self.assertTrue(steps)
                for key in ("transactions", "ideal"):
                    self.assertEqual({step[key] for step in steps}, {line[key] / line["requests"]}, (one["version"], line["line"]))


if __name__ == "__main__":
    unittest.main()
