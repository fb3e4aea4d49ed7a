"""Opens pages of the site in Chromium, as a reader with a phone or a large screen, in both themes, with a keyboard or without
JavaScript. Needs Playwright and axe (requirements-check.txt) and the system's Chromium; loads everything by file:.

Each check_... function takes a Browser and returns a list of faults, as text; an empty list means that the check has passed.
"""
import contextlib
import pathlib
import shutil
import urllib.parse

SIZES = {"phone": (390, 844), "desktop": (1400, 900)}
THEMES = ("light", "dark")
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
COMMON = {"resultTypes": ["violations"], "preload": False}  # to preload, axe asks for style sheets, which file: refuses
EVERYTHING = {**COMMON, "runOnly": TAGS, "rules": {"target-size": {"enabled": True}}}
ALL_BUT_CONTRAST = {**COMMON, "runOnly": TAGS, "rules": {"target-size": {"enabled": True}, "color-contrast": {"enabled": False}}}
CONTRAST = {**COMMON, "runOnly": {"type": "rule", "values": ["color-contrast"]}}
RULES = {("phone", "light"): EVERYTHING, ("phone", "dark"): CONTRAST, ("desktop", "light"): ALL_BUT_CONTRAST}  # contrast takes longest
SIDEWAYS = """() => {
  const width = document.documentElement.clientWidth;
  if (document.scrollingElement.scrollWidth <= width) return [];
  const clips = element => { for (let e = element.parentElement; e && e !== document.body; e = e.parentElement)
    if (getComputedStyle(e).overflowX !== "visible") return true; return false; };
  return [...document.body.querySelectorAll("*")]
    .filter(e => e.getBoundingClientRect().right + window.scrollX > width + 1 && !clips(e)).slice(0, 3)
    .map(e => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") + (e.classList.length ? "." + [...e.classList].join(".") : "") + " reaches to "
      + Math.round(e.getBoundingClientRect().right + window.scrollX) + " of " + width + " px");
}"""
CUT = """() => [...document.querySelectorAll("article .highlight-cuda pre, article .highlight-sh pre")].filter(pre => pre.scrollWidth > pre.clientWidth + 1)
  .slice(0, 3).map(pre => pre.innerText.split("\\n")[0])"""
SETTLED = """() => { const now = document.querySelectorAll("#search-results li").length, before = window.resultsBefore;
  window.resultsBefore = now; return now === before; }"""
WIDER = "() => document.scrollingElement.scrollWidth > document.documentElement.clientWidth"


