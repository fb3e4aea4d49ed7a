#!/usr/bin/env python3
"""Tests of check_prose.py, of which each rule finds a sentence that breaks it, at its line, and nothing in good prose;
of check_links.py, which finds each kind of link that leads nowhere; of check_limits.py, which finds a limit that
the counters contradict; and of check_terms.py, which finds a term that is used before it is introduced, in each kind of
text."""

import contextlib
import io
import json
import pathlib
import subprocess
import tempfile
import unittest

import check_limits
import check_links
import check_prose
import check_terms
import counters

GOOD = """# Heading

A warp loads 32 adjacent elements. So few sectors are moved, which is why `coalesced` is fast: the
bus is the limit. You can measure that.

| version | what is new |
|---|---|
| `tiled` | a tile in shared memory |

```cuda
simply(x);  // of course
```
"""
# For each of check_prose.PHRASES, in the same order: what to find, and a sentence with it.
PHRASES = {
    "Of course": "Of course it may fail.",
    "simply": "A thread simply loads its element.",
    "in order to": "It waits in order to load.",
    "due to the fact that": "It waits due to the fact that a tile is late.",
    "note that": "Also note that it waits.",
    "utilised": "All lanes are utilised.",
    "everybody": "It is a value that everybody needs.",
    "threads who": "So the threads who load must wait.",
    "those who wait": "A signal wakes those who wait.",
    "kernel says": "This kernel says what it needs.",
    "is told": "A missing score is told at the end.",
    "wants": "The barrier wants all threads.",
    "not unlikely": "It is not unlikely that lanes diverge.",
    "need not do at all": "Some work one need not do at all.",
    "no instruction more": "This costs no instruction more.",
    "took as long": "In the end the sweep took as long.",
    "where a launch was": "There is a barrier where a launch was.",
    "by other means": "The same work by other means takes longer.",
    "are undone for nothing": "Both are undone for nothing.",
    "lies well": "A row that lies well is loaded in packs.",
    "stand for what lies": "Zeros stand for what lies outside.",
    "change places": "Two elements change places.",
    "that memory limits": "It is a kernel that memory limits.",
    "16-bit factors": "Tensor cores multiply 16-bit factors.",
    "rounds of blocks": "A grid has several rounds of blocks.",
    "columns of a head": "A size is tokens x columns of a head.",
    "turned round": "Every edge is turned round.",
}
# The same for what is counted.
COUNTS = {
    "41 words in a row": " ".join(["warps"] * 41) + ".",
    "'It is', 'There is'": "There is a barrier. It is slow.",
    "3 sentences in a row have a colon": "A warp needs a tile first: it loads. Other warps need it as well: they wait. In the end all are ready: they add.",
    "3 sentences in a row have a semicolon": "Warps load; lanes wait. Blocks start; others end. Threads add; one stores.",
    "2 sentences in a row have 'not ... but'": "Warps do not wait but load. Lanes do not add but store.",
    "4 sentences in a row have at most five words": "Warps load. Lanes wait. Blocks start. Threads add.",
    "3 sentences in a row begin with 'warps'": "Warps load tiles first. Warps wait for them. Warps then add.",
    "4 sentences in a row begin with 'the'": "The first warp loads a tile. The block waits for it. The sum is new. The rest is as it was before.",
}


