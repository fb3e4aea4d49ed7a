#!/usr/bin/env python3
"""Tests of quizzes.py and static/quiz.js: what is asked, and that the page judges as ./course quiz."""

import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
from random import Random

import quizzes

SITE = pathlib.Path(__file__).resolve().parent
ROOT = SITE.parent
README = """# Day 1

1. Not a question.

## Predict

1. How many of
   32 lanes add?
   <details><summary>Answer</summary>**4**. Every
   eighth.</details>
2. Which is faster: a) `one`; b)
   two <details><summary>Answer</summary>**b**, by far.</details>

## To try

1. Not a question either.
"""


def node():
    """Node.js: what PATH has, or what Playwright brings; None without both."""
    try:
        import playwright
    except ImportError:
        return shutil.which("node")
    brought = pathlib.Path(playwright.__file__).parent / "driver" / "node"
    return shutil.which("node") or (str(brought) if brought.exists() else None)


def course_program():
    """The program behind ./course, if it is built."""
    for path in [os.environ.get("COURSE_PROGRAM"), *sorted((ROOT / "build").glob("*/bin/course"))]:
        if path and os.access(path, os.X_OK):
            return pathlib.Path(path)
    return None


def all_questions():
    """[(directory, questions)] of the days, without beyond/."""
    return [
        (day, quizzes.parse((ROOT / day / "README.md").read_text(), day))
        for _, _, day in quizzes.days(ROOT)
        if (ROOT / day / "README.md").exists()
    ]


def data_of(question, folder=None):
    """What quiz.js finds in the page about a question. The key "line 8": of a question about a line."""
    if question.key.startswith("line "):
        return {"kind": "line", "key": question.key, "value": question.key.removeprefix("line ")}
    item = quizzes.quiz_item(question, "day01", 1, folder)
    return {key: html.unescape(value) for key, value in re.findall(r' data-(\w+)="([^"]*)"', item)}


