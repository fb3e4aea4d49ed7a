// The quizzes of the days and the page of progress. Without this script a quiz is a list with
// folded answers. Answers are judged as tools/course/questions.cpp does, and kept in the form of
// my/progress.json: {"version": 2, "exercises": {...}, "questions": {"day15/2": true}}.
"use strict";

(() => {
  const KEY = "cuda-day-by-day.progress";
  const VERSION = 2;
  const ROUNDING = 1e-9;

  // --- Judging ---

  // As in C++: a text is its bytes in UTF-8, and only ASCII has white space, digits and cases.

  const inBytes = (text) => Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");
  const lower = (text) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  const trimmed = (text) => text.replace(/^[ \t\r\n]+/, "").replace(/[ \t\r\n]+$/, "");

  // The number that `text` begins with, if a unit follows it or nothing; else null.
  function numberIn(text) {
    text = text.slice(0, 64);
    const thousands = /^[-+]?[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])/.exec(text);
    if (thousands) text = thousands[0].replaceAll(",", "") + text.slice(thousands[0].length);
    const number = /^[-+]?(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)(?:[eE][-+]?[0-9]+)?/.exec(text);
    if (!number || /^[ \t-\r]*(?:[\^*/]|[-+.,x]?[ \t-\r]*[0-9])/.test(text.slice(number[0].length))) return null;
    return Number(number[0].replace(",", "."));
  }

  // The unit of time or of memory behind the number that `text` begins with: "us", "gb", " s", "".
  function unitIn(text) {
    const match = /^[-+.,0-9]*(?:e[-+]?[0-9]+)?[ \t-\r]*(n|u|\xc2\xb5|\xce\xbc|m|k|g|t)?(s|i?b|bytes?)(?![a-z])[^\n\r]*$/.exec(
      lower(text.split("\n")[0].slice(0, 64)));
    if (!match) return "";
    const prefix = match[1] || " ";
    return (prefix.length > 1 ? "u" : prefix) + (match[2] === "s" ? "s" : "b");
  }

  // Without white space around it, and without "line " where a line is asked for.
  function bare(typed, question) {
    typed = trimmed(inBytes(typed));
    return question.kind === "line" ? trimmed(typed.replace(/^line /i, "")) : typed;
  }

  // `question`: the data of an answer: kind, key, value, unit, about. A line is a number, too.
  function isRight(typed, question) {
    typed = bare(typed, question);
    if (question.kind === "choice")
      return typed !== "" && lower(typed[0]) === lower(question.key) &&
        (typed.length === 1 || ") .:,".includes(typed[1]));
    if (typed.startsWith("about ")) typed = typed.slice("about ".length);
    const unit = unitIn(typed);
    if (unit && question.unit && unit !== question.unit) return false;
    const number = numberIn(typed);
    const wanted = Number(question.value);
    return number !== null && Math.abs(number - wanted) <= Math.abs(wanted) * (Number(question.about) || ROUNDING);
  }

  // Whether `typed` can be judged: a word in place of a number is no answer yet.
  function isAnswer(typed, question) {
    typed = bare(typed, question);
    return typed !== "" && (question.kind === "choice" || numberIn(typed.replace(/^about /, "")) !== null);
  }

  // --- What is kept ---

  const empty = () => ({ version: VERSION, exercises: {}, questions: {} });
  let memory = empty(); // where a browser keeps nothing, as some do for files

  function load() {
    try {
      const text = localStorage.getItem(KEY);
      if (text !== null) memory = checked(JSON.parse(text));
    } catch (error) {
      // Not allowed, or not ours: what this page has in memory counts.
    }
    return memory;
  }

  // Returns whether the browser keeps it.
  function save(progress) {
    memory = progress;
    try {
      localStorage.setItem(KEY, JSON.stringify(progress));
      return true;
    } catch (error) {
      return false;
    }
  }

  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

  // `progress` with nothing in it that is of another type. Throws an Error that says what is wrong.
  function checked(progress) {
    if (!isObject(progress) || !isObject(progress.exercises))
      throw new Error("it has no object \u201cexercises\u201d; expected progress.json of the directory my/");
    const version = progress.version === undefined ? 1 : progress.version;
    if (version !== VERSION)
      throw new Error(`its version is ${version}; expected ${VERSION}. The next ./course check writes the file anew`);
    const clean = empty();
    for (const [id, record] of Object.entries(progress.exercises))
      if (isObject(record) && typeof record.solved === "boolean")
        clean.exercises[id] = { ...record, solved: record.solved };
    if (isObject(progress.questions))
      for (const [id, right] of Object.entries(progress.questions))
        if (typeof right === "boolean") clean.questions[id] = right;
    return clean;
  }

  // What was answered first stays; a solved exercise stays solved.
  function merged(kept, read) {
    const all = { version: VERSION, exercises: { ...kept.exercises }, questions: { ...read.questions, ...kept.questions } };
    for (const [id, record] of Object.entries(read.exercises))
      if (!all.exercises[id] || !all.exercises[id].solved) all.exercises[id] = record;
    return all;
  }

  globalThis.courseQuiz = { isRight, isAnswer, checked, merged }; // for site/test_quizzes.py
  if (typeof document === "undefined") return;

  // --- The page ---

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "onclick") made.addEventListener("click", value);
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  function download() {
    const address = URL.createObjectURL(new Blob([JSON.stringify(load(), null, 2) + "\n"], { type: "application/json" }));
    element("a", { href: address, download: "progress.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  const plural = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

  // The list of options becomes a group of radio buttons; without options, one for each letter.
  function choiceField(answer, id) {
    const list = answer.previousElementSibling;
    const field = element("fieldset", {}, element("legend", { class: "quiz-hidden" }, "Your answer"));
    const letters = [...answer.dataset.letters];
    const items = list && list.tagName === "UL" ? [...list.children] : [];
    letters.forEach((letter, i) => {
      const radio = element("input", { type: "radio", name: id, value: letter });
      const label = element("label", {}, radio, element("span"));
      if (items[i]) label.lastChild.append(...items[i].childNodes);
      else label.lastChild.append(letter);
      field.append(label);
    });
    if (items.length) list.remove();
    return field;
  }

  function numberField(answer, id) {
    const input = element("input", { type: "text", id, autocomplete: "off", spellcheck: "false" });
    const label = element("label", { for: id }, `Your answer (${answer.dataset.expected}) `);
    return element("div", { class: "quiz-number" }, label, input);
  }

  // The lines of a function become radio buttons; the number of one can be typed, too.
  function lineField(answer, id) {
    const code = answer.previousElementSibling;
    const input = element("input", { type: "text", id, autocomplete: "off", spellcheck: "false", inputmode: "numeric" });
    const lines = element("fieldset", { class: "quiz-lines highlight" }, element("legend", { class: "quiz-hidden" }, code.getAttribute("aria-label")));
    for (const line of code.querySelectorAll(".quiz-line")) {
      const number = line.dataset.line;
      const radio = element("input", { type: "radio", name: id, value: number, "aria-label": `${number}: ${line.textContent.trim() || "an empty line"}` });
      lines.append(element("label", { class: "quiz-line", "data-line": number }, radio, ...line.childNodes));
    }
    lines.addEventListener("change", (event) => { input.value = event.target.value; });
    input.addEventListener("input", () => {
      for (const radio of lines.querySelectorAll("input")) radio.checked = radio.value === bare(input.value, answer.dataset);
    });
    code.remove();
    const label = element("label", { for: id }, "Choose a line, or type its number ");
    return element("div", { class: "quiz-choose" }, lines, element("div", { class: "quiz-number" }, label, input));
  }

  function addForm(answer, refresh) {
    const question = answer.dataset;
    const id = "quiz-" + question.quiz.replace(/\W/g, "-");
    const fields = { choice: choiceField, line: lineField, number: numberField };
    const field = fields[question.kind](answer, id);
    const result = element("p", { class: "quiz-result", role: "status" });
    const form = element("form", { class: "quiz-form" }, field,
      element("button", { type: "submit", class: "quiz-button" }, "Check"), result);
    answer.before(form);
    const asked = answer.closest("li")?.querySelector(":scope > p");
    if (asked) {
      asked.id ||= `${id}-question`;
      for (const part of form.querySelectorAll("fieldset, input[type=text]")) part.setAttribute("aria-describedby", asked.id);
    }
    const show = (right, text) => {
      result.textContent = text;
      result.className = "quiz-result " + (right ? "quiz-right" : "quiz-wrong");
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const typed = question.kind === "choice"
        ? (form.querySelector("input:checked") || { value: "" }).value
        : form.querySelector("input[type=text]").value;
      if (!isAnswer(typed, question)) {
        result.className = "quiz-result";
        result.textContent = question.kind === "choice" ? "Choose one first."
          : question.kind === "line" ? "Choose a line first." : "Type a number first.";
        return;
      }
      const right = isRight(typed, question);
      const progress = load();
      const isFirst = !(question.quiz in progress.questions);
      // The first answer counts: after it the learner has read the right one.
      if (isFirst) {
        progress.questions[question.quiz] = right;
        save(progress);
      }
      show(right, (right ? "Right." : `It is ${question.key}.`) + (isFirst ? "" : " Your first answer counts."));
      answer.open = true;
      refresh();
    });
    return () => {
      const before = load().questions[question.quiz];
      result.className = "quiz-result";
      result.textContent = "";
      if (before !== undefined) show(before, before ? "You had this right." : "You had this wrong at first.");
    };
  }

  function addQuiz(quiz) {
    const answers = [...quiz.querySelectorAll("details[data-quiz]")];
    const score = element("p", { class: "quiz-score", role: "status" });
    const refresh = () => {
      const { questions } = load();
      const given = answers.filter((answer) => answer.dataset.quiz in questions);
      const right = given.filter((answer) => questions[answer.dataset.quiz]);
      score.textContent = given.length === 0 ? "" : `${right.length} of ${plural(answers.length, "question")} right at once.`;
    };
    const recalls = answers.map((answer) => addForm(answer, refresh));
    const clear = () => {
      if (!confirm("Clear your answers to these questions?")) return;
      const progress = load();
      for (const answer of answers) {
        delete progress.questions[answer.dataset.quiz];
        answer.open = false;
      }
      save(progress);
      for (const form of quiz.querySelectorAll("form")) form.reset();
      recalls.forEach((recall) => recall());
      score.textContent = "The answers to these questions are cleared.";
    };
    quiz.append(score, element("p", { class: "quiz-buttons" },
      element("button", { type: "button", class: "quiz-button", onclick: download }, "Export all answers"), " ",
      element("button", { type: "button", class: "quiz-button", onclick: clear }, "Clear these")));
    recalls.forEach((recall) => recall());
    refresh();
  }

  function addProgress(place) {
    const { days } = JSON.parse(document.getElementById("quiz-days").textContent);
    const status = element("p", { role: "status", class: "quiz-score" });
    const input = element("input", { type: "file", id: "quiz-file", accept: ".json,application/json" });
    const refresh = () => {
      const progress = load();
      const total = { questions: 0, exercises: 0 };
      for (const day of days) {
        const done = {
          questions: day.questions.filter((id) => progress.questions[id] === true).length,
          exercises: day.exercises.filter((id) => progress.exercises[id] && progress.exercises[id].solved).length,
        };
        for (const what of ["questions", "exercises"]) {
          total[what] += done[what];
          const cell = document.querySelector(`[data-${what}-of="${day.day}"]`);
          const all = day[what].length;
          cell.textContent = all === 0 ? "" : `${done[what]} of ${all}`;
          cell.className = all > 0 && done[what] === all ? "quiz-all" : "";
        }
      }
      return `${plural(total.questions, "question")} right at once, ${plural(total.exercises, "exercise")} solved.`;
    };
    input.addEventListener("change", async () => {
      const file = input.files[0];
      if (!file) return;
      try {
        const read = checked(JSON.parse(await file.text()));
        const kept = save(merged(load(), read));
        status.textContent = `${file.name} is read. ${refresh()}` +
          (kept ? "" : " This browser does not keep it: it is gone when you leave the page.");
      } catch (error) {
        status.textContent = `${file.name} is not read: ${error.message}.`;
      }
      input.value = "";
    });
    const clear = () => {
      if (!confirm("Clear all answers and solved exercises that this browser keeps?")) return;
      save(empty());
      status.textContent = `All is cleared. ${refresh()}`;
    };
    place.append(
      element("p", {}, element("label", { for: "quiz-file" }, "Read my/progress.json, or a file that was exported: "), input),
      element("p", { class: "quiz-buttons" },
        element("button", { type: "button", class: "quiz-button", onclick: download }, "Export"), " ",
        element("button", { type: "button", class: "quiz-button", onclick: clear }, "Clear")),
      status);
    status.textContent = refresh();
  }

  function start() {
    document.querySelectorAll(".quiz").forEach(addQuiz);
    document.querySelectorAll(".quiz-progress").forEach(addProgress);
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
