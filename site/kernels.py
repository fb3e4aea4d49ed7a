"""A page for each kernel: its source beside what an inspection counts, what limits it, its times, the difference to the version before,
and the replay of one warp.

Reads docs/traces/DAY.jsonl (scripts/record_traces.py; the format: tools/course/inspect_trace.hpp), the lesson files that these
name, and docs/measurements/MACHINE/DAY*.jsonl. Days without traces have no such pages.
"""
import collections
import difflib
import functools
import html
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
import charts  # noqa: E402
import records  # noqa: E402
import record_traces  # noqa: E402
import run_here  # noqa: E402

STATIC = ["kernel.css", "replay.js", *run_here.STATIC]
FULL = 0xFFFFFFFF
WORD, SECTOR = 4, 32  # bytes
BANKS = 32
OPERATIONS = {
    "load": ("loads", "load", "from"),
    "store": ("stores", "store", "to"),
    "atomic": ("updates", "update", "of"),
    "atomic_load": ("atomic loads", "atomic load", "from"),
    "atomic_store": ("atomic stores", "atomic store", "to"),
    "async_copy": ("copies", "copy", "asynchronously, at"),
    "matrix_load": ("loads", "load", "of matrices from"),
}


# --- Traces ----------------------------------------------------------------------------------------


def lanes_of(mask):
    return [lane for lane in range(32) if mask >> lane & 1]


def decode(trace):
    """The steps of a trace: dictionaries with the keys of their place, and for requests `offsets` (32 of them, None: not active),
    `transactions` and `ideal`. `repeats`: the number of steps after this one that are left out, because they repeat others."""
    steps, repeats = [], dict(trace.get("repeats", []))
    for index, (number, mask, *rest) in enumerate(trace["recorded"]):
        step = dict(trace["places"][number], lanes=mask, repeats=repeats.get(index, 0))
        if rest:
            step["transactions"], step["ideal"], *runs = rest
            offsets = [first + i * stride for first, stride, count in zip(*[iter(runs)] * 3) for i in range(count)]
            lanes = lanes_of(mask)
            # The rows of a matrix load belong to lanes, so the mask names them, too.
            if len(offsets) != len(lanes):
                raise ValueError(f"{trace['day']}, {trace['version']}: {len(offsets)} offsets of {len(lanes)} lanes")
            by_lane = dict(zip(lanes, offsets))
            step["offsets"] = [by_lane.get(lane) for lane in range(32)]
        steps.append(step)
    return steps


def unit(space, count=2):
    return ("wavefront" if space == "shared" else "sector") + ("" if count == 1 else "s")