class Prose(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def check(self, name, text):
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = check_prose.main([str(path)])
        return code, out.getvalue()

    def test_good_prose_has_no_findings(self):
        self.assertEqual(self.check("a.md", GOOD), (0, "1 files, 0 findings\n"))
        comments = "// A warp loads a tile.\nint simply;  // of course\n"
        self.assertEqual(self.check("a.cuh", comments), (0, "1 files, 0 findings\n"))

    def test_each_rule_finds_its_mistake_at_its_line(self):
        for message, bad in ({f"'{found}'": bad for found, bad in PHRASES.items()} | COUNTS).items():
            with self.subTest(message):
                code, out = self.check("a.md", GOOD + "\n" + bad + "\n")
                self.assertEqual((code, out.count("\n")), (1, 2), out)
                self.assertIn(f"a.md:{GOOD.count(chr(10)) + 2}: ", out)
                self.assertIn(message, out)
                code, out = self.check("a.cuh", "int a;\n// " + bad + "\n")
                self.assertEqual((code, out.count("\n")), (1, 2), out)
                self.assertIn("a.cuh:2: ", out)
                self.assertIn(message, out)

    def test_folded_answers_stand_between_blank_lines(self):
        good = "1. How many?\n\n   <details><summary>Answer</summary>\n\n   **4**.\n\n   </details>\n"
        self.assertEqual(self.check("a.md", good)[0], 0)
        self.assertEqual(self.check("a.md", "Use `<details>` and\n```\n<details>a</details>\n```\n")[0], 0)
        for wanted, replacement, line in (("</summary>\n\n", "</summary>**4**\n\n", 3), ("</summary>\n\n", "</summary>\n", 3),
                                          ("?\n\n   <det", "? <det", 1), (".\n\n   </det", ".\n   </det", 6),
                                          (".\n\n   </det", ". </det", 5), ("</details>\n", "</details>\n**after**\n", 7)):
            with self.subTest(replacement):
                code, out = self.check("a.md", good.replace(wanted, replacement))
                self.assertEqual((code, out.count("\n")), (1, 2), out)
                self.assertIn(f"a.md:{line}: text beside", out)

    def test_each_phrase_has_an_example_here(self):
        self.assertEqual(len(PHRASES), len(check_prose.PHRASES))
        for found, phrase in zip(PHRASES, check_prose.PHRASES):
            self.assertRegex(found, rf"(?i)^(?:{phrase})$")

    def test_the_line_is_right_behind_code_links_and_comments(self):
        text = "<!--\na\n-->\n```sh\na\n```\nSee [a\nlink](a.md)\nand\n`b\nc`. Two warps\nsimply wait.\n"
        self.assertIn(":11: 'simply'", self.check("a.md", text)[1])

    def test_labels_questions_code_and_references_are_no_chains(self):
        for text in ("Idea: a tile. Cost removed: a load. Still limits it: memory.",
                     "Which warp loads? Which warp waits? Which warp adds?",
                     "`a` loads a tile. `b` loads a row. `c` loads a column.",
                     'T. Dao, "One", 2022; A. B, "Two", 2023. A. C, "One", 2022; B. "D", 2023. A; "E", 2021; F.'):
            with self.subTest(text):
                self.assertEqual(self.check("a.md", text)[0], 0)

    def test_a_sentence_ends_before_a_file_but_not_after_an_initial(self):
        sentences = [s for _, s in check_prose.sentences_of("See A. Then tile.cuh loads. tile_b.cuh stores.", 1)]
        self.assertEqual(sentences, ["See A.", "Then tile.cuh loads.", "tile_b.cuh stores."])
        self.assertEqual(len(list(check_prose.sentences_of("T. Dao, D. Y. Fu. Next.", 1))), 2)

    def test_a_file_that_cannot_be_read_is_an_error(self):
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(check_prose.main([str(self.directory / "none.md")]), 2)
        self.assertIn("none.md", err.getvalue())


class Links(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name).resolve() / "tree"
        (self.root / "docs").mkdir(parents=True)
        (self.root / "docs/a b.md").write_text("# A `vector<T>`, twice_over: *why?*\n## Same\n## Same\nTitle\n=====\n"
                                               "```sh\n# no heading\n```\n<a id=\"by-hand\"></a>\n### A [link](x.md) ##\n")
        (self.root / "docs/code.cu").write_text("1\n2\n3\n")
        (self.root / "docs/ignored.md").write_text("# Here\n")
        (self.root / ".gitignore").write_text("ignored.md\n")
        (self.root.parent / "outside.md").write_text("# Here\n")
        subprocess.run(["git", "init", "--quiet", self.root], check=True)

    def check(self, text):
        (self.root / "README.md").write_text(text, encoding="utf-8")
        check_links.known_to_git.cache_clear()
        check_links.anchors_of.cache_clear()
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = check_links.main([str(self.root / "README.md")], self.root)
        return code, out.getvalue()

    def test_links_that_lead_somewhere(self):
        targets = ("docs", "docs/", "docs/a%20b.md", "<docs/a b.md>", "./docs/../docs/code.cu", "docs/code.cu#L3", "#top-heading",
                   "docs/code.cu#L1-L2", 'docs/code.cu "A title"', "https://example.org/none#x", "mailto:a@example.org",
                   *(f"docs/a%20b.md#{anchor}" for anchor in ("a-vectort-twice_over-why", "same", "same-1", "title", "by-hand",
                                                              "a-link")))
        text = "# Top: heading\n" + "".join(f"[a\nlink]({target})\n" for target in targets)
        self.assertEqual(self.check(text), (0, f"1 files, {len(targets)} links, 0 lead nowhere\n"))

    def test_each_kind_of_link_that_leads_nowhere(self):
        for target, reason in {
                "none.md": "there is no such file",
                "Docs/code.cu": "there is no such file",
                "docs/ignored.md": "there is no such file",
                "../outside.md": "leads out of the repository",
                "/docs/code.cu": "is not relative",
                "": "is empty",
                "#none": "has no heading",
                "docs/a%20b.md#same-2": "has no heading",
                "docs/a%20b.md#Same": "has no heading",
                "docs/a%20b.md#no-heading": "has no heading",
                "docs/code.cu#L4": "the file has 3 lines",
                "docs/code.cu#L0": "the file has 3 lines",
                "docs/code.cu#main": "only Markdown has headings",
        }.items():
            with self.subTest(target):
                code, out = self.check(f"# Top\n\nSee [this\nlink]({target}).\n")
                self.assertEqual(code, 1)
                self.assertIn(f"README.md:4: {target}: ", out)
                self.assertIn(reason, out)

    def test_every_form_of_a_link_is_seen(self):
        for text in ("![picture](none.svg)", "[![picture](docs/code.cu)](none.svg)", "[name]: none.svg", '<img src="none.svg">',
                     '<a href="none.svg">x</a>', "<picture>\n<source media='x'\nsrcset='none.svg'>", "`x` [a](none.svg) `y`"):
            with self.subTest(text):
                code, out = self.check(text + "\n")
                self.assertEqual((code, out.count("none.svg")), (1, 1), out)

    def test_code_and_comments_have_no_links(self):
        for text in ("```md\n[a](none.md)\n```", "`[a](none.md)`", "``[a](none.md) ` ``", "<!-- [a](none.md) -->"):
            with self.subTest(text):
                self.assertEqual(self.check(text + "\n"), (0, "1 files, 0 links, 0 lead nowhere\n"))

    def test_a_file_that_cannot_be_read_is_an_error(self):
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(check_links.main([str(self.root / "none.md")], self.root), 2)
        self.assertIn("none.md", err.getvalue())


LESSON = """// Day 1.
//
//   version  what is new   what limits it
//   plain    a thread      L2: strided
//            per element   stores
//   wide     16 bytes      memory
//
#pragma once

// Idea: a thread per element.
// Still limits it: strided stores. Counters: L2 87 % busy, DRAM
// only 12 %.
__global__ void plain_kernel(float* out) {}

// Still limits it: memory (counters, 2^28: 92 % busy).
template <int N>
__global__ void __launch_bounds__(kThreads(N), 1) wide_kernel(float* out) {}

// Still limits it: latency.
__global__ void without_counters(float* out) {}
"""


class Limits(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        (self.root / "day01_test").mkdir()
        (self.root / "docs/measurements/h200").mkdir(parents=True)
        self.kernels = [self.kernel("plain", L2=87.0, memory=12.0), self.kernel("wide", L2=93.0, memory=92.0),
                        self.kernel("wide", us=4.0, problem="small", memory=9.0)]

    def kernel(self, version, us=100.0, problem="large", **busy):
        return {"problem": problem, "version": version, "kernel": version + "_kernel", "us": us, "launches": 1, "active": 100.0,
                "busy": dict.fromkeys(counters.UNITS, 0.0) | busy, "stalls": {}, "MHz": 1980, "highest_MHz": 1980}

    def check(self, lesson, page="", most=0, day="day01_test"):
        measurements = self.root / "docs/measurements/h200"
        counters.write(measurements / f"{day}.counters.jsonl", {}, self.kernels)
        times = [{"format": "course records 1"}, *({"version": name, "role": "ours"} for name in ("plain", "wide", "untold"))]
        (measurements / f"{day}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in times))
        (self.root / day).mkdir(exist_ok=True)
        (self.root / day / "test.cuh").write_text(lesson)
        (self.root / day / "README.md").write_text(page)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = check_limits.main(["--table", "--root", str(self.root), "--most", str(most)])
        return code, out.getvalue()

    def test_a_lesson_that_agrees(self):
        code, out = self.check(LESSON, "| version | what limits it |\n|---|---|\n| `pl*` | L2 |\n| [wide](a.cuh) | memory |\n")
        self.assertEqual(code, 0, out)
        self.assertIn("sentences: 6 agrees, 1 no counters\n", out)
        self.assertIn("versions:  2 agrees, 1 no counters\n", out)
        self.assertIn("| day01_test | plain | strided stores. Counters: L2 87 % busy, DRAM only 12 %. | L2 | agrees |\n", out)
        self.assertIn("| day01_test | untold |  |  | no counters |\n", out)

    def test_each_place_that_can_contradict(self):
        for old, new, at in (
                ("L2: strided", "memory: strided", ":4: plain: the counters say L2, the text memory: memory: strided stores"),
                ("wide     16 bytes      memory", "wide     16 bytes      latency", ":6: wide: the counters say memory, the text latency"),
                ("strided stores. Counters: L2 87 % busy", "bank conflicts. Counters: L2 27 % busy", ":11: plain_kernel: the counters say L2"),
                ("memory (counters, 2^28: 92 %", "issue slots (counters, 2^28: 92 %", ":15: wide_kernel: the counters say memory")):
            with self.subTest(new):
                self.assertEqual(LESSON.count(old), 1)
                code, out = self.check(LESSON.replace(old, new))
                self.assertEqual(code, 1)
                self.assertIn("day01_test/test.cuh" + at, out)
                self.assertIn("CONTRADICTS", out)
        code, out = self.check(LESSON, "a\n\n| version | what still limits it |\n|---|---|\n| `wide` | power |\n")
        self.assertEqual(code, 1)
        self.assertIn("day01_test/README.md:5: wide: the counters say memory, the text power", out)

    def test_a_sentence_about_several_versions_names_all_their_classes(self):
        self.kernels = [self.kernel(name, **busy) for name, busy in (("01a_x", {"FMA": 70.0}), ("01_x", {"L1": 80.0}), ("02_x", {"L2": 80.0}))]
        step = "// Measured: nothing.\n// Limit:    multiply-adds, then\n//           L1.\n// Next:     L2.\n"
        (self.root / "gemm_ladder").mkdir()
        (self.root / "gemm_ladder/01_x.cu").write_text(step)
        (self.root / "gemm_ladder/02_x.cu").write_text("// Limit: L2.\n")
        code, out = self.check("", day="gemm_ladder")
        self.assertEqual(code, 0, out)
        self.assertIn("versions:  3 agrees, 3 no counters\n", out)
        (self.root / "gemm_ladder/01_x.cu").write_text(step.replace("L1.", "L3."))
        code, out = self.check("", day="gemm_ladder")
        self.assertEqual(code, 1)
        self.assertIn("gemm_ladder/01_x.cu:2: 01*: the counters say FMA or L1, the text FMA: multiply-adds, then L3.\n", out)

    def test_a_figure_that_the_counters_do_not_have(self):
        for old, new, at in (("L2 87 %", "L2 81 %", ":11: plain_kernel: L2 81 %, but the counters have 87 %"),
                             ("only 12 %", "only 19 %", ":11: plain_kernel: memory 19 %, but the counters have 12 %"),
                             ("92 % busy", "88 % busy", ":15: wide_kernel: memory 88 %, but the counters have 92 %")):
            with self.subTest(new):
                code, out = self.check(LESSON.replace(old, new))
                self.assertEqual(code, 1, out)
                self.assertIn("day01_test/test.cuh" + at, out)
        self.assertEqual(self.check(LESSON.replace("L2 87 %", "L2 85 %"))[0], 0, "two runs differ by that")

    def test_versions_without_a_class_are_counted(self):
        silent = "".join(line for line in LESSON.splitlines(keepends=True) if "wide  " not in line and "92 %" not in line)
        code, out = self.check(silent)
        self.assertEqual(code, 1)
        self.assertIn("| day01_test | wide |  | memory | no sentence |\n", out)
        self.assertIn("1 versions with counters have no text that names a class; expected at most 0", out)
        self.assertEqual(self.check(silent, most=1)[0], 0)
        code, out = self.check(silent.replace("L2: strided", "strided").replace("Counters: L2 87 % busy, ", ""), most=1)
        self.assertEqual(code, 1)
        self.assertIn("| day01_test | plain | strided stores. DRAM only 12 %. | L2 | no class |\n", out)
        code, out = self.check(LESSON, most=1)
        self.assertEqual(code, 1, "the ceiling falls")
        self.assertIn("lower MOST_WITHOUT_CLASS", out)

    def test_words_and_what_is_no_claim(self):
        for text, classes in {
                "shared memory: bank conflicts": ["shared memory"],
                "1.25 shared loads per multiply-add": ["shared memory"],
                "two loads for each multiply-add": [],
                "multiply-adds; 4-byte copies": ["FMA"],
                "L2, if columns are far apart (power law)": ["L2"],
                "a slice of L2 adds": ["atomics"],
                "what misses the L2 cache": [],
                "latency (counters: L2 59 % busy, DRAM 35 %)": ["latency"],
                "DRAM 71 % busy": ["memory"],
                "tensor cores and power": ["tensor", "power"],
                "each launch reads all edges": [],
                "launches": ["launch"],
                "loads from constant memory": ["constant memory"],
        }.items():
            with self.subTest(text):
                self.assertEqual(check_limits.claims(text), classes)
        for words, _ in check_limits.WORDS:
            self.assertIn(words, [*counters.UNITS, "power", "barriers", "constant memory", "launch", "latency"])


GLOSSARY = """| term | meaning | day | PMPP |
| --- | --- | --- | --- |
| widget | a part | [01](../day01_first/README.md) | |
| gadget | a further part | [01](../day01_first/beyond/README.md) | |
"""


class Terms(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        self.addCleanup(setattr, check_terms, "ROOT", check_terms.ROOT)
        check_terms.ROOT = self.root
        self.write("docs/glossary.md", GLOSSARY)
        self.write("day01_first/CMakeLists.txt", "course_day(TOPIC first)")
        self.write("day01_first/README.md", "A *widget* is a part.\n")
        self.write("day01_first/beyond/README.md", "A *gadget*, too.\n")
        self.write("day02_second/CMakeLists.txt", "course_day(TOPIC second BEYOND_NEEDS day01)")
        self.write("day02_second/README.md", "Nothing.\n")
        self.write("day02_second/beyond/README.md", "Nothing.\n")

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text, encoding="utf-8")

    def check(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = check_terms.main([])
        return code, out.getvalue()

    def test_each_kind_of_text_may_not_use_a_term_too_early(self):
        exercise = "# Exercises\n\n## one\n- file: `second.cuh`\n\nUse {}.\n"
        for name, text, line in (("README.md", "One.\n\nUse {}.\n", 3), ("exercises.md", exercise, 6),
                                 ("second.cuh", "#pragma once\nint x;  // {}\n", 2), ("program.cu", "// Use {}.\n", 1)):
            with self.subTest(name):
                self.write(f"day02_second/{name}", text.format("a widget"))
                code, out = self.check()
                self.assertEqual((code, out.count("\n")), (1, 2), out)
                self.assertIn(f"day02_second/{name}:{line}: 'widget' is introduced by day01", out)
                self.write(f"day02_second/{name}", text.format("a widget (day 1)"))
                self.assertEqual(self.check()[0], 0)

    def test_code_and_names_are_no_text(self):
        self.write("day02_second/second.cuh", "int widget = 1;  // `widget` is a name\n")
        self.write("day02_second/exercises.md", "## one\n- file: `second.cuh`\n\nCall `widget`.\n```\nwidget\n```\n")
        self.assertEqual(self.check()[0], 0)

    def test_an_exercise_beyond_the_core_may_use_what_beyond_needs(self):
        core = "## one\n- file: `second.cuh`\n\nThe first.\n\n### Hint 1\nNothing.\n"
        self.write("day02_second/exercises.md", core + "\n## two\n- file: `beyond/further.cuh`\n\nA widget and a gadget.\n")
        self.assertEqual(self.check()[0], 0)
        self.write("day02_second/exercises.md", core.replace("Nothing", "A widget"))
        self.assertIn("day02_second/exercises.md:7: 'widget'", self.check()[1])


if __name__ == "__main__":
    unittest.main()