def in_script(expression, cases):
    """[the value of `expression` for (typed, question) in cases], by static/quiz.js."""
    program = f'require({json.dumps(str(SITE / "static" / "quiz.js"))});' + (
        'const cases = JSON.parse(require("fs").readFileSync(0, "utf8"));'
        "const { isRight, isAnswer, checked, merged } = globalThis.courseQuiz;"
        f"console.log(JSON.stringify(cases.map({expression})));"
    )
    done = subprocess.run([node(), "-e", program], input=json.dumps(cases), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class Parsing(unittest.TestCase):
    def error_of(self, before, after):
        self.assertIn(before, README)
        with self.assertRaises(quizzes.QuestionError) as error:
            quizzes.parse(README.replace(before, after), "README.md")
        return str(error.exception)

    def test_questions_are_read_in_order(self):
        first, second = quizzes.parse(README, "README.md")
        self.assertEqual((first.text, first.key, first.explanation), ("How many of\n32 lanes add?", "4", "Every\neighth."))
        self.assertEqual((second.key, second.explanation), ("b", "by far."))
        self.assertEqual(quizzes.options(second.text), ("Which is faster:", ["a) `one`", "b) two"]))

    def test_an_error_names_its_line(self):
        self.assertEqual(self.error_of("**4**", "4"), "README.md:11: the answer has no key; expected **key** first")
        self.assertEqual(
            self.error_of("**4**", "**four**"), "README.md:11: the key is 'four'; expected a number, a letter or `code`"
        )
        self.assertEqual(self.error_of("1. How", "How"), "README.md:7: expected '1. question' first")
        self.assertIn("behind the question", self.error_of("eighth.</details>", "eighth."))
        self.assertEqual(
            self.error_of("far.</details>", "far.</details> More."), "README.md:13: there is text behind the answer"
        )

    def test_beyond_may_ask_for_free_text(self):
        text = README.replace("**4**. Every", "Every")
        page = quizzes.transform("day01_x/beyond", text)
        self.assertNotIn('data-quiz="day01.beyond/1"', page)
        self.assertIn('data-quiz="day01.beyond/2"', page)
        self.assertIn('data-quiz="day01.beyond/2"', quizzes.transform("day01_x", text.replace("# Day 1", "# Day 1, beyond: x")))
        with self.assertRaises(quizzes.QuestionError):
            quizzes.transform("day01_x", text)

    def test_every_choice_has_its_options(self):
        for day, questions in all_questions():
            for question in questions:
                if question.is_choice():
                    _, options = quizzes.options(question.text)
                    self.assertIn(question.key, [option[0] for option in options], (day, question.text))

    def test_options_in_one_sentence(self):
        stem, options = quizzes.options("K = 64 (table above). It is a) 1.01; b) 1.17; c) 1.4?")
        self.assertEqual((stem, options), ("K = 64 (table above). It is", ["a) 1.01", "b) 1.17", "c) 1.4"]))
        self.assertEqual(quizzes.options("How many (a block)?"), ("How many (a block)?", []))


LINES = """## Predict

1. Which line of [`sum`](sum.cuh) adds? It is in [`all`](b.cuh), too.
   <details><summary>Answer</summary>**`total += in[i];`**. The only one.</details>
"""
SUM = """float sum(const float* in, int n);

// total += in[i];
template <int N>
__device__ float sum(const float* in, int n) {
    float total = 0;
    for (int i = 0; i < n; ++i)
        total += in[i];  // adds

    return total;
}

__global__ void __launch_bounds__(kBlock)
    more(const float* in, float total) {
    if (in) total = sum(in, 1);
    total += in[i];
}
"""


class Lines(unittest.TestCase):
    """Questions about a line of a function."""

    def question(self):
        (question,) = quizzes.parse(LINES, "README.md")
        return question

    def test_the_line_is_found_by_its_text(self):
        question = self.question()
        self.assertEqual((question.key, question.function, question.file), ("`total += in[i];`", "sum", "sum.cuh"))
        lines = quizzes.lines_of(question, SUM)
        self.assertEqual((lines.first, lines.right, len(lines.texts)), (4, 8, 8))
        self.assertEqual((lines.texts[0], lines.texts[-1]), ("template <int N>", "}"))
        lines = quizzes.lines_of(question, "\n" + SUM)
        self.assertEqual((lines.first, lines.right), (5, 9))
        question.function = "more"
        self.assertEqual(quizzes.lines_of(question, SUM).right, 16)
        self.assertEqual(question.expected(), "the number of a line")

    def test_a_definition_begins_with_its_template(self):
        for source, expected in (
                ("template <typename T = int> __device__ T g(T v) {\n    return v;\n}\n", [(1, 3)]),
                ("int x;\n// About g.\ntemplate <typename T,\n          int N>\n__device__ T g(T v) {\n    return g(v);\n}\n", [(3, 7)]),
                ("__global__ void\ng(int n) {\n    if (n) return g(n);\n}\n\nint y;\n", [(1, 4)]),
                ("#define A(x) { x }\n__global__ void __launch_bounds__(4)\n    g(int n = f(3)) { n = 1; }\n", [(2, 3)]),
                ("int g(int);\nint a = g(3);\nvoid h() {\n    g(4);\n    g<<<1, 2>>>(5);\n}\n", []),
                ("template <>\nint g<2>(int n) noexcept {\n    return '\\'' + \"}\"[0];\n}\nint g(long n) { return 1'000; }\n", [(1, 4), (5, 5)]),
                ("struct S {\n  public:\n    auto g() const -> int {\n        return 1; }\n};\nint S::g(int) /* { */ {\n}", [(3, 4), (6, 7)])):
            self.assertEqual(quizzes.definitions(source, "g"), expected, source)

    def test_a_line_that_is_not_there_exactly_once_is_an_error(self):
        for source, message in ((SUM.replace("        total += in[i];", "        total -= in[i];"), "0 lines of sum have `total += in[i];`; expected one"),
                                (SUM.replace("    return total;", "    total += in[i];"), "2 lines of sum have"),
                                (SUM.replace("float sum(const float* in, int n) {", "float sums(const float* in, int n) {"), "there are 0 definitions of sum"),
                                (SUM + SUM, "there are 2 definitions of sum")):
            with self.assertRaisesRegex(quizzes.QuestionError, "^sum.cuh: " + re.escape(message)):
                quizzes.lines_of(self.question(), source)
        with self.assertRaisesRegex(quizzes.QuestionError, r"expected \[`function`\]\(file\) in the question"):
            quizzes.parse(LINES.replace("[`sum`](sum.cuh)", "sum").replace("[`all`](b.cuh)", "all"), "README.md")

    def test_the_page_has_the_lines_with_their_numbers(self):
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root) / "day01_x"
            folder.mkdir()
            (folder / "sum.cuh").write_text(SUM)
            page = quizzes.transform("day01_x", LINES, pathlib.Path(root))
        self.assertIn('data-quiz="day01/1" data-key="line 8" data-expected="the number of a line" data-kind="line" data-value="8"', page)
        self.assertEqual(re.findall(r'class="quiz-line" data-line="(\d+)"', page), [str(i) for i in range(4, 12)])
        block = re.search(r"^   <pre class=.*$", page, re.MULTILINE)[0]
        shown = html.unescape(re.sub(r"<[^>]*>", "", block)).strip("\n")
        self.assertEqual(shown.strip(), "\n".join(SUM.splitlines()[3:11]))
        self.assertIn("&lt;", block)

    def test_every_line_of_the_tree_is_there_exactly_once(self):
        found = {}
        for day, questions in all_questions():
            for question in questions:
                if question.is_line():
                    lines = quizzes.lines_of(question, (ROOT / day / question.file).read_text())
                    self.assertGreaterEqual(len(lines.texts), 8, (day, question.text))
                    found[day] = lines
        self.assertGreaterEqual(len(found), 6)