def find_chromium():
    """Where Chromium is, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class NotThere(Exception):
    """The site has no such part; the text says why that is no fault."""


class Browser:
    """A Chromium that shows the site below `root`; use it as a context manager."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()

    def __enter__(self):
        import axe_playwright_python
        from playwright.sync_api import TimeoutError, sync_playwright
        self.TimeoutError = TimeoutError
        self.axe = (pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
        self._playwright = sync_playwright().start()
        self._chromium = self._playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"])
        return self

    def __exit__(self, *_):
        self._chromium.close()
        self._playwright.stop()

    @contextlib.contextmanager
    def page(self, path, size="desktop", theme="light", javascript=True):
        """Yields an open page and the list of what goes wrong on it, which grows while the page is used."""
        width, height = SIZES[size]
        context = self._chromium.new_context(viewport={"width": width, "height": height}, color_scheme=theme, java_script_enabled=javascript,
                                             reduced_motion="reduce", service_workers="block")
        context.set_default_timeout(10000)
        page, wrong = context.new_page(), []
        address = path if path.startswith("http:") else (self.root / path).as_uri()
        page.on("console", lambda message: wrong.append(f"console: {message.text}")
                if message.type == "error" and not (address.startswith("http:") and message.location["url"] == address) else None)  # 404 is right there
        page.on("pageerror", lambda error: wrong.append(f"script: {error.message}"))
        page.on("request", lambda request: wrong.append(f"asks another host: {request.url}")
                if not request.url.startswith(("file:", "data:", "blob:", "about:", urllib.parse.urljoin(address, "/"))) else None)
        page.on("requestfailed", lambda request: wrong.append(f"not loaded: {request.url.removeprefix(self.root.as_uri() + '/')}"))
        try:
            page.goto(address, wait_until="load")
            yield page, wrong
        finally:
            context.close()


def violations(page, options, without):
    """What axe finds outside of the elements of the selectors `without`, a line for each rule that is violated."""
    found = []
    for violation in page.evaluate("([without, options]) => axe.run({ include: [['html']], exclude: without.map(one => [one]) }, options)",
                                   [without, options])["violations"]:
        node = violation["nodes"][0]
        reason = (node["any"] + node["all"] + node["none"] + [{"message": violation["help"]}])[0]["message"]
        target = " ".join(map(str, node["target"]))
        found.append(f"axe {violation['id']}, {len(violation['nodes'])} times: {reason} At {target}: {node['html'][:160]}")
    return found


def check_looks(browser, path, size, without=()):
    """No errors of the console, nothing wider than the page, no violation of WCAG 2.2 AA that axe can see; contrast in both themes.
    `without`: selectors of what axe has seen on another page."""
    with browser.page(path, size, "light") as (page, wrong):
        if page.locator("html.stepped").count():
            page.keyboard.press("a")  # all slides
        page.evaluate(browser.axe)
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            if page.evaluate(WIDER):
                wrong.append("the page scrolls sideways: " + ("; ".join(page.evaluate(SIDEWAYS)) or "no single element is the reason"))
            if size == "phone" and (cut := page.evaluate(CUT)):
                wrong.append(f"code is wider than a phone; expected lines that wrap: {'; '.join(cut)}")
            if (size, theme) in RULES:
                found = violations(page, RULES[size, theme], [selector for selector in without if page.locator(selector).count()])
                wrong.extend(text if theme == "light" else f"dark: {text}" for text in found)
        return list(dict.fromkeys(wrong))


def check_search(browser, front, terms):
    """On the front page: `/` focuses the search, Enter searches, and one of the first ten results is the expected page.
    `terms` maps a term to parts of paths, one of which the result's address must have."""
    faults, wrong_on_pages = [], []
    for term, expected in terms.items():
        with browser.page(front) as (page, wrong):
            page.keyboard.press("/")
            if page.evaluate("document.activeElement.tagName") != "INPUT":
                return ["/ does not focus the search"]
            page.keyboard.type(term)
            page.keyboard.press("Enter")
            with contextlib.suppress(browser.TimeoutError):
                page.wait_for_function("document.querySelectorAll('#search-results li a').length > 0")
                page.wait_for_function(SETTLED, polling=400)
            addresses = page.eval_on_selector_all("#search-results li a", "links => links.map(link => link.href)")
            addresses = [address.removeprefix(browser.root.as_uri() + "/") for address in dict.fromkeys(addresses)][:10]
            context = page.locator("#search-results .search-context").all_inner_texts()
            if not any(term.split()[0].lower() in text.lower() for text in context):
                faults.append(f"'{term}': no result shows a line with it, only {context[:2]}")
            if not any(part in address for part in expected for address in addresses):
                faults.append(f"'{term}': none of {', '.join(expected)} is among the first results: {', '.join(addresses) or 'nothing'}")
            wrong_on_pages += [f"'{term}': {fault}" for fault in wrong]
    if len(wrong_on_pages) > 3:
        wrong_on_pages[3:] = [f"and {len(wrong_on_pages) - 3} more like these"]
    return faults + wrong_on_pages


def check_theme(browser, path):
    """The button for the theme is reached by Tab, Enter switches the theme, and the page has the same one when it is opened again."""
    theme = "getComputedStyle(document.body).backgroundColor + ' ' + (document.body.dataset.theme || '')"
    with browser.page(path) as (page, wrong):
        before = page.evaluate(theme)
        if not tab_to(page, ".theme-toggle"):
            return ["Tab does not reach the button for the theme"]
        for _ in range(3):  # automatic, light, dark
            page.keyboard.press("Enter")
            if page.evaluate(theme).rpartition(" ")[0] != before.rpartition(" ")[0]:
                break
        else:
            wrong.append(f"Enter does not change the theme, which is '{page.evaluate(theme)}'")
        chosen = page.evaluate(theme)
        page.reload()
        if page.evaluate(theme) != chosen:
            wrong.append(f"the theme is '{page.evaluate(theme)}' after the page is opened again; expected '{chosen}'")
        return wrong


def check_without_javascript(browser, path, texts):
    """The text of a day and its folded answers are there, and an answer opens, although no script runs."""
    with browser.page(path, javascript=False) as (page, wrong):
        seen = page.locator("body").inner_text()
        wrong.extend(f"without JavaScript '{text}' is not to be seen" for text in texts if text not in seen)
        answers = page.locator("details")
        if not answers.count():
            return wrong + ["without JavaScript there is no folded answer"]
        answer = answers.first
        answer.locator("summary").first.click()
        body = answer.inner_text().removeprefix(answer.locator("summary").first.inner_text()).strip()
        if not body:
            wrong.append("without JavaScript the first folded answer opens to nothing")
        return wrong


def focused(page):
    """What has the focus: a short text for a message."""
    return page.evaluate("() => { const e = document.activeElement; return e.tagName.toLowerCase() + (e.className ? '.' + e.className : ''); }")


def tab_to(page, selector, limit=400):
    """Presses Tab until an element of the selector has the focus; False if that does not happen."""
    for _ in range(limit):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return True
        page.keyboard.press("Tab")
    return False



def check_slides(browser, path):
    """The arrow keys turn slides, End and Home lead to the last and the first, and printing gives a page for each slide."""
    with browser.page(path) as (page, wrong):
        count = page.locator(".slide").count()
        shown = "[...document.querySelectorAll('.slide')].flatMap((slide, index) => slide.offsetParent ? [index + 1] : [])"
        for key, expected in (("", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("ArrowLeft", 1), ("End", count), ("ArrowRight", count), ("Home", 1),
                              ("PageDown", 2)):
            if key:
                page.keyboard.press(key)
            if page.evaluate(shown) != [expected]:
                wrong.append(f"after '{key}' the slides {page.evaluate(shown)} are shown; expected {expected}")
        printed = page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n")
        if printed != count:
            wrong.append(f"{count} slides are printed on {printed} pages")
        page.keyboard.press("a")
        if len(page.evaluate(shown)) != count:
            wrong.append(f"after 'a' {len(page.evaluate(shown))} slides are shown; expected all {count}")
        return wrong


def check_quiz(browser, path):
    """Every question of the page is answered by keyboard: by -1, its first option or its first line, and then by its key. The page says
    which of the two is right, opens the folded answer, and remembers the first when it is opened again."""
    with browser.page(path) as (page, wrong):
        forms = page.locator("form.quiz-form")
        if not forms.count():
            return ["there is no quiz"]
        for number in range(forms.count()):
            form, name = forms.nth(number), f"question {number + 1}"
            answer = form.evaluate_handle("form => form.closest('li, .quiz').querySelector('details.quiz-answer')")
            key = answer.evaluate("details => details.dataset.key")
            field = form.locator("input[type=radio], input[type=text]").first
            if not tab_into(page, form.element_handle()):
                wrong.append(f"{name}: Tab does not reach it")
                continue
            if answer.evaluate("details => details.open"):
                wrong.append(f"{name}: its answer is open before it is answered")
            asked = form.evaluate(DESCRIBED)
            if not all(asked) or not answer.evaluate("(details, asked) => details.closest('li').innerText.trim().startsWith(asked)", asked[0]):
                wrong.append(f"{name}: its fields are described by {asked}; expected the question")
            if form.locator(".quiz-lines label").count() > 2:
                wrong += [f"{name}: {fault}" for fault in selected(page, form)]
            is_radio = field.get_attribute("type") == "radio"
            typed = field.get_attribute("value") if is_radio else "-1"
            page.keyboard.press("Space") if is_radio else page.keyboard.type(typed)
            wrong += [f"{name}: {fault}" for fault in judged(page, form, key, typed)]
            if not answer.evaluate("details => details.open"):
                wrong.append(f"{name}: Enter does not open the answer")
            right = key.removeprefix("line ")
            if form.locator("input[type=text]").count():
                form.locator("input[type=text]").fill(key)
                form.locator("input[type=text]").focus()
            else:
                form.locator(f"input[value='{right}']").check()
            if is_radio and form.locator(f"input:checked[value='{right}']").count() == 0:
                wrong.append(f"{name}: its line is not marked when its number is typed")
            wrong += [f"{name}: {fault}" for fault in judged(page, form, key, right)]
        page.reload()
        if "true" not in (kept := page.evaluate("JSON.stringify(Object.values(localStorage))")) and "false" not in kept:
            wrong.append("no answer is kept in the browser")
        return wrong


# What describes the fields of a form.
DESCRIBED = """form => [...form.querySelectorAll("fieldset, input[type=text]")].map(
  field => document.getElementById(field.getAttribute("aria-describedby"))?.innerText.trim() || "")"""


def selected(page, form):
    """Drags the mouse over the first lines of a function: that selects their text, and chooses none. A click chooses a line, whose
    outline shows the focus of the keyboard. What is wrong with it."""
    lines = form.locator(".quiz-lines label")
    lines.nth(0).scroll_into_view_if_needed()
    first, third = (lines.nth(place).bounding_box() for place in (0, 2))
    left = first["x"] + 80
    page.mouse.move(left, first["y"] + first["height"] / 2)
    page.mouse.down()
    page.mouse.move(left + 60, third["y"] + third["height"] / 2, steps=5)
    page.mouse.up()
    text = page.evaluate("getSelection().toString()")
    wrong = [] if lines.nth(1).inner_text().strip() in text and text.strip() else [f"dragging over its lines selects '{text}'"]
    if form.locator("input:checked").count():
        wrong.append("dragging over its lines chooses one")
    page.evaluate("getSelection().empty()")
    lines.nth(1).click()
    if not lines.nth(1).locator("input:checked").count():
        wrong.append("a click on a line does not choose it")
    page.keyboard.press("ArrowUp")
    if not lines.nth(0).locator("input:checked").count() or lines.nth(0).evaluate("line => getComputedStyle(line).outlineStyle") == "none":
        wrong.append("the arrow keys do not move to another line, or the one that has the focus is not marked")
    return wrong


def judged(page, form, key, typed):
    """Presses Enter in a question's form; what is wrong with what the page then says."""
    page.keyboard.press("Enter")
    page.wait_for_timeout(100)
    says = form.locator("[role=status], [aria-live]").first.inner_text().strip()
    if not says:
        return ["Enter says neither right nor wrong"]
    right = typed == key.removeprefix("line ")
    return [] if says.startswith("Right") == right else [f"'{typed}' is judged '{says}'; expected {'right' if right else 'wrong'}: the key is '{key}'"]


def tab_into(page, form, limit=600):
    """Presses Tab until something in the form has the focus; False if that does not happen."""
    for _ in range(limit):
        page.keyboard.press("Tab")
        if form.evaluate("form => form.contains(document.activeElement)"):
            return True
    return False


def check_chart(browser, path):
    """Each chart with lines: the arrow keys go along each line, and say another figure each time; what a finger taps stays."""
    with browser.page(path, "phone") as (page, wrong):
        charts = page.locator("figure.chart:has(.chart-tip)")
        if not charts.count():
            return ["there is no chart with a line"]
        for number in range(charts.count()):
            chart, name = charts.nth(number), f"chart {number + 1}"
            tip = chart.locator(".chart-tip")
            for button in chart.locator(".chart-legend button").all():
                button.focus()
                seen = []
                for _ in range(2):
                    page.keyboard.press("ArrowRight")
                    seen.append(tip.inner_text())
                if not seen[0] or (seen[0] == seen[1] and points_of(button) > 1):
                    wrong.append(f"{name}, {button.inner_text().strip()}: after ArrowRight twice the figures are {seen}; expected two of them")
            said = chart.evaluate(TAP)
            if not said[0]:
                wrong.append(f"{name}: a tap on a point shows no figure")
            elif said[1] != said[0]:
                wrong.append(f"{name}: the figure of a tap is '{said[1]}' when the finger is lifted; expected '{said[0]}'")
            if said[2]:
                wrong.append(f"{name}: the figure of a tap stays when the finger taps elsewhere")
        return wrong


def points_of(button):
    """How many points the line of a legend's button has."""
    return button.evaluate("button => button.closest('figure').querySelectorAll(`[data-series='${button.closest('li').dataset.series}'] .chart-point:not(.chart-dot)`).length")


# Taps the middle of the chart's first point. What the tip says then, when the finger is lifted, and after a tap on the page.
TAP = """figure => {
  document.activeElement.blur();
  const svg = figure.querySelector("svg"), tip = figure.querySelector(".chart-tip");
  const box = figure.querySelector(".chart-point[data-x]").getBoundingClientRect();
  const send = (target, type) => target.dispatchEvent(new PointerEvent(type, { bubbles: type !== "pointerleave", pointerType: "touch",
    clientX: box.x + box.width / 2, clientY: box.y + box.height / 2 }));
  const says = [];
  send(svg, "pointerdown"); says.push(tip.textContent);
  send(svg, "pointerleave"); says.push(tip.textContent);
  send(document.body, "pointerdown"); says.push(tip.textContent);
  return says;
}"""


def check_replay(browser, path):
    """A replay is stepped, played and paused by keyboard; its live region says another step each time."""
    with browser.page(path) as (page, wrong):
        box = page.locator(".replay-box").first
        if not box.count():
            return ["there is no replay"]
        if not tab_to(page, ".replay-box"):
            return ["Tab does not reach the replay"]
        says = box.locator("[aria-live]").first
        seen = [says.inner_text()]
        for key in ("ArrowRight", "ArrowRight", "End"):
            page.keyboard.press(key)
            seen.append(says.inner_text())
        if len(set(seen)) != len(seen):
            wrong.append(f"after ArrowRight, ArrowRight, End the replay says {seen}; expected another step each time")
        page.keyboard.press("Home")
        if says.inner_text() != seen[0]:
            wrong.append(f"after Home the replay says '{says.inner_text()}'; expected '{seen[0]}'")
        page.keyboard.press("Space")
        page.wait_for_timeout(2500)
        page.keyboard.press("Space")
        paused = says.inner_text()
        if paused == seen[0]:
            wrong.append("Space does not play")
        page.wait_for_timeout(1500)
        if says.inner_text() != paused:
            wrong.append("Space does not pause")
        return wrong


# Of a page of a kernel: the share of the width that the columns before the source take, that of the replay's first step that is empty,
# and the parts that are wider than their box.
NARROW = """() => {
  const box = document.querySelector(".kernel-source").closest(".kernel-box"), code = box.querySelector("td.code");
  const replay = document.querySelector(".replay-box"), end = replay.lastElementChild.getBoundingClientRect().bottom;
  document.querySelector(".replay details").open = true;
  const wide = [...document.querySelectorAll(".kernel-box:has(.kernel-source), .replay .kernel-box, .kernel-diff")].filter(one => one.scrollWidth > one.clientWidth + 1);
  return { columns: (code.getBoundingClientRect().left - box.getBoundingClientRect().left) / box.clientWidth,
           empty: (replay.getBoundingClientRect().bottom - end) / replay.offsetHeight, wide: wide.map(one => one.getAttribute("aria-label")) };
}"""


def check_kernel_on_a_phone(browser, path):
    """The source has most of the width, at most half of what a replay shows is empty below it, and no table of text is cut."""
    with browser.page(path, "phone") as (page, wrong):
        found = page.evaluate(NARROW)
        if found["columns"] > 0.3:
            wrong.append(f"{path}: the counts take {found['columns']:.0%} of the width; expected 30 % at most")
        if found["empty"] > 0.4:
            wrong.append(f"{path}: {found['empty']:.0%} of the replay's first step are empty; expected a third, and a border")
        return wrong + [f"{path}: on a phone it scrolls sideways: {label}" for label in found["wide"]]


def check_run_here(browser, path):
    """A sum runs in the page with a size and a grid of the reader's choice, started by keyboard; it is right, all threads have run, and
    another block than the kernel's makes it wrong. Stop stops it, and a number that is none is refused."""
    with browser.page(path) as (page, wrong):
        form = page.locator(".run-here-form").first
        if not form.count():
            if (browser.root / "_static/run_here_kernels.js").exists():
                return ["there is no form, although the site has the script with the kernels"]
            raise NotThere("the site was built without emscripten")
        says = page.locator(".run-here-says").first

        def run(numbers, expected):
            for label, number in numbers.items():
                form.get_by_label(label, exact=True).fill(str(number))
            page.keyboard.press("Enter")
            with contextlib.suppress(browser.TimeoutError):
                page.wait_for_function("() => !/^$|Runs/.test(document.querySelector('.run-here-says').textContent)", timeout=60000)
            said = says.inner_text()
            for part in expected:
                if part not in said:
                    wrong.append(f"with {numbers} the page says '{said}'; expected '{part}'")

        if not tab_to(page, ".run-here-form input"):
            return ["Tab does not reach the form"]
        run({"elements": 1000, "blocks": 3, "threads of a block": 256}, ["Right", "768 threads ran in 3 blocks"])
        run({"elements": 1025, "blocks": 4, "threads of a block": 256}, ["Right", "1,024 threads ran in 4 blocks"])
        run({"elements": 1025, "blocks": 4, "threads of a block": 128}, ["Wrong", "512 threads ran in 4 blocks"])
        run({"elements": "1e3"}, ['"elements" is "1e3"; expected a whole number from 1 to'])
        form.get_by_label("elements", exact=True).fill("1000")
        # Before the worker has begun: the script is loaded, so that only a few promises come between the two buttons.
        page.evaluate("""async () => { const [run, stop] = document.querySelectorAll(".run-here-form button");
          run.click(); for (let i = 0; i < 10; ++i) await null; stop.click(); }""")
        if says.inner_text() != "Stopped.":
            wrong.append(f"after Stop the page says '{says.inner_text()}'")
        return wrong
