"""Tests of run_here.py, and of the script that it makes, in Node.js: python3 -m unittest discover site. Those of the script are skipped
where the site was built without emscripten."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import build  # noqa: E402
import kernels  # noqa: E402
import run_here  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Runs each [kernel, [numbers]] of standard input in a worker of its own, as static/run_here.js does, and prints the answers.
IN_NODE = """
const vm = require("vm"), fs = require("fs");
const page = {};
vm.runInNewContext(fs.readFileSync(process.argv[1], "utf8"), {window: page});
const answer = data => new Promise(resolve => {
  const self = {location: {href: "blob:null/1"}, postMessage: resolve};
  vm.runInNewContext(`(${page.runHereKernels})()`, {self, WebAssembly, performance, console, atob, TextDecoder, setTimeout, importScripts: () => {}});
  self.onmessage({data});
});
(async () => {
  for (const [kernel, numbers] of JSON.parse(fs.readFileSync(0, "utf8"))) console.log(JSON.stringify(await answer({kernel, numbers})));
})();
"""


def run(cases):
    """The answers to [(kernel, size, size, size, blocks, block x, block y)]."""
    sent = json.dumps([[kernel, [*numbers, seed]] for seed, (kernel, *numbers) in enumerate(cases, 1)])
    done = subprocess.run(["node", "-e", IN_NODE, str(run_here.script(ROOT))], input=sent, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@unittest.skipUnless(run_here.script(ROOT).is_file() and shutil.which("node"), "built without emscripten, or no Node.js")
class InNode(unittest.TestCase):
    def check_right(self, cases):
        for case, answer in zip(cases, run(cases), strict=True):
            with self.subTest(case):
                self.assertEqual(answer["said"], [])
                result = json.loads(answer["result"])
                self.assertEqual((result["wrong"], result["outside"]), (0, False), result)
                self.assertEqual(result["threads"], result["blocks"] * case[5] * case[6])

    def test_sums_of_vectors_with_any_block(self):
        cases = [("add_one_per_element", n, 1, 1, 0, block, 1) for n, block in ((1, 1), (31, 32), (33, 32), (1000, 7), (4097, 1024))]
        cases += [("add_grid_stride", n, 1, 1, blocks, block, 1) for n, blocks, block in ((1, 1, 1), (1000, 3, 33), (4097, 2, 256))]
        cases += [("add_float4", n, 1, 1, 0, block, 1) for n, block in ((1, 32), (3, 3), (4, 4), (4099, 100))]
        self.check_right(cases)

    def test_products_of_matrices(self):
        cases = [("multiply_naive", 33, 5, 7, 0, side, side) for side in (16, 5, 1)]
        cases += [("multiply_coalesced", 33, 5, 7, 0, x, y) for x, y in ((16, 16), (8, 3), (1, 1))]
        cases += [(kernel, *shape, 0, 32, 32) for kernel in ("multiply_tiled", "multiply_coarsened") for shape in ((1, 1, 1), (33, 129, 31), (32, 32, 65))]
        self.check_right(cases)

    def test_transposes(self):
        cases = [(kernel, *shape, 1, 0, 32, 32) for kernel in ("transpose_naive", "transpose_strided_loads", "transpose_tiled", "transpose_padded")
                 for shape in ((1, 1), (33, 65))]
        cases += [(kernel, *shape, 1, 0, 32, 8) for kernel in ("transpose_coarsened", "transpose_swizzled") for shape in ((1, 1), (31, 97))]
        self.check_right(cases)

    def test_sums(self):
        names = ("interleaved", "sequential", "shared_memory", "coarsened", "shuffle", "vectorised")
        self.check_right([(f"reduce_{name}", n, 1, 1, blocks, 256, 1) for name in names for n, blocks in ((1, 1), (257, 2), (9001, 3))])

    def test_every_kernel_of_the_pages_is_known(self):
        # With a block of one thread most of them are wrong, but they run.
        for name, answer in zip(run_here.KERNELS, run([(name, 2, 2, 2, 1, 1, 1) for name in run_here.KERNELS]), strict=True):
            self.assertNotEqual(answer["result"], "", (name, answer))
        (answer,) = run([("no_kernel", 1, 1, 1, 1, 1, 1)])
        self.assertEqual((answer["result"], answer["said"]), ("", ["there is no kernel 'no_kernel'"]))

    def test_a_block_that_is_too_small_is_wrong_and_says_how(self):
        answers = run([("transpose_tiled", 64, 64, 1, 0, 32, 31), ("reduce_shuffle", 1000, 1, 1, 2, 128, 1)])
        transposed, summed = (json.loads(answer["result"]) for answer in answers)
        self.assertEqual((transposed["wrong"], transposed["got"].lstrip("-")), (252, "nan"))  # of 4 tiles: a row not loaded, a column not stored
        self.assertEqual(summed["wrong"], 1)

    def test_what_is_written_behind_an_array_is_reported_and_destroys_nothing(self):
        cases = [(f"reduce_{name}", 10007, 1, 1, 16, block, 1) for name in ("interleaved", "sequential") for block in (257, 300, 512, 1023, 1024)]
        for case, answer in zip(cases, run(cases), strict=True):
            with self.subTest(case):
                self.assertEqual(answer["said"], [])
                result = json.loads(answer["result"])
                self.assertTrue(result["outside"], result)
                self.assertEqual((result["got"], result["expected"]) == ("0", "0"), result["wrong"] == 0, result)  # no figures without an element

    def test_a_block_that_is_too_large_is_reported_by_the_runtime(self):
        large, bounded = run([("reduce_shared_memory", 1000, 1, 1, 1, 288, 1), ("reduce_vectorised", 1000, 1, 1, 1, 512, 1)])
        self.assertIn("wrote outside of the 1024 bytes of its __shared__ variable values", large["said"][0])
        self.assertEqual(bounded["said"], ["block (512, 1) has more threads than its __launch_bounds__(256)"])


@unittest.skipUnless(shutil.which("node"), "no Node.js")
class Worker(unittest.TestCase):
    def test_a_module_that_cannot_be_loaded_is_an_answer(self):
        page = run_here.SCRIPT_TEXT % 'const kernels = () => Promise.reject(new Error("no memory"));'
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "script.js"
            path.write_text(page)
            done = subprocess.run(["node", "-e", IN_NODE, str(path)], input='[["k", [1]]]', capture_output=True, text=True)
        self.assertEqual(done.stdout, '{"result":"","said":["no memory"],"ms":0}\n', done.stderr)


# static/run_here.js with the least of a page that it needs, and `it`, which a test drives: the form, its fields, what the page says, the
# script's element and the workers.
PAGE = """
const vm = require("vm"), fs = require("fs");
const it = {fields: [], workers: [], scripts: []};
const element = tag => {
  const on = {}, node = {tag, dataset: {}, append: (...others) => others.forEach(other => { if (other.tag === "input") it.fields.push(other); }), setAttribute() {},
    remove() {}, focus() {}, addEventListener: (name, call) => on[name] = call, send: name => on[name]({preventDefault() {}}), querySelector: () => element("span")};
  if (tag === "p") it.says = node;
  if (tag === "form") it.form = node;
  return node;
};
const root = element("div");
root.dataset.run = JSON.stringify({kernel: "sum", version: "12ab", sizes: [{label: "elements", value: "10", most: 2000}],
                                   block: [{label: "threads of a block", value: "256", most: 1024}]});
