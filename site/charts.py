"""Charts from the records in docs/measurements, as inline SVG with a legend and a table in HTML.

Every chart is one raw HTML block without an empty line, so that it can stand in Markdown. Colours
are those of static/charts.css; a line differs from the others in its marker, too. static/charts.js
adds a tooltip and highlights a line; without it, each point has a <title>.
"""

import dataclasses
import html
import itertools
import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
import records as record_files  # noqa: E402

STATIC = ["charts.js", "charts.css"]

WIDTH = 360  # of every chart, in units of about a pixel: legible on a phone, two beside each other on a screen
CHARACTER = 6.7  # the width of one at the charts' 11 units, on average
LABEL = 44  # what a label of the size takes on the axis
MOST_LINES = 8  # of ours: as many as there are colours
MOST_PEERS = 2
GROUP = 20  # problems of a sweep that share a mean, at least
MOST_GROUPS = 10
MARKERS = 8
ROUNDING = 0.99  # as on_other_units() in tools/course/measured_tables.cpp
NUMBER = re.compile(r"(?<![A-Za-z_\d.])\d+(?:\.\d+)?|(?<=\dx)\d+")
BYTES = re.compile(r"\b(\d+) ([KMG]B)\b")
SHIFTS = {"KB": 10, "MB": 20, "GB": 30}
LATENCY = re.compile(r"(ns|us) per \w+$")  # the name of a figure besides times
BESIDE = re.compile(r'\bBESIDE\s+"([^"]+)"')
BESIDE_VERSION = re.compile(r'\bBESIDE_VERSION\s+"([^"]+)"')
TITLE = re.compile(r'\bTITLE\s+"([^"]+)"')


@dataclasses.dataclass
class Chart:
    """What a chart shows besides its title."""

    title: str
    description: str  # for a screen reader: what is on the axes, how many lines
    svg: str  # what is inside <svg>
    height: int
    legend: list  # (class, name) of each series; empty: the chart has labels of its own
    heading: list  # of the table
    rows: list  # of the table
    note: str = ""


# --- Numbers as text ---


def three_digits(value):
    """0.0123 -> "0.0123", 4601.2 -> "4601": three digits, or all in front of the point."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "?"
    digits = max(0, 2 - math.floor(math.log10(abs(value)) + 1e-9))
    return f"{value:.{digits}f}"


def time_text(milliseconds):
    """0.0123 -> "12.3 µs"."""
    if milliseconds < 1:
        return three_digits(milliseconds * 1e3) + " µs"
    return three_digits(milliseconds) + " ms" if milliseconds < 1000 else three_digits(milliseconds / 1e3) + " s"


def size_text(value):
    """268435456 -> "256 Mi", 1500 -> "1500", 2000000 -> "2 M"."""
    for power, unit in ((30, "Gi"), (20, "Mi"), (10, "Ki")):
        if value % 2**power == 0:
            return f"{value // 2**power:.0f} {unit}"
    for power, least, unit in ((9, 1e9, "G"), (6, 1e6, "M"), (3, 1e4, "k")):
        if value >= least and value % 10**power == 0:
            return f"{value / 10**power:.0f} {unit}"
    return f"{value:.10g}"


def escape(text):
    return html.escape(str(text))


# --- Records ---


def load(root, day="*"):
    """{day: {machine: records}}, without sweeps, counters and the host's CPU."""
    days = {}
    for path in sorted((root / "docs" / "measurements").glob(f"*/{day}.jsonl")):
        if "." in path.stem or path.stem.endswith(("_sweep", "_plot")):
            continue
        found = [r for r in record_files.read(path) if r["device"] != record_files.HOST and r.get("verified") is not False]
        if found:
            days.setdefault(path.stem, {})[path.parent.name] = found
    return days


def cached(records):
    """The records with a warm cache; those of problems that have none, with a flushed one."""
    warm = {(r["problem"], r["version"]) for r in records if r["l2"] == "warm"}
    return [r for r in records if r["l2"] == "warm" or (r["problem"], r["version"]) not in warm]


def problems_of(records):
    return list(dict.fromkeys(r["problem"] for r in records))


def at(records, problem):
    """The records about one problem."""
    return [r for r in records if r["problem"] == problem]


def setting(root, day, pattern):
    """What the day's CMakeLists.txt says for BESIDE, BESIDE_VERSION or TITLE; empty if nothing."""
    path = root / day / "CMakeLists.txt"
    match = pattern.search(path.read_text()) if path.exists() else None
    return match[1] if match else ""


def main_problem(root, day, records):
    """The problem of the README's table: that of BESIDE, or the one with the most versions of ours; in
    a tie, the one that moves the most bytes (main_problem() in measured_tables.cpp).
    """
    problems = problems_of(records)
    beside = setting(root, day, BESIDE)
    if beside in problems:
        return beside
    return max(
        problems,
        key=lambda problem: (
            sum(r["role"] == "ours" for r in at(records, problem)),
            max(r["bytes"] for r in at(records, problem)),
        ),
    )