def count_of(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


def without_request(step, text):
    """What a step does that is no request: verb of one lane, verb of several lanes, the rest. The line of source has the names."""
    kind = step["kind"]
    if kind == "barrier":
        return "waits", "wait", "at the barrier of the block"
    if kind == "blocks_barrier":
        return "arrives", "arrive", f"at the barrier of the {'grid' if 'grid' in text else 'cluster'}"
    if kind in ("bulk_load", "bulk_store"):
        towards = "to shared memory" if kind == "bulk_load" else "from shared memory to global memory"
        return "issues", "issue", f"a bulk copy of {step['bytes']} bytes {towards}"
    if kind in ("arrival", "wait"):
        verbs = ("arrives", "arrive") if kind == "arrival" else ("waits", "wait")
        found = re.search(r"\b(\w*barrier\w*)\(", text) or re.search(r"\b(\w*(?:arrive|wait|sync)\w*)\(", text)
        barrier = "an mbarrier" if "mbarrier" in text else "a barrier of some threads"
        return *verbs, f"at {barrier}{f' ({found[1]})' if found else ''}"
    if kind != "collective":
        return "is", "are", f"at a step of the kind {kind}"
    if found := re.search(r"\b(wgmma_wait(?:<\d+>)?)", text):
        return "waits", "wait", f"for products of the warpgroup ({found[1]})"
    if found := re.search(r"\b(wgmma_(?:fence|commit)|registers_(?:in|de)crease(?:<\d+>)?)", text):
        return "executes", "execute", f"{found[1]}, an instruction of all warps of the warpgroup"
    if found := re.search(r"\b(wgmma\w*)", text):
        return "starts", "start", f"a matrix product of the warpgroup ({found[1]}), which reads shared memory"
    if found := re.search(r"\b(mma_\w+)", text):
        return "executes", "execute", f"a matrix product of the warp ({found[1]}), from registers"
    if found := re.search(r"\b((?:load|store)_matrix_sync|stmatrix\w*)", text):
        return "executes", "execute", f"{found[1]}, a transfer of a matrix by the whole warp"
    found = re.search(r"\b(__\w*sync\w*|__\w+_sync|\w+\.(?:sync|shfl\w*|any|all|ballot))\b", text)
    return "waits", "wait", f"at {found[1] if found else 'an instruction of the whole warp'}"


def sentence(step, text):
    """What a step does: '32 lanes load 4 bytes each from "in": 32 sectors, ideal 4'."""
    left_out = step.get("repeats", 0)
    more = f"; {count_of(left_out, 'step')} like those before {'follows' if left_out == 1 else 'follow'}" if left_out else ""
    return sentence_of_one(step, text) + more


def sentence_of_one(step, text):
    lanes = count_of(bin(step["lanes"]).count("1"), "lane")
    one = step["lanes"] & (step["lanes"] - 1) == 0
    if "offsets" not in step:
        of_one, of_several, rest = without_request(step, text)
        return f"{lanes} {of_one if one else of_several} {rest}"
    *verbs, preposition = OPERATIONS[step["kind"]]
    size = count_of(step["bytes"], "byte") + ("" if one else " each")
    transactions = step["transactions"]
    wasted = "" if transactions == step["ideal"] else f", ideal {step['ideal']}"
    return f"{lanes} {verbs[0 if one else 1]} {size} {preposition} \"{step['array']}\": {transactions} {unit(step['space'], transactions)}{wasted}"


# --- Source ----------------------------------------------------------------------------------------


def functions_of(lines):
    """(first line of the comment above, first line, last line) of each function at the left margin, counted from 1. A
    function ends at the first } in column 0 after it."""
    found, begin = [], None
    for number, line in enumerate(lines, 1):
        if begin is None and re.match(r"[\w\[].*\(", line) and not line.startswith(("namespace", "static_assert", "using", "#")):
            begin = number
        if begin is not None and (line.startswith("}") or (line.rstrip().endswith(";") and not line.startswith(" "))):
            if line.startswith("}") or "{" in "".join(lines[begin - 1:number]):
                above = begin
                while above > 1 and lines[above - 2].startswith(("//", "template")):
                    above -= 1
                found.append((above, begin, number))
            begin = None
    return found


def name_of_kernel(kernel):
    return re.split(r"[<(\[ ]", kernel)[0].rsplit("::", 1)[-1]


def merged(ranges):
    """Ranges of lines, of which those that overlap or touch are one."""
    found = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def parts_of(root, trace):
    """The functions that the page shows, [(file, first line, last line)]: the kernel, and those that its requests name."""
    touched = collections.defaultdict(set)
    for entry in trace["lines"] + trace["places"]:
        if entry["line"] and (root / entry["file"]).is_file():
            touched[entry["file"]].add(entry["line"])
    parts = []
    for file in sorted(touched, key=lambda name: (not name.startswith(trace["day"]), name)):
        lines = (root / file).read_text(encoding="utf-8").splitlines()
        functions = functions_of(lines)
        kernel = re.compile(rf"\b{re.escape(name_of_kernel(trace['kernel']))}\s*\(")
        shown = []
        for above, begin, end in functions:
            head = " ".join(lines[begin - 1:begin + 2])
            is_kernel = "__global__" in " ".join(lines[above - 1:begin + 1]) and kernel.search(head)
            if is_kernel or any(begin <= line <= end for line in touched[file]):
                shown.append((above, end))
        outside = [line for line in touched[file] if not any(first <= line <= last for first, last in shown)]
        shown += [(max(line - 2, 1), min(line + 2, len(lines))) for line in outside]
        parts += [(file, *part) for part in merged(shown)]
    return parts


def code_of_kernel(root, traces):
    """The code of a version's kernels, without the comments above them: what a diff compares."""
    code = []
    for trace in traces:
        for file, begin, end in parts_of(root, trace):
            lines = (root / file).read_text(encoding="utf-8").splitlines()[begin - 1:end]
            while lines and lines[0].startswith("//"):
                lines.pop(0)
            block = [line.rstrip() for line in lines]
            if block and not any(block == code[i:i + len(block)] for i in range(len(code))):
                code += block
    return code


@functools.lru_cache(maxsize=None)
def highlighted(text):
    """HTML of each line; in colour where Pygments is there, as it is where the site is built."""
    try:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import CudaLexer
    except ImportError:
        return html.escape(text).split("\n")
    return highlight(text, CudaLexer(stripnl=False, ensurenl=False), HtmlFormatter(nowrap=True)).split("\n")


def lines_of_file(root, file):
    return (root / file).read_text(encoding="utf-8").splitlines()


def each(total, requests):
    """3.97 -> "3.97", 4.0 -> "4"."""
    return f"{total / requests:.2f}".rstrip("0").rstrip(".") if requests else ""


def cells_of(accesses):
    """The cells of a line of source: requests, sectors, wavefronts, active lanes. Up to two accesses to one kind of memory are told
    apart, in the order of the inspection; of more, an average."""
    def joined(values):
        values = [value for value in values if value]
        return ", ".join(values)
    cells = [f"<td>{sum(one['requests'] for one in accesses) or ''}</td>"]
    for space in ("global", "shared"):
        of = [one for one in accesses if one["space"] == space]
        total = {key: sum(one[key] for one in of) for key in ("requests", "transactions", "ideal")}
        shown = of if len(of) <= 2 else [total]
        worst = max((one["transactions"] / one["ideal"] for one in shown if one["ideal"]), default=1)
        grade = ' class="poor"' if worst >= 2 else ' class="fair"' if worst > 1 else ""
        factor = f' <span class="factor">×{worst:.3g}</span>' if worst >= 2 else ""
        cells.append(f"<td{grade}>{joined(each(one['transactions'], one['requests']) for one in shown)}{factor}</td>")
    lanes = sum(one["active_lanes"] for one in accesses)
    cells.append(f"<td>{each(lanes, sum(one['requests'] for one in accesses))}</td>")
    return "".join(cells)


def source_table(root, trace, number):
    """The source, and of each line the requests, and sectors, wavefronts and active lanes of a request."""
    accesses = collections.defaultdict(list)
    for line in trace["lines"]:
        accesses[line["file"], line["line"]].append(line)
    rows = []
    for file, begin, end in parts_of(root, trace):
        text = highlighted("\n".join(lines_of_file(root, file)))
        rows.append(f'<tr class="file"><th colspan="6" scope="rowgroup">{html.escape(file)}</th></tr>')
        for line in range(begin, end + 1):
            rows.append(f'<tr id="k{number}-{html.escape(file)}-{line}"><th scope="row">{line}</th>{cells_of(accesses[file, line])}'
                        f'<td class="code"><code>{text[line - 1]}</code></td></tr>')
    head = ("<thead><tr><th scope=col>line</th><th scope=col>re&shy;quests</th><th scope=col>sec&shy;tors</th>"
            "<th scope=col>wave&shy;fronts</th><th scope=col>active lanes</th><th scope=col class=code>source</th></tr></thead>")
    return (f'<div class="kernel-box" tabindex="0" role="region" aria-label="Source of {html.escape(trace["kernel"])} with counts by line">'
            f'<table class="kernel-source highlight">{head}<tbody>' + "\n".join(rows) + "</tbody></table></div>")


def access_table(trace):
    """Every access of every line, folded."""
    rows = [
        f"<tr><td>{one['line']}</td><td>{one['operation'].replace('_', ' ')}</td><td>{html.escape(one['array'])}</td><td>{one['bytes']}</td>"
        f"<td>{one['requests']}</td><td>{each(one['transactions'], one['requests'])} {unit(one['space'], one['transactions'] / max(one['requests'], 1))}</td>"
        f"<td>{each(one['ideal'], one['requests'])}</td><td>{each(one['active_lanes'], one['requests'])}</td></tr>"
        for one in trace["lines"]]
    heads = "".join(f"<th scope=col>{name}</th>" for name in (
        "line", "operation", "array", "bytes per lane", "requests", "of a request", "ideal", "active lanes"))
    return (f'<details><summary>Each access by itself</summary><div class="kernel-box" tabindex="0" role="region" '
            f'aria-label="The accesses of {html.escape(trace["kernel"])}"><table><thead><tr>{heads}</tr></thead><tbody>'
            + "\n".join(rows) + "</tbody></table></div></details>")


# --- Replay ----------------------------------------------------------------------------------------


def about(trace):
    """Which warp it is."""
    recorded, block = len(trace["recorded"]), ", ".join(map(str, trace["block"]))
    left_out = sum(count for _, count in trace.get("repeats", []))
    first = f"the first {recorded + left_out} of {trace['steps']} steps" if trace["steps"] > recorded + left_out else count_of(trace["steps"], "step")
    shown = f"{first}, without {left_out} that repeat others" if left_out else first
    return f"Warp {trace['warp']} of block ({block}), of the inspected warps of all launches of the kernel the first with the most requests; {html.escape(trace['problem'])}; {shown}."


def replay(root, trace, number):
    """HTML: the data of the replay, and the table of its steps, from which replay.js takes the sentences, and which readers without
    JavaScript have. It can stand on any page that has STATIC."""
    steps = decode(trace)
    texts = {file: lines_of_file(root, file) for file in {step["file"] for step in steps} if (root / file).is_file()}

    def text(step):  # empty where the lesson has become shorter since its trace was recorded
        return "".join(texts.get(step["file"], [])[max(step["line"] - 1, 0) :][:1]) if step["line"] else ""

    data = {
        "kernel": trace["kernel"], "number": number, "total": trace["steps"],
        "places": [dict(place, text=text(place).strip()) for place in trace["places"]],
        "recorded": trace["recorded"],
    }
    rows = []
    for index, step in enumerate(steps, 1):
        first = [offset for offset in step.get("offsets", []) if offset is not None]
        bytes_text = ""
        if first:
            distances = {b - a for a, b in zip(first, first[1:])}
            bytes_text = str(first[0])
            if len(first) <= 3:
                bytes_text = ", ".join(map(str, first))
            elif len(distances) == 1 and distances != {0}:
                bytes_text += f", {first[0] + distances.copy().pop()}, …, {first[-1]}"
            elif distances and distances != {0}:
                bytes_text = ", ".join(map(str, first))
        rows.append(f"<tr><td>{index}</td><td>{step['line']}</td><td>{html.escape(sentence(step, text(step)))}</td><td>{bytes_text}</td></tr>")
    encoded = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return "\n".join([
        f'<div class="replay" id="replay-{number}">',
        f'<script type="application/json">{encoded}</script>',
        f"<details><summary>The steps as a table</summary><div class=\"kernel-box\" tabindex=\"0\" role=\"region\" aria-label=\"The steps of {html.escape(trace['kernel'])}\">"
        "<table><thead><tr><th scope=col>step</th><th scope=col>line</th><th scope=col>what happens</th>"
        "<th scope=col>offsets of the lanes in the array, bytes</th></tr></thead><tbody>",
        "\n".join(rows),
        "</tbody></table></div></details></div>",
    ])


# --- Difference ------------------------------------------------------------------------------------


def difference(before, now):
    """A unified diff as HTML, of two lists of lines: signs and colours."""
    rows = []
    for group in difflib.SequenceMatcher(None, before, now, autojunk=False).get_grouped_opcodes(3):
        if rows:
            rows.append('<span class="gap">⋯</span>')
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                rows += [f"<span>  {html.escape(line)}</span>" for line in before[i1:i2]]
                continue
            rows += [f"<del>- {html.escape(line)}</del>" for line in before[i1:i2]]
            rows += [f"<ins>+ {html.escape(line)}</ins>" for line in now[j1:j2]]
    return "".join(rows)


# --- Measured --------------------------------------------------------------------------------------


def read_json_lines(path):
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [{**lines[0], **line} for line in lines[1:]]


def measured(root, day, version):
    """Markdown: times of a version on each GPU, and what limits its kernels."""
    times, counters = [], []
    for path in sorted((root / "docs/measurements").glob(f"*/{day}.jsonl")):
        of_version = [one for one in records.read(path) if one["version"] == version and one["role"] == "ours" and one["device"] != records.HOST]
        of_version.sort(key=lambda one: one.get("bytes", 0))
        kept = {}
        for one in of_version:
            kept.setdefault((one["problem"], one["dtype"]), {})[one["l2"]] = one
        for (problem, dtype), states in list(kept.items())[-4:]:
            warm, flushed = states.get("warm"), states.get("flushed")
            shown = warm or flushed
            percent = charts.percent_of_limit(shown)
            times.append(f"| {shown['device']} | {problem} | {dtype} | {charts.time_text(warm['median_ms']) if warm else ''} | "
                         f"{charts.time_text(flushed['median_ms']) if flushed else ''} | {charts.Rate.of([shown]).text(shown)} | {'' if percent is None else f'{percent:.1f}'} |")
    for path in sorted((root / "docs/measurements").glob(f"*/{day}.counters.jsonl")):
        for one in read_json_lines(path):
            if one["version"] != version:
                continue
            busy = sorted(one["busy"].items(), key=lambda item: -item[1])[:2]
            stalls = sorted(one.get("stalls", {}).items(), key=lambda item: -item[1])[:2]
            wavefronts = one.get("shared_wavefronts") or 0
            conflicts = f"{100 * one['bank_conflicts'] / wavefronts:.0f} %" if wavefronts and one["bank_conflicts"] else "0"
            counters.append(
                f"| {one['device']} | {one['problem']} | `{one['kernel']}` | {charts.time_text(one['us'] / 1000)} | **{one['limited_by']}** | "
                f"{', '.join(f'{name} {value:.0f} %' for name, value in busy)} | {', '.join(f'`{name}` {100 * value:.0f} %' for name, value in stalls)} | "
                f"{one['sectors_per_load']:.3g}, {one['sectors_per_store']:.3g} | {conflicts} | {one['occupancy']:.0f} % | {one['registers']} |")
    text = []
    if times:
        text += ["| GPU | problem | type | warm | flushed | speed | % of limit |", "| --- | --- | --- | --: | --: | --: | --: |", *times, "",
                 "*Speed* and *% of limit* are those with a warm L2 cache, where there is such a record."]
    else:
        text += ["Not measured yet."]
    if counters:
        text += ["", "What limits it, by the counters of Nsight Compute:", "",
                 "| GPU | problem | kernel | time | limited by | busiest units | warps wait | sectors per load, store | bank conflicts | occupancy | registers |",
                 "| --- | --- | --- | --: | --- | --- | --- | --: | --: | --: | --: |", *counters]
    return "\n".join(text)


# --- Pages -----------------------------------------------------------------------------------------


def short_name(folder):
    return folder[:5] if re.match(r"day\d\d_", folder) else folder


def days(root):
    return [path.stem for path in sorted((root / "docs/traces").glob("*.jsonl"))]


def versions(root, day):
    """Version -> its traces, one for each kernel, in the order of the lesson."""
    found = {}
    for trace in record_traces.read(root / "docs/traces" / f"{day}.jsonl"):
        found.setdefault(trace["version"], []).append(trace)
    return found


def page(root, day, version, traces, before, after=None):
    """Markdown of a version's page. `before`: name and traces of the version before, or None; `after`: the name of the next one, or None."""
    measured_page = f"../../{short_name(day)}/measured/index.md"
    has_measured = (root / f"docs/measured/{day}.md").is_file()
    name = short_name(day)
    title = f"Day {int(name[3:])}" if name != day else day
    names = ", ".join(dict.fromkeys(f"`{trace['kernel']}`" for trace in traces))
    text = [f"# {title}: {version}", "",
            f"A version of [{title_of(root, day) or title}](../../{name}/index.md), line by line: {names}. "
            "The counts come from an inspection on the CPU, which records every access; counters and times were measured on a GPU.", ""]
    stale = record_traces.changed_sources(root, traces)
    if stale:
        text += [f"*The counts were recorded before the last change of {', '.join(stale)}: lines may have moved.*", ""]
    for number, trace in enumerate(traces, 1):
        title = f": `{trace['kernel']}`" if len(traces) > 1 else ""
        sampled = f", {trace['inspected_blocks']} of them inspected" if trace["inspected_blocks"] != trace["blocks"] else ""
        text += [f"## Replay{title}", "", about(trace), "", replay(root, trace, number), "",
                 f"## Source and counts{title}", "",
                 f"{trace['problem']}; {trace['launches']} launch{'' if trace['launches'] == 1 else 'es'}, {count_of(trace['blocks'], 'block')} of "
                 f"{trace['threads']} threads{sampled}. A *request* is one access of a warp. *Sectors* (32 bytes of global memory), *wavefronts* (one pass "
                 "of shared memory) and *active lanes* are averages over a line's requests. A cell with two numbers has two accesses, "
                 "in the order of the table below the source. ×8: eight times the minimum.", "",
                 source_table(root, trace, number), "", access_table(trace), ""]
        runs = run_here.part(root, name_of_kernel(trace["kernel"]))
        if runs:
            text += [f"## Run it here{title}", "", runs, ""]
    text += ["## Measured", "", measured(root, day, version), ""]
    if has_measured:
        text += [f"[All measurements of the day]({measured_page})", ""]
    if before:
        changes = difference(code_of_kernel(root, before[1]), code_of_kernel(root, traces))
        text += [f"## What changed since {before[0]}", "",
                 f"Lines removed since [{before[0]}]({before[0]}.md) are marked -, added lines +.", "",
                 f'<pre class="kernel-diff" tabindex="0" role="region" aria-label="Difference to {html.escape(before[0])}">{blank_free(changes)}</pre>', ""]
    ways = [f"Previous: [{before[0]}]({before[0]}.md)"] if before else []
    ways += [f"Next: [{after}]({after}.md)"] if after else []
    if ways:
        text += ["---", "", " · ".join(ways), ""]
    return "\n".join(text)


def title_of(root, day):
    """ "Day 6: transpose", from the heading of the day's README up to a comma; empty if there is none."""
    path = root / day / "README.md"
    heading = re.match(r"(?:<!--.*?-->\s*)?# ([^\n]*)", path.read_text(encoding="utf-8"), re.S) if path.is_file() else None
    return heading[1].split(",")[0] if heading else ""


def blank_free(text):
    """Markdown ends raw HTML at an empty line."""
    return re.sub(r"\n\s*\n", "\n", text)


def pages(root):
    """Page path -> Markdown."""
    found = {}
    for day in days(root):
        before, of_day = None, versions(root, day)
        for (version, traces), after in zip(of_day.items(), [*of_day, None][1:]):
            found[f"kernels/{short_name(day)}/{version}"] = page(root, day, version, traces, before, after)
            before = (version, traces)
    return found


def sample(root, day="day06_transpose", version="tiled"):
    """HTML: the replay of one kernel, for the front page; empty if there is no such trace."""
    traces = versions(root, day).get(version) if day in days(root) else None
    return replay(root, traces[0], 1) if traces else ""


def on_front_page(root, day="day06_transpose", version="tiled"):
    """HTML and Markdown: the replay of sample(), with what it shows; empty if there is no such trace."""
    shown = sample(root, day, version)
    if not shown:
        return ""
    trace, name = versions(root, day)[version][0], short_name(day)
    others = len(days(root)) - 1
    pages_of = f"This day and {count_of(others, 'other')} have" if others else "This day has"
    return (f'Here a warp of [day {int(name[3:])}]({day}/README.md) transposes a tile in shared memory, in the kernel '
            f'<a href="kernels/{name}/{version}.html"><code>{html.escape(trace["kernel"])}</code></a> of '
            f'[`{trace["places"][0]["file"].rpartition("/")[2]}`]({trace["places"][0]["file"]}). Step through its accesses, or choose a lane. '
            f"{about(trace)} {pages_of} a page for each kernel, which shows the replay beside the source.\n\n{shown}")


def links(root, day):
    """A line of links for the page of a day; empty if the day has no traces."""
    if day not in days(root):
        return ""
    each_version = ", ".join(f"[{version}](../kernels/{short_name(day)}/{version}.md)" for version in versions(root, day))
    return f"## The kernels, line by line\n\nSource, counts, measurements and the replay of a warp: {each_version}.\n"