class Pages(unittest.TestCase):
    def test_a_page_without_questions_stays(self):
        self.assertEqual(quizzes.transform("day01_x", "# Day\n\n## To try\n"), "# Day\n\n## To try\n")

    def test_the_rest_of_a_page_stays(self):
        page = quizzes.transform("day01_x", README)
        begin, end = page.index("\n<div class="), page.index("## To try")
        self.assertEqual(page[:begin], README[: README.index("\n1. How")])
        self.assertEqual(page[end:], README[README.index("## To try") :])

    def test_markdown_in_html_has_an_empty_line_around_it(self):
        """Without it, a Markdown parser takes the answer as HTML and shows its asterisks."""
        page = quizzes.transform("day01_x", README)
        self.assertIn("Answer</summary>\n\n   **4**. Every\n   eighth.\n\n   </details>\n", page)

    def test_every_question_of_the_tree_is_in_its_page(self):
        """Counted in the Markdown, independently of parse()."""
        found = 0
        for path in sorted(ROOT.glob("*/README.md")) + sorted(ROOT.glob("*/beyond/README.md")):
            text = path.read_text()
            section = re.search(r"^## Predict$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
            page = quizzes.transform(str(path.parent.relative_to(ROOT)), text)
            expected = len(re.findall(r"<summary>Answer</summary>", section[1])) if section else 0
            self.assertEqual(page.count('<details class="quiz-answer"'), expected, path)
            found += expected
        self.assertGreater(found, 150)

    def test_progress_lists_every_day(self):
        page = quizzes.progress_page(ROOT)
        days = json.loads(re.search(r'id="quiz-days">(.*?)</script>', page)[1])["days"]
        self.assertEqual([d["day"] for d in days], [day for _, _, day in quizzes.days(ROOT)])
        by_day = {d["day"]: d for d in days}
        self.assertIn("day15/coarsened", by_day["day15_reduction"]["exercises"])
        self.assertEqual(by_day["day15_reduction"]["questions"], [f"day15/{i}" for i in range(1, 6)])
        for d in days:
            for what in ("questions", "exercises"):
                self.assertIn(f'<span data-{what}-of="{d["day"]}">{len(d[what])}</span>', page)
        directories = {path.parent.name for path in ROOT.glob("*/exercises.md")}
        self.assertLessEqual(directories, set(by_day))


class Judging(unittest.TestCase):
    def setUp(self):
        if node() is None:
            self.skipTest("needs Node.js, or Playwright, which brings it")

    def cases_of_the_command(self):
        """[(typed, key, is it right?)] from the tests of questions.cpp."""
        source = (ROOT / "tools" / "course" / "test" / "questions_test.cpp").read_text()
        cases = []
        for name, answers, verdict, key in re.findall(
            r'for \(const char\* (\w+) : \{([^}]*)\}\)\s*EXPECT_(TRUE|FALSE)\(is_right\(\1, "([^"]*)"\)\)',
            source,
        ):
            cases += [(typed, key, verdict == "TRUE") for typed in re.findall(r'"([^"]*)"', answers)]
        cases += [
            (typed, key, verdict == "TRUE")
            for verdict, typed, key in re.findall(r'EXPECT_(TRUE|FALSE)\(is_right\("([^"]*)", "([^"]*)"\)\)', source)
        ]
        return cases + [("1" * 100000, "1", False)]

    def test_the_page_judges_as_the_command(self):
        cases = self.cases_of_the_command()
        self.assertGreater(len(cases), 90)
        self.assertGreater(sum(key == "line 8" for _, key, _ in cases), 12)
        data = [(typed, data_of(quizzes.Question("", key, "", ""))) for typed, key, _ in cases]
        for (typed, key, right), judged in zip(cases, in_script("([typed, question]) => isRight(typed, question)", data)):
            with self.subTest(typed=typed[:20], key=key):
                self.assertEqual(judged, right)

    def test_a_word_is_no_number(self):
        number, choice = {"kind": "number", "value": "4"}, {"kind": "choice", "key": "b"}
        line = {"kind": "line", "key": "line 8", "value": "8"}
        cases = [("four", number), ("", number), ("4", number), ("about 4 us", number), ("line 4", number), ("b", choice), (" ", choice),
                 ("line 7", line), ("7", line), ("line", line)]
        self.assertEqual(in_script("([typed, question]) => isAnswer(typed, question)", cases), [False, False, True, True, False, True, False, True, True, False])

    def test_what_is_kept_is_checked(self):
        good = {"version": 2, "exercises": {"day15/shuffle": {"solved": True, "stars": 3}}, "questions": {"day15/1": True}}
        attempt = "(json) => { try { return checked(json); } catch (error) { return error.message; } }"
        odd = {"version": 2, "exercises": {"a": 1, "b": {"solved": "yes"}}, "questions": {"day15/1": "yes"}}
        results = in_script(attempt, [good, odd, {}, {"exercises": {}}, {"version": 3, "exercises": {}}, [], None])
        self.assertEqual(results[0], good)
        self.assertEqual(results[1], {"version": 2, "exercises": {}, "questions": {}})
        self.assertIn("no object “exercises”", results[2])
        self.assertIn("its version is 1; expected 2", results[3])
        self.assertIn("its version is 3; expected 2", results[4])
        self.assertIn("no object", results[5])
        self.assertIn("no object", results[6])

    def test_the_first_answer_and_a_solved_exercise_stay(self):
        kept = {"version": 2, "exercises": {"a": {"solved": True}, "b": {"solved": False}}, "questions": {"d/1": False}}
        read = {
            "version": 2,
            "exercises": {"a": {"solved": False}, "b": {"solved": True}},
            "questions": {"d/1": True, "d/2": True},
        }
        (result,) = in_script("([kept, read]) => merged(kept, read)", [[kept, read]])
        self.assertEqual(result["exercises"], {"a": {"solved": True}, "b": {"solved": True}})
        self.assertEqual(result["questions"], {"d/1": False, "d/2": True})

    def test_the_version_of_the_file_is_that_of_the_command(self):
        header = (ROOT / "tools" / "course" / "renumbered.hpp").read_text()
        self.assertIn(f"kProgressVersion = {quizzes.PROGRESS_VERSION};", header)
        self.assertIn(f"const VERSION = {quizzes.PROGRESS_VERSION};", (SITE / "static" / "quiz.js").read_text())


class BesideTheCommand(unittest.TestCase):
    """The questions of all days, as ./course quiz finds and judges them."""

    def setUp(self):
        self.program = course_program()
        if self.program is None or node() is None:
            self.skipTest("needs the program behind ./course (./course list builds it), and Node.js")

    def ask(self, day, answers, root=ROOT, build=None):
        """([what to type], [right?], the lines of code) as the command prints. `answers`: bytes."""
        with tempfile.TemporaryDirectory() as mine:
            environment = os.environ | {
                "COURSE_ROOT": str(root),
                "COURSE_BUILD_DIR": str(build or self.program.parent.parent),
                "COURSE_MY": mine,
            }
            done = subprocess.run(
                [self.program, "quiz", day],
                input=b"".join(answer + b"\n" for answer in answers),
                env=environment,
                capture_output=True,
                check=False,
            )
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            kept = json.loads((pathlib.Path(mine) / "progress.json").read_text())["questions"]
        text = done.stdout.decode(errors="replace")
        asked = re.findall(r"Your answer \((.*?)\): ", text)
        code = [(int(number), line) for number, line in re.findall(r"^  ( *\d+)  (.*)$", text, re.MULTILINE) if len(number) >= 4]
        return asked, [kept.get(f"{quizzes.short_name(day)}/{i + 1}") for i in range(len(answers))], code

    def make_day(self, root):
        """A checkout with one day, which has no README."""
        for folder in ("day01_odd", "build"):
            (root / folder).mkdir()
        day = {"directory": "day01_odd", "number": 1, "topic": "odd", "title": "Odd", "part": "First"}
        (root / "build/days.json").write_text(json.dumps({"backend": "cpu", "build_type": "Release", "days": [day]}))
        (root / "day01_odd/odd.cu").write_text("int one() { return 1; }\n")
        hints = "".join(f"### Hint {i}\nH.\n\n" for i in (1, 2, 3))
        (root / "day01_odd/exercises.md").write_text(
            f"# E\n\n## one\n- kernels: `one`\n- file: `odd.cu`\n- tests: `*/one`\n- minutes: 1\n\nDo.\n\n{hints}")

    def ask_about(self, cases):
        """Is it right? Of each (typed, key), as the command judges."""
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            self.make_day(root)
            (root / "day01_odd/README.md").write_text("## Predict\n\n" + "".join(
                f"{i}. What?\n   <details><summary>Answer</summary>**{key}**.</details>\n" for i, (_, key) in enumerate(cases, 1)))
            return self.ask("day01_odd", [typed.encode() for typed, _ in cases], root, root / "build")[1]

    def test_questions_and_answers_of_all_days(self):
        cases, judged, of_lines = [], [], []
        for number, (day, questions) in enumerate(all_questions()):
            answers, shown = [], []
            for place, question in enumerate(questions):
                # Every other answer is another letter or line, or a number that only "about" accepts.
                is_wrong = (number + place) % 2
                if question.is_line():
                    lines = quizzes.lines_of(question, (ROOT / day / question.file).read_text())
                    shown += enumerate(lines.texts, lines.first)
                    answers.append(f"line {lines.right - is_wrong}" if len(of_lines) % 2 else str(lines.right - is_wrong))
                    of_lines.append(not is_wrong)
                else:
                    wrong = "d" if question.is_choice() else f"{1.2 * question.number() + 1e-9:.9g}"
                    answers.append(wrong if is_wrong else question.key)
            expected, right, code = self.ask(day, [answer.encode() for answer in answers])
            self.assertEqual(expected, [question.expected() for question in questions], day)
            self.assertEqual(code, shown, day)
            cases += [(answer, data_of(question, ROOT / day)) for answer, question in zip(answers, questions)]
            judged += right
        self.assertGreater(judged.count(True), 90)
        self.assertGreater(judged.count(False), 70)
        self.assertEqual(set(of_lines), {True, False})
        self.assertEqual(in_script("([typed, question]) => isRight(typed, question)", cases), judged)

    def test_the_command_finds_the_same_lines_of_all_kernels(self):
        wanted, asked = [], []
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            self.make_day(root)
            for path in sorted([*ROOT.glob("day*/**/*.cu*"), *ROOT.glob("gemm_ladder/**/*.cu*")]):
                source = path.read_text(encoding="utf-8")
                for kernel in dict.fromkeys(re.findall(r"__global__[^;{}]*?\b(\w+)\(", source)):
                    if len(found := quizzes.definitions(source, kernel)) != 1:
                        continue
                    (first, last), = found
                    lines = source.split("\n")[first - 1 : last]
                    key = next((line for line in lines if line and "`" not in line and "*" not in line and sum(line in other for other in lines) == 1), None)
                    if key:
                        file = f"{len(asked)}.cu"
                        (root / "day01_odd" / file).write_text(source, encoding="utf-8")
                        asked.append(f"{len(asked) + 1}. Which line of [`{kernel}`]({file})?\n   <details><summary>Answer</summary>**`{key}`**.</details>\n")
                        wanted += enumerate(lines, first)
            (root / "day01_odd/README.md").write_text("## Predict\n\n" + "".join(asked), encoding="utf-8")
            code = self.ask("day01_odd", [b"1"] + [b""] * (len(asked) - 1), root, root / "build")[2]
        self.assertGreater(len(asked), 400)
        self.assertEqual([(number, line) for number, line in code], wanted)

    def test_what_is_odd_to_type_is_judged_alike(self):
        """White space, digits and letters beyond ASCII, numbers at the 64th byte, and random answers."""
        keys = ["4", "about 12 \u00b5s", "12 ms", "16 GiB", "1,024 threads", "0.5 ms", "b", "k", "-1", "about 0.3"]
        spaces = ["\u00a0", "\u2003", "\u202f", "\ufeff", "\u2028", "\v", "\f", "\t", "\r", "\x85", "\u200b"]
        odd = [front + key + behind for key in keys for space in spaces for front, behind in ((space, ""), ("", space), ("", space + "x"))]
        odd += [f"12{space}{unit}" for space in spaces for unit in ("ms", "\u00b5s", "\u03bcs", "\u039cs", "M\u0130B", "\u017f")]
        odd += [f"{number}{space}{operator}{space}2" for number in ("4", "4.") for space in spaces for operator in "-x*"]
        odd += ["\u0664", "\uff14", "4\u0664", "\u212a", "\uff42", "B\u0301", "\u00b5"]
        random = Random(53)
        alphabet = "0123456789.,-+eE xX*/^umkgbBsSGIi\u00b5\u00a0\t\v\f\r" + "4412bk"
        odd += ["".join(random.choices(alphabet, k=random.randint(1, 8))) for _ in range(500)]
        odd += [key[:-1] + random.choice(alphabet) + random.choice(alphabet) for key in keys for _ in range(20) if len(key) > 1]
        odd = [typed for typed in dict.fromkeys(odd) if typed.strip(" \t\r\n")]
        cases = [(typed, key) for i, typed in enumerate(odd) for key in random.sample(keys, 3 if i < 300 else 1)]
        cases += [(front + key + behind, key) for key in keys for front in (" ", "\t", "") for behind in ("", " ", "\r", ", or so", ".", "\v")]
        cases += [("0" * n + typed, key) for n in range(57, 66) for typed, key in (("4", "4"), ("12 \u00b5s", "12 ms"), ("12 ms", "about 12 \u00b5s"))]
        right = []
        for begin in range(0, len(cases), 100):  # the command writes all answers after each one
            right += self.ask_about(cases[begin : begin + 100])
        data = {key: data_of(quizzes.Question("", key, "", "")) for key in keys}
        judged = in_script("([typed, question]) => isRight(typed, question)", [(typed, data[key]) for typed, key in cases])
        other = [(typed, key, command) for (typed, key), command, page in zip(cases, right, judged) if command != page]
        self.assertEqual(other, [], "typed, key, what the command says")
        self.assertGreater(judged.count(True), 150)


if __name__ == "__main__":
    unittest.main()
