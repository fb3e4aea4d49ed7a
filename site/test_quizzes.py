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


def data_of(question):
    """What quiz.js finds in the page about a question."""
    item = quizzes.quiz_item(question, "day01", 1)
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
            self.error_of("**4**", "**four**"), "README.md:11: the key is 'four'; expected a number or a letter"
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
        self.assertEqual(by_day["day15_reduction"]["questions"], [f"day15/{i}" for i in range(1, 5)])
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
        self.assertGreater(len(cases), 75)
        data = [(typed, data_of(quizzes.Question("", key, "", ""))) for typed, key, _ in cases]
        for (typed, key, right), judged in zip(cases, in_script("([typed, question]) => isRight(typed, question)", data)):
            with self.subTest(typed=typed[:20], key=key):
                self.assertEqual(judged, right)

    def test_a_word_is_no_number(self):
        number, choice = {"kind": "number", "value": "4"}, {"kind": "choice", "key": "b"}
        cases = [("four", number), ("", number), ("4", number), ("about 4 us", number), ("b", choice), (" ", choice)]
        self.assertEqual(in_script("([typed, question]) => isAnswer(typed, question)", cases), [False, False, True, True, True, False])

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

    def ask(self, day, answers):
        """([what to type], [right?]) as the command prints."""
        with tempfile.TemporaryDirectory() as mine:
            environment = os.environ | {
                "COURSE_ROOT": str(ROOT),
                "COURSE_BUILD_DIR": str(self.program.parent.parent),
                "COURSE_MY": mine,
            }
            done = subprocess.run(
                [self.program, "quiz", day],
                input="".join(answer + "\n" for answer in answers),
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            kept = json.loads((pathlib.Path(mine) / "progress.json").read_text())["questions"]
        asked = re.findall(r"Your answer \((.*?)\): ", done.stdout)
        return asked, [kept[f"{quizzes.short_name(day)}/{i + 1}"] for i in range(len(answers))]

    def test_questions_and_answers_of_all_days(self):
        cases, judged = [], []
        for number, (day, questions) in enumerate(all_questions()):
            answers = []
            for place, question in enumerate(questions):
                # Every other answer is another letter, or a number that only "about" accepts.
                wrong = "d" if question.is_choice() else f"{1.2 * question.number() + 1e-9:.9g}"
                answers.append(wrong if (number + place) % 2 else question.key)
            expected, right = self.ask(day, answers)
            self.assertEqual(expected, [question.expected() for question in questions], day)
            cases += [(answer, data_of(question)) for answer, question in zip(answers, questions)]
            judged += right
        self.assertGreater(judged.count(True), 90)
        self.assertGreater(judged.count(False), 70)
        self.assertEqual(in_script("([typed, question]) => isRight(typed, question)", cases), judged)


if __name__ == "__main__":
    unittest.main()