def percent_of_limit(record):
    """None on other units than FP32 multiply-adds, whose limit is not measured, and where unknown."""
    percent, limit = record.get("percent_of_limit"), record.get("limit_flops_per_second") or 0
    if percent is None:
        return None
    of_multiply_adds = 100 * record["flops"] / record["median_ms"] * 1e3 / limit if limit else 0
    return None if percent < ROUNDING * of_multiply_adds else percent


def is_of_arithmetic(record):
    """Is arithmetic the nearer limit of the problem, and not memory?"""
    memory, arithmetic = record.get("limit_bytes_per_second") or 0, record.get("limit_flops_per_second") or 0
    if not memory or not arithmetic or not record["bytes"]:
        return record["flops"] > 0
    return record["flops"] / arithmetic > record["bytes"] / memory


@dataclasses.dataclass
class Rate:
    """What is done per second, in the unit that suits `records`."""

    key: str
    factor: float
    unit: str

    @staticmethod
    def of(records):
        if is_of_arithmetic(records[0]):
            most = max(r["flops"] / r["median_ms"] for r in records)
            return Rate("flops", 1e-9, "TFLOP/s") if most >= 1e9 else Rate("flops", 1e-6, "GFLOP/s")
        if records[0]["bytes"]:
            return Rate("bytes", 1e-6, "GB/s")
        return Rate("", 1e-3, "launches/s")

    def __call__(self, record):
        return (record[self.key] if self.key else 1e6) / record["median_ms"] * self.factor

    def text(self, record):
        return f"{three_digits(self(record))} {self.unit}"

    def limit(self, records):
        """The measured limit in this unit; 0: not known, or not of the units that are used."""
        found = [r[f"limit_{self.key}_per_second"] for r in records if r.get(f"limit_{self.key}_per_second")]
        if not found or all(percent_of_limit(r) is None for r in records):
            return 0
        return sorted(found)[len(found) // 2] * self.factor * 1e-3


@dataclasses.dataclass
class Latency:
    """A figure besides times, such as "ns per load", where a Rate is shown elsewhere."""

    name: str

    @property
    def unit(self):
        return self.name.replace("us", "µs", 1)

    def __call__(self, record):
        return dict(record["figures"])[self.name]

    def text(self, record):
        return f"{three_digits(self(record))} {self.unit}"

    def limit(self, records):
        return 0


def telling(records, most):
    """At most `most` versions of ours about one problem: the first, the fastest, and those that gain
    most over the fastest before them; in their order.
    """
    best, gains = math.inf, []
    for place, record in enumerate(records):
        gains.append((-math.inf if place == 0 else record["median_ms"] / best, place))
        best = min(best, record["median_ms"])
    fastest = min(range(len(records)), key=lambda i: records[i]["median_ms"])
    kept = {0, fastest}
    for _, place in sorted(gains):
        if len(kept) < most:
            kept.add(place)
    return [records[place]["version"] for place in sorted(kept)]


def fastest(records, role):
    return min((r for r in records if r["role"] == role), key=lambda r: r["median_ms"], default=None)


# --- Sizes ---


def in_bytes(problem):
    """ "chase 16 KB" -> "chase 16384 bytes", so that sizes in different units can be compared."""
    return BYTES.sub(lambda match: f"{int(match[1]) << SHIFTS[match[2]]} bytes", problem)


def numbers_in(problem):
    return [float(number) for number in NUMBER.findall(in_bytes(problem))]


def with_n(problem, places, others=()):
    """The problem's name with N at `places`, and a dot at `others`."""
    count = itertools.count()

    def name(match):
        place = next(count)
        return "N" if place in places else "·" if place in others else match[0]

    return re.sub(r"\bN [KMG]B\b", "N bytes", NUMBER.sub(name, problem))


def sizes(problems, main):
    """Problems that differ from `main` in size only, and how the axis is named: ([(N, problem)], "sum
    N"); at least two of them, or ([], "").
    """
    template = NUMBER.sub("#", in_bytes(main))
    base = numbers_in(main)
    values = {p: numbers_in(p) for p in problems if NUMBER.sub("#", in_bytes(p)) == template}
    differ = {p: {i for i, (a, b) in enumerate(zip(values[p], base)) if a != b} for p in values}
    found = []  # (how good, points, name)

    def add(places, condition, preference, others=()):
        points = sorted(
            (values[p][places[0]], p) for p in values if differ[p] <= {*places, *others} and condition(values[p])
        )
        sizes = [n for n, _ in points]
        if len(points) >= 2 and sizes[0] > 0 and len(set(sizes)) == len(sizes):
            found.append(((len(points) >= 3, preference, sizes[-1] / sizes[0]), points, with_n(main, places, others)))

    for place in range(len(base)):
        add([place], lambda numbers: True, 2)
    # n x n x n: the dimensions that are equal in `main` stay equal.
    for side in sorted(set(base)):
        places = [i for i, number in enumerate(base) if number == side]
        if len(places) > 1:
            add(places, lambda numbers, places=places: len({numbers[i] for i in places}) == 1, 2)
    # Two change together: fewer sequences that are longer, or, if nothing else is there, any two.
    for a, b in itertools.combinations(range(len(base)), 2):
        add([b], lambda numbers, a=a, b=b: numbers[a] * numbers[b] == base[a] * base[b], 1, [a])
        add([b], lambda numbers: True, 0, [a])
    if not found:
        return [], ""
    _, points, name = max(found, key=lambda each: each[0])
    return points, name


# --- Axes ---


def log_ticks(low, high, most, binary=False):
    """At most `most` round values between the two, for a logarithmic axis."""
    sets = []
    if binary:
        for step in range(1, 12):
            sets.append([2.0**k for k in range(0, 64) if k % step == 0])
    else:
        decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
        for mantissas in ((1, 1.5, 2, 3, 4, 5, 6, 7, 8), (1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
            sets.append([m * 10.0**k for k in decades for m in mantissas])
        for step in (2, 3, 4):
            sets.append([10.0**k for k in decades if k % step == 0])
    inside = [[v for v in values if low * 0.999 <= v <= high * 1.001] for values in sets]
    return max((values for values in inside if len(values) <= most), key=len, default=[])


class Log:
    """A logarithmic axis from the values [low, high] to the pixels [begin, end]."""

    def __init__(self, low, high, begin, end):
        margin = (high / low) ** 0.04 if high > low else 1.5
        self.low, self.high, self.begin, self.end = low / margin, high * margin, begin, end

    def __call__(self, value):
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.begin + share * (self.end - self.begin), 1)


def text(x, y, content, anchor="start", css="chart-label"):
    return f'<text class="{css}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(content)}</text>'


def marker(shape, x, y, size=3.6):
    """The path of a marker: no two of the eight look alike."""
    s = size
    paths = (
        f"M{x - s:g} {y:g}a{s:g} {s:g} 0 1 0 {2 * s:g} 0a{s:g} {s:g} 0 1 0 {-2 * s:g} 0z",
        f"M{x - s:g} {y - s:g}h{2 * s:g}v{2 * s:g}h{-2 * s:g}z",
        f"M{x:g} {y - 1.2 * s:g}l{1.2 * s:g} {2.2 * s:g}h{-2.4 * s:g}z",
        f"M{x:g} {y - 1.35 * s:g}l{1.35 * s:g} {1.35 * s:g}l{-1.35 * s:g} {1.35 * s:g}l{-1.35 * s:g} {-1.35 * s:g}z",
        f"M{x:g} {y + 1.2 * s:g}l{1.2 * s:g} {-2.2 * s:g}h{-2.4 * s:g}z",
        f"M{x - s:g} {y - s:g}l{2 * s:g} {2 * s:g}m0 {-2 * s:g}l{-2 * s:g} {2 * s:g}",
        f"M{x - 1.2 * s:g} {y:g}h{2.4 * s:g}m{-1.2 * s:g} {-1.2 * s:g}v{2.4 * s:g}",
        f"M{x - 0.5 * s:g} {y - 1.3 * s:g}h{s:g}v{2.6 * s:g}h{-s:g}z",
    )
    return paths[shape % MARKERS]


# --- Charts ---


def over_size(records, main, rate=None):
    """The rate of the versions over the size of `main`'s problem; None if there are no sizes."""
    records = [r for r in records if r["dtype"] == at(records, main)[0]["dtype"]]
    points, name = sizes(problems_of(records), main)
    if not points:
        return None
    about_main = at(records, main)
    rate = rate or Rate.of(about_main)
    ours = [r for r in about_main if r["role"] == "ours"]
    kept = telling(ours, MOST_LINES)
    peers = sorted((r for r in about_main if r["role"] == "peer"), key=lambda r: r["median_ms"])
    series = [(version, f"chart-s{i}", i) for i, version in enumerate(kept)]
    series += [(r["version"], f"chart-peer chart-p{i}", i) for i, r in enumerate(peers[:MOST_PEERS])]
    found = {(r["version"], r["problem"]): r for r in records}
    lines = []
    for version, css, shape in series:
        line = [(n, found[version, problem]) for n, problem in points if (version, problem) in found]
        if line:
            lines.append((version, css, shape, line))
    values = [rate(r) for _, _, _, line in lines for _, r in line]
    limit = rate.limit([r for _, problem in points for r in at(records, problem)])
    low, high = min(values), max(values + [limit])
    left, right, top, bottom, height = 46, WIDTH - 10, 26, 214, 256
    x = Log(points[0][0], points[-1][0], left, right)
    y = Log(low, high, bottom, top)
    parts = [text(4, 14, f"{rate.unit}"), text(right, height - 6, f"{name}", "end")]
    is_binary = all(n == 2 ** round(math.log2(n)) or n % 1024 == 0 for n, _ in points)
    for value in log_ticks(y.low, y.high, 6):
        parts.append(f'<path class="chart-grid" d="M{left} {y(value):g}H{right}"/>')
        parts.append(text(left - 5, y(value) + 4, f"{value:.10g}", "end"))
    named = [n for n, _ in points]
    if min(b - a for a, b in itertools.pairwise([x(n) for n in named])) < LABEL:
        named = log_ticks(points[0][0], points[-1][0], 5, is_binary) or [named[0], named[-1]]
    for value in named:
        parts.append(f'<path class="chart-axis" d="M{x(value):g} {bottom}v5"/>')
        parts.append(text(x(value), bottom + 18, size_text(value), "middle"))
    parts.append(f'<path class="chart-axis" d="M{left} {top}V{bottom}H{right}"/>')
    legend = []
    if limit:
        kind = "memory's limit" if rate.key == "bytes" else "limit of FP32 multiply-adds"
        label = f"{kind}, {three_digits(limit)} {rate.unit}"
        parts.append(
            f'<g class="chart-limit" data-series="limit"><title>{escape(label)}</title>'
            f'<path class="chart-line" d="M{left} {y(limit):g}H{right}"/></g>'
        )
        legend.append(("limit", "chart-limit", 0, label))
    for index, (version, css, shape, line) in enumerate(lines):
        path = "L".join(f"{x(n):g} {y(rate(r)):g}" for n, r in line)
        dots = "".join(
            f'<path class="chart-point" d="{marker(shape, x(n), y(rate(r)))}" data-x="{x(n):g}" data-y="{y(rate(r)):g}">'
            f"<title>{escape(version)}, N = {size_text(n)}: {rate.text(r)}, {time_text(r['median_ms'])}</title></path>"
            for n, r in line
        )
        parts.append(f'<g class="{css}" data-series="{index}"><path class="chart-line" d="M{path}"/>{dots}</g>')
        legend.append((index, css, shape, version + (" (peer)" if "chart-peer" in css else "")))
    rows = [
        [version]
        + [
            f"{three_digits(rate(found[version, p]))} ({time_text(found[version, p]['median_ms'])})"
            if (version, p) in found
            else ""
            for _, p in points
        ]
        for version, _, _, _ in lines
    ]
    left_out = len(ours) - len(kept)
    what = "Latency" if isinstance(rate, Latency) else "Bandwidth" if rate.unit == "GB/s" else "Speed"
    return Chart(
        title=f"{what} over size",
        description=f"Line chart: {rate.unit} over N of {name}, {len(lines)} versions, {len(points)} sizes. The table below has the figures.",
        svg="".join(parts),
        height=height,
        legend=legend,
        heading=[f"{rate.unit} (time)"] + [f"N = {size_text(n)}" for n, _ in points],
        rows=rows,
        note=f"The {len(kept)} versions that gain most; {left_out} more are in the tables." if left_out > 0 else "",
    )


def latency(records):
    """A latency over the size, of the problems that have most sizes; None if no figure is a latency."""
    for name in dict.fromkeys(name for r in records for name, _ in r.get("figures", []) if LATENCY.match(name)):
        having = [r for r in records if dict(r.get("figures", [])).get(name)]
        problems = problems_of(having)
        main = max(problems, key=lambda problem: len(sizes(problems, problem)[0]))
        return over_size(having, main, Latency(name))
    return None


def bars(title, unit, rows, note="", scale=0, limit=0):
    """Bars beside each other. `rows`: (label, css, value, tip, columns of the table); `limit`: a line at
    that value.
    """
    longest = max(len(label) for label, *_ in rows)
    left = min(160, max(40, round(longest * CHARACTER) + 8))
    right = WIDTH - 46
    high = max([scale, limit] + [value for _, _, value, *_ in rows])
    room = round((left - 8) / CHARACTER)
    step, top = 19, 8
    height = top + step * len(rows) + 6
    parts = []
    if limit:
        at_limit = left + (right - left) * limit / high
        parts.append(f'<path class="chart-limit chart-line" d="M{at_limit:.1f} {top - 4}V{height - 4}"/>')
    for place, (label, css, value, tip, _) in enumerate(rows):
        y = top + step * place
        shown = label if len(label) <= room else label[: room - 1] + "…"
        width = max(1, (right - left) * value / high)
        name = text(left - 6, y + 11, shown, "end") if shown else ""
        parts.append(
            f'<g class="{css}"><title>{escape(tip)}</title>{name}'
            f'<rect class="chart-bar" x="{left}" y="{y}" width="{width:.1f}" height="14" rx="2"/>'
            f"{text(left + width + 5, y + 11, three_digits(value))}</g>"
        )
    parts.append(f'<path class="chart-axis" d="M{left} {top - 4}V{height - 4}"/>')
    return Chart(
        title=title,
        description=f"Bar chart: {title}, {len(rows)} bars. The table below has the figures.",
        svg="".join(parts),
        height=height,
        legend=[],
        heading=[],
        rows=[],
        note=note,
    )


# --- Sweeps: many random problems, few versions ---


def load_sweeps(root, day):
    """{machine: records} of docs/measurements/<machine>/<day>_sweep.jsonl."""
    paths = sorted((root / "docs" / "measurements").glob(f"*/{day}_sweep.jsonl"))
    return {path.parent.name: [r for r in record_files.read(path) if r["l2"] == "warm" and r.get("verified") is not False] for path in paths}


def beside(records):
    """[(a problem's record of ours, that of the fastest other)] of one type of data. The others are peers; where there is none, the
    limit. Random problems can have the same name: the second record of a version belongs to the second of them.
    """
    role = "peer" if any(r["role"] == "peer" for r in records) else "limit"
    runs = {}
    for r in records:
        if r["role"] in ("ours", role):
            runs.setdefault((r["problem"], r["role"], r["version"]), []).append(r)
    pairs = []
    for (problem, its_role, _), ours in runs.items():
        # Of a version that has not run on all of them, it is unknown on which ones it has.
        others = [run for (other, of, _), run in runs.items() if (other, of) == (problem, role) and len(run) == len(ours)] if its_role == "ours" else []
        pairs += [(record, min(beside, key=lambda r: r["median_ms"])) for record, *beside in zip(ours, *others)] if others else []
    return pairs


def axis_of(records):
    """How large is a problem? (what the axis is called, a function of a record): the operations or the bytes; where these hardly
    differ, the last number in the problems' names that differs much.
    """
    arithmetic = sum(is_of_arithmetic(r) for r in records) * 2 > len(records)
    key, name = ("flops", "operations of the problem") if arithmetic else ("bytes", "bytes that the problem moves at least")
    amounts = [r[key] for r in records]
    templates = {NUMBER.sub("#", in_bytes(r["problem"])) for r in records}
    if max(amounts) >= 10 * min(amounts) or len(templates) > 1:
        return name, lambda record: record[key]
    columns = list(zip(*(numbers_in(r["problem"]) for r in records)))
    spread = [max(column) / max(min(column), 1) for column in columns]
    place = max(range(len(columns)), key=lambda i: (min(spread[i], 10), i))
    others = [i for i in range(len(columns)) if i != place and len(set(columns[i])) > 1]
    return with_n(records[0]["problem"], [place], others), lambda record: numbers_in(record["problem"])[place]


def in_groups(pairs, size):
    """The pairs by size, in groups of nearly equal length."""
    ordered = sorted(pairs, key=lambda pair: size(pair[0]))
    count = max(1, min(MOST_GROUPS, len(ordered) // GROUP))
    return [ordered[len(ordered) * i // count : len(ordered) * (i + 1) // count] for i in range(count)]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def ratio(pair):
    return pair[1]["median_ms"] / pair[0]["median_ms"]


def sweep_chart(records):
    """How many times as fast as the fastest peer ours is, of each problem and on average, over the size; where there is no peer, beside
    the limit, such as a copy; None without both.
    """
    kinds = [(dtype, beside([r for r in records if r["dtype"] == dtype])) for dtype in dict.fromkeys(r["dtype"] for r in records)]
    kinds = [(dtype, pairs) for dtype, pairs in kinds if len(pairs) > 1]
    if not kinds:
        return None
    everything = [pair for _, pairs in kinds for pair in pairs]
    others = dict.fromkeys(other["version"] for _, other in everything)
    other = next(iter(others)) if len(others) == 1 else "the fastest peer"
    version = everything[0][0]["version"]
    axis, size = axis_of([ours for ours, _ in everything])
    ratios = [ratio(pair) for pair in everything]
    left, right, top, bottom, height = 46, WIDTH - 10, 26, 214, 256
    x = Log(min(size(ours) for ours, _ in everything), max(size(ours) for ours, _ in everything), left, right)
    y = Log(min(ratios + [1]), max(ratios + [1]), bottom, top)
    parts = [text(4, 14, f"times as fast as {other}"), text(right, height - 6, axis, "end")]
    ticks = log_ticks(y.low, y.high, 6)
    for value in ticks if len(ticks) > 1 else sorted({round(min(ratios), 2), 1, round(max(ratios), 2)}):
        parts.append(f'<path class="chart-grid" d="M{left} {y(value):g}H{right}"/>')
        parts.append(text(left - 5, y(value) + 4, f"{value:.10g}", "end"))
    for value in log_ticks(x.low, x.high, 5):
        parts.append(f'<path class="chart-axis" d="M{x(value):g} {bottom}v5"/>')
        parts.append(text(x(value), bottom + 18, short_amount(value), "middle"))
    parts.append(f'<path class="chart-axis" d="M{left} {top}V{bottom}H{right}"/>')
    label = f"as fast as {other}"
    parts.append(
        f'<g class="chart-limit" data-series="limit"><title>{escape(label)}</title>'
        f'<path class="chart-line" d="M{left} {y(1):g}H{right}"/></g>'
    )
    legend, rows = [("limit", "chart-limit", 0, label)], []
    for index, (dtype, pairs) in enumerate(kinds):
        name = version + (f", {dtype}" if len(kinds) > 1 else "")
        dots = "".join(
            f'<path class="chart-point chart-dot" d="{marker(index, x(size(pair[0])), y(ratio(pair)), 1.6)}" '
            f'data-x="{x(size(pair[0])):g}" data-y="{y(ratio(pair)):g}"><title>{escape(pair[0]["problem"])}: {ratio(pair):.2f}, '
            f"{time_text(pair[0]['median_ms'])} against {time_text(pair[1]['median_ms'])}</title></path>"
            for pair in pairs
        )
        means = []
        for group in in_groups(pairs, size):
            found = [ratio(pair) for pair in group]
            sizes_of_group = [size(ours) for ours, _ in group]
            mean = geometric_mean(found)
            means.append((geometric_mean(sizes_of_group), mean))
            worst = min(group, key=ratio)
            rows.append(
                [f"{short_amount(sizes_of_group[0])} to {short_amount(sizes_of_group[-1])}" + (f", {dtype}" if len(kinds) > 1 else ""),
                 str(len(group)), f"{mean:.2f}", f"{min(found):.2f} ({worst[0]['problem']})", f"{max(found):.2f}"]
            )
        path = "L".join(f"{x(amount):g} {y(mean):g}" for amount, mean in means)
        points = "".join(
            f'<path class="chart-point" d="{marker(index, x(amount), y(mean))}" data-x="{x(amount):g}" data-y="{y(mean):g}">'
            f"<title>{escape(name)}, geometric mean near {short_amount(amount)}: {mean:.2f}</title></path>"
            for amount, mean in means
        )
        parts.append(f'<g class="chart-s{index}" data-series="{index}">{dots}<path class="chart-line" d="M{path}"/>{points}</g>')
        legend.append((index, f"chart-s{index}", index, name))
    counts = [int(row[1]) for row in rows]
    same_name = len(everything) - len({(ours["problem"], ours["dtype"]) for ours, _ in everything})
    return Chart(
        title=f"{version} beside {other}: {len(everything)} random problems, {everything[0][0]['device']}",
        description=f"Line chart: how many times as fast as {other}, over {axis}; a dot for each of {len(everything)} problems. "
        "The table below has the means, the lowest and the highest.",
        svg="".join(parts),
        height=height,
        legend=legend,
        heading=[axis, "problems", "mean", "lowest", "highest"],
        rows=rows,
        note=f"A small point is a problem, a large one the geometric mean of {' to '.join(map(str, sorted({min(counts), max(counts)})))}. Above the line at 1, {version} is faster: "
        f"on {sum(r >= 1 for r in ratios)} of {len(ratios)} it is at least as fast."
        + (f" A table by names has {same_name} fewer, because names are repeated." if same_name else ""),
    )


def short_amount(value):
    """1234567 -> "1.23 M", 9999 -> "9999". The unit is that of the rounded value: 999700 -> "1 M"."""
    if float(f"{value:.4g}") < 1e4:
        return f"{value:.4g}"
    rounded = float(f"{value:.3g}")
    factor, unit = next(each for each in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")) if rounded >= each[0])
    return f"{rounded / factor:.3g} {unit}"


def of_limit(records, main):
    """The percentage of the limit of each version on the main problem, or the rate if it is not known."""
    about = at(records, main)
    shown = [r for r in about if r["role"] != "limit"]
    shares = {r["version"]: percent_of_limit(r) for r in shown}
    rate = Rate.of(about)
    by_percent = all(shares[r["version"]] is not None for r in shown if r["role"] == "ours")
    rows, table = [], []
    for record in shown:
        share = shares[record["version"]]
        if by_percent and share is None:
            continue
        value = share if by_percent else rate(record)
        css = "chart-peer" if record["role"] == "peer" else "chart-ours"
        name = record["version"] + (" (peer)" if record["role"] == "peer" else "")
        figures = [time_text(record["median_ms"]), rate.text(record), f"{share:.1f} %" if share is not None else ""]
        rows.append((record["version"], css, value, f"{name}: " + ", ".join(f for f in figures if f), None))
        table.append([name] + figures)
    chart = bars(
        f"{'Percent of the limit' if by_percent else rate.unit}: {main}",
        "%" if by_percent else rate.unit,
        rows,
        scale=100 if by_percent else 0,
        limit=100 if by_percent else 0,
        note=""
        if by_percent
        else "Not every version has a percentage of a limit that was measured.",
    )
    chart.heading, chart.rows = ["version", "time", "speed", "% of limit"], table
    return chart


def side_by_side(machines, main):
    """The versions that several GPUs have records of, on one problem; None if there is none."""
    best = None
    names = list(machines)
    problems = [main] + [p for p in problems_of(machines[names[0]]) if p != main]
    for problem in problems:
        found = {name: {r["version"]: r for r in at(machines[name], problem) if r["role"] != "limit"} for name in names}
        having = [name for name in names if found[name]]
        common = [v for v in found[having[0]] if all(v in found[name] for name in having)] if len(having) > 1 else []
        if common and (best is None or (problem != main and best[0] != main and len(common) > len(best[2]))):
            best = (problem, {name: found[name] for name in having}, common)
    if best is None:
        return None
    problem, found, common = best
    rate = Rate.of([found[name][v] for name in found for v in common])
    rows, table = [], []
    for version in common[:MOST_LINES]:
        for index, name in enumerate(found):
            record = found[name][version]
            tip = f"{version} on {record['device']}: {rate.text(record)}, {time_text(record['median_ms'])}"
            rows.append((version if index == 0 else "", f"chart-gpu{index}", rate(record), tip, None))
            table.append([version, record["device"], time_text(record["median_ms"]), rate.text(record)])
    chart = bars(f"GPUs side by side: {problem}", rate.unit, rows)
    chart.title += f", {rate.unit}"
    chart.legend = [
        (f"gpu{i}", f"chart-gpu{i}", 1, found[name][common[0]]["device"]) for i, name in enumerate(found)
    ]
    chart.heading, chart.rows = ["version", "GPU", "time", "speed"], table
    return chart


def figure(chart):
    """A chart as HTML, without an empty line."""
    legend = "".join(
        f'<li class="{css}" data-series="{series}"><svg viewBox="0 0 24 12" width="24" height="12" aria-hidden="true">'
        f'<path class="chart-line" d="M0 6H24"/>'
        + ("" if css == "chart-limit" else f'<path class="chart-point" d="{marker(shape, 12, 6)}"/>')
        + f"</svg> {escape(name)}</li>"
        for series, css, shape, name in chart.legend
    )
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in chart.heading)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in chart.rows
    )
    return "\n".join(
        part
        for part in (
            '<figure class="chart">',
            f"<figcaption>{escape(chart.title)}</figcaption>",
            f'<svg viewBox="0 0 {WIDTH} {chart.height}" role="img" aria-label="{escape(chart.description)}">',
            chart.svg,
            "</svg>",
            f'<ul class="chart-legend">{legend}</ul>' if legend else "",
            f'<p class="chart-note">{escape(chart.note)}</p>' if chart.note else "",
            f"<details><summary>The figures</summary>"
            f'<div class="chart-table" role="region" tabindex="0" aria-label="{escape("Figures: " + chart.title)}">'
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></details>",
            "</figure>",
        )
        if part
    )


def usual_machine(root, machines):
    """The machine of the front page's table, or else the one with the most records."""
    match = re.search(r"<!-- days: (\S+) -->", (root / "README.md").read_text())
    return match[1] if match and match[1] in machines else max(machines, key=lambda name: len(machines[name]))


def charts_of(root, day, machines):
    """The charts of a day, and the GPU of the first two. `machines`: {machine: records}."""
    machines = {name: cached(records) for name, records in machines.items()}
    records = machines[usual_machine(root, machines)]
    main = main_problem(root, day, records)
    found = [latency(records), over_size(records, main), of_limit(records, main)]
    if len(machines) > 1:
        found.append(side_by_side(machines, main))
    return [chart for chart in found if chart is not None], records[0]["device"]


def section(root, day):
    """Markdown for the top of docs/measured/<day>.md; empty if there are no records."""
    machines = load(root, day).get(day)
    sweeps = "\n".join(figure(chart) for found in load_sweeps(root, day).values() if (chart := sweep_chart(found)))
    if not machines:
        return f'<div class="charts">\n{sweeps}\n</div>\n' if sweeps else ""
    charts, device = charts_of(root, day, machines)
    figures = "\n".join(figure(chart) for chart in charts)
    figures += f"\n{sweeps}" if sweeps else ""
    return (
        f"Charts of {device}, with a warm cache. Longer bars and higher lines are faster"
        + ("; of a latency, lower ones are" if any(chart.title.startswith("Latency") for chart in charts) else "")
        + ". Point at a line, or tap it, for its figures."
        + (" Ki, Mi and Gi are 2^10, 2^20 and 2^30." if re.search(r"\d [KMG]i\b", figures) else "")
        + "\n\n"
        f'<div class="charts">\n{figures}\n</div>\n'
    )


def best_of(root, day, records):
    """On the main problem: BESIDE_VERSION, or the fastest of ours, and the fastest peer; None where there is none."""
    records = cached(records)
    about = at(records, main_problem(root, day, records))
    version = setting(root, day, BESIDE_VERSION)
    named = [r for r in about if r["role"] == "ours" and r["version"] == version]
    return fastest(named, "ours") or fastest(about, "ours"), fastest(about, "peer")


def gpu_page(root, device, machines):
    """Markdown for one GPU. `machines`: {(machine, day): records of this GPU}."""
    title = re.sub(r"^NVIDIA ", "", device)
    rows, shares = [], []
    for (_, day), found in sorted(machines.items(), key=lambda each: each[0][1]):
        ours, peer = best_of(root, day, found)
        if ours is None:
            continue
        rate, share = Rate.of([ours]), percent_of_limit(ours)
        number = re.match(r"day(\d+)_", day)
        title_of_day = (number[1] + " " if number else "") + (setting(root, day, TITLE) or day)
        name = f"[{title_of_day}](../docs/measured/{day}.md)"
        beside = f"{peer['median_ms'] / ours['median_ms']:.2f}× {re.sub('^[0-9]+_', '', peer['version'])}" if peer else ""
        rows.append(
            f"| {name} | {ours['problem']} | `{ours['version']}` | {time_text(ours['median_ms'])} | {rate.text(ours)} "
            f"| {'' if share is None else f'{share:.1f}'} | {beside} |"
        )
        if share is not None:
            tip = f"{title_of_day}, {ours['version']} on {ours['problem']}: {share:.1f} % of the limit, {time_text(ours['median_ms'])}"
            figures = [ours["version"], ours["problem"], time_text(ours["median_ms"]), f"{share:.1f} %"]
            shares.append((title_of_day, "chart-ours", share, tip, None, figures))
    everything = [r for found in machines.values() for r in found]
    limits = []
    for key, factor, unit in (("bytes", 1e-9, "GB/s of memory bandwidth"), ("flops", 1e-12, "TFLOP/s of FP32 multiply-adds")):
        measured = sorted(r[f"limit_{key}_per_second"] for r in everything if r.get(f"limit_{key}_per_second"))
        if measured:
            limits.append(f"{three_digits(measured[len(measured) // 2] * factor)} {unit}")
    drivers = ", ".join(sorted({r["driver"] for r in everything}))
    dates = sorted(r["date"][:10] for r in everything)
    page = [
        f"# {title}",
        f"{len(everything)} records of {len(machines)} days on an {device}, driver {drivers}, {dates[0]} to {dates[-1]}."
        + (f" The median of the limits measured with them: {' and '.join(limits)}." if limits else ""),
    ]
    if shares:
        chart = bars("Percent of the limit, the fastest of ours", "%", [row[:5] for row in shares], scale=100, limit=100)
        chart.heading = ["day", "version", "problem", "time", "% of limit"]
        chart.rows = [[row[0]] + row[5] for row in shares]
        page.append(f'<div class="charts">\n{figure(chart)}\n</div>')
    page.append("## The fastest of ours")
    page.append("On the problem of each day's table, with a warm cache. The last column is the speed beside the fastest peer.")
    page.append(
        "| day | problem | version | time | speed | % of limit | beside |\n| --- | --- | --- | --: | --: | --: | --- |\n"
        + "\n".join(rows)
    )
    return "\n\n".join(page) + "\n"


def gpus(root):
    """{"gpus/h200": Markdown}: a page for each GPU that has records. Links lead from gpus/ to
    ../docs/measured/<day>.md.
    """
    devices = {}
    for day, machines in load(root).items():
        for machine, found in machines.items():
            for device in dict.fromkeys(r["device"] for r in found):
                devices.setdefault(device, {})[machine, day] = [r for r in found if r["device"] == device]
    return {
        "gpus/" + re.sub(r"[^a-z0-9]+", "-", device.lower().removeprefix("nvidia ")).strip("-"): gpu_page(root, device, found)
        for device, found in sorted(devices.items())
    }