const document = {currentScript: {src: "https://a.b/_static/run_here.js"}, createElement: element, readyState: "complete",
                  querySelectorAll: () => [root], head: {append: script => it.scripts.push(script)}};
class Worker { constructor() { it.workers.push(this); } terminate() {} postMessage(data) { this.data = data; } }
URL.createObjectURL = () => "blob:1";
vm.runInNewContext(fs.readFileSync(process.argv[1], "utf8"), {document, window: {}, URL, Blob, Worker});
const settled = () => new Promise(resolve => setImmediate(resolve));
(async () => {
  %s
})();
"""


@unittest.skipUnless(shutil.which("node"), "no Node.js")
class Form(unittest.TestCase):
    def drive(self, script):
        done = subprocess.run(["node", "-e", PAGE % script, str(ROOT / "site/static/run_here.js")], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_what_is_typed_while_the_script_is_loaded_is_of_another_run(self):
        said, = self.drive("""
  it.fields[0].value = "1000"; it.form.send("submit"); it.fields[0].value = "900000000";
  it.scripts[0].onload(); await settled();
  console.log(JSON.stringify(it.workers.map(worker => worker.data.numbers)));""")
        self.assertEqual(said, [[1000, 1, 1, 0, 256, 1, 1]])

    def test_a_form_that_is_refused_ends_the_run_before(self):
        said, = self.drive("""
  it.form.send("submit"); it.fields[0].value = "x"; it.form.send("submit");
  it.scripts[0].onload(); await settled();
  console.log(JSON.stringify([it.workers.length, it.says.textContent]));""")
        self.assertEqual(said, [0, '"elements" is "x"; expected a whole number from 1 to 2000.'])

    def test_a_script_that_cannot_be_loaded_does_not_end_the_run_after(self):
        said, = self.drive("""
  it.form.send("submit"); it.scripts[0].onerror(); it.fields[0].value = "20"; it.form.send("submit"); await settled();
  const says = it.says.textContent;
  it.scripts[1].onerror(); await settled();
  console.log(JSON.stringify([says, it.says.textContent]));""")
        self.assertEqual(said, ["Runs …", "This browser cannot run it: the kernels cannot be loaded."])

    def test_the_script_of_this_build_is_loaded(self):
        said, = self.drive("""it.form.send("submit"); console.log(JSON.stringify(it.scripts[0].src));""")
        self.assertEqual(said, "https://a.b/_static/run_here_kernels.js?v=12ab")

    def test_what_is_written_outside_of_an_array_is_said_without_figures_that_no_element_has(self):
        answer = {"results": 1, "wrong": 0, "first": 0, "got": "0", "expected": "0", "outside": True, "blocks": 1, "threads": 257, "switches": 0}
        script = """
  it.form.send("submit"); it.scripts[0].onload(); await settled();
  it.workers[0].onmessage({data: {said: [], ms: 1, result: JSON.stringify(%s)}});
  console.log(JSON.stringify(it.says.textContent));"""
        ran = "257 threads ran in 1 block, with 0 switches of stacks, in 1.0 ms here."
        for change, expected in (({}, "Wrong: it wrote outside of its array."), ({"outside": False}, "Right: the sum is as expected."),
                                 ({"wrong": 1, "expected": "3"}, "Wrong: it wrote outside of its array, and the sum is 0; expected 3.")):
            self.assertEqual(self.drive(script % json.dumps({**answer, **change})), [f"{expected} {ran}"])


class WithoutEmscripten(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def tool(self, name, text):
        """A program in place of a compiler or of a translator."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def test_the_part_is_left_out_and_the_build_says_so(self):
        run_here.script(self.root).parent.mkdir(parents=True)
        run_here.script(self.root).write_text("of an earlier build")
        self.assertIn('class="run-here"', run_here.part(self.root, "transpose_tiled"))
        with mock.patch.dict(os.environ, {"PATH": str(self.root)}):
            self.assertEqual(run_here.build(self.root), "kernels cannot be run in the pages: there is no em++ (apt-get install emscripten)")
        self.assertFalse(run_here.script(self.root).exists())
        self.assertEqual(run_here.part(self.root, "transpose_tiled"), "")

    def test_the_script_of_an_earlier_build_does_not_stay_in_the_site(self):
        shown = self.root / "html/_static" / run_here.SCRIPT
        shown.parent.mkdir(parents=True)
        shown.write_text("of an earlier build")
        run_here.script(self.root).parent.mkdir(parents=True)
        run_here.script(self.root).write_text("of this build")
        run_here.remove_script_of_before(self.root, self.root / "html")
        self.assertTrue(shown.exists())
        run_here.script(self.root).unlink()
        run_here.remove_script_of_before(self.root, self.root / "html")
        self.assertFalse(shown.exists())

    def test_a_source_that_does_not_compile_is_an_error(self):
        self.tool("em++", '[ "$1" = --version ] || { echo "a.cpp:1: error: no" >&2; exit 1; }')
        self.tool("g++", "exit 0")
        with mock.patch.dict(os.environ, {"PATH": f"{self.root}:/bin:/usr/bin"}):
            with self.assertRaisesRegex(run_here.BuildError, r"^\S+ failed: ") as raised:
                run_here.build(self.root)
            self.assertNotIsInstance(raised.exception, run_here.NoEmscripten)
            with mock.patch.object(build, "ROOT", self.root), mock.patch("sys.stderr") as said, mock.patch("stage.stage") as stage:
                self.assertEqual(build.build(self.root / "out", "/"), 1)
            stage.assert_not_called()
            self.assertIn("the kernels that run in the pages cannot be compiled: ", "".join(call.args[0] for call in said.write.call_args_list))

    def test_without_a_translator_and_a_compiler_the_part_is_left_out(self):
        self.tool("em++", "exit 0")
        with mock.patch.dict(os.environ, {"PATH": str(self.root)}):
            self.assertEqual(run_here.build(self.root), "kernels cannot be run in the pages: there is neither a build of the course nor g++")

    def test_a_translator_of_a_build_is_used_unless_a_source_of_it_is_newer(self):
        sources = [self.root / "cuda_on_cpu" / name for name in ("translator/main.cpp", "translator/parts.hpp", "process/child_process.hpp")]
        built, own = self.tool("build/cpu/bin/cuda_on_cpu_compile", "exit 0"), self.root / run_here.FOLDER / "cuda_on_cpu_compile"
        self.tool("g++", "exit 0")
        for path in sources:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            os.utime(path, (1000, 1000))
        os.utime(built, (2000, 2000))
        with mock.patch.dict(os.environ, {"PATH": f"{self.root}:/bin:/usr/bin"}):
            self.assertEqual(run_here.translator(self.root), built)
            for path in sources:
                os.utime(path, (3000, 3000))
                self.assertEqual(run_here.translator(self.root), own, path)
                os.utime(path, (1000, 1000))

    def test_a_change_of_a_lesson_or_of_the_translator_is_noticed(self):
        for name in ("day01_vector_add/vector_add.cuh", "cuda_on_cpu/process/child_process.cpp"):
            with self.subTest(name):
                path = self.root / name
                path.parent.mkdir(parents=True)
                path.write_text("one")
                before = run_here.fingerprint(self.root, "1")
                self.assertEqual(run_here.fingerprint(self.root, "1"), before)
                self.assertNotEqual(run_here.fingerprint(self.root, "2"), before)
                path.write_text("two")
                self.assertNotEqual(run_here.fingerprint(self.root, "1"), before)

    def test_another_script_has_another_address(self):
        run_here.script(self.root).parent.mkdir(parents=True)
        parts = []
        for text in ("one", "one", "two"):
            run_here.script(self.root).write_text(text)
            parts.append(run_here.part(self.root, "transpose_tiled"))
        self.assertEqual(parts[0], parts[1])
        self.assertNotEqual(parts[1], parts[2])

    def test_a_kernel_that_the_script_does_not_have_gets_no_part(self):
        self.assertEqual(run_here.part(ROOT, "histogram"), "")

    def test_these_are_the_traced_kernels_of_the_lessons_that_are_compiled(self):
        lessons = [name for name in run_here.READ if name.startswith("day")]
        traced = {kernels.name_of_kernel(trace["kernel"]) for day in kernels.days(ROOT) if any(name.startswith(day) for name in lessons)
                  for of_version in kernels.versions(ROOT, day).values() for trace in of_version}
        self.assertEqual(traced, set(run_here.KERNELS))


if __name__ == "__main__":
    unittest.main()
