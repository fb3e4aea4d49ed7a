#!/usr/bin/env python3
"""Compares what the inspection counts and finds with what a GPU counts (ncu) and what
compute-sanitizer finds.

On a machine with a GPU, for the records in docs/measurements/<machine>:

    scripts/calibrate_inspection.py measure --build build/gpu --records docs/measurements/h200

Anywhere, with a build of the preset `inspect`:

    scripts/calibrate_inspection.py compare --build build/inspect --records docs/measurements/h200 [--update]
    scripts/calibrate_inspection.py tables --records docs/measurements/h200 [--check]
    scripts/calibrate_inspection.py cost --plain build/cpu --build build/inspect --records docs/measurements/cpu

`compare` runs the kernels of cuda_on_cpu/calibration and holds what the inspection says against the
records: every count equal but those that a case explains, every planted bug found at its line,
nothing found without it. `--update` writes what was seen into the records, `tables` writes these
into the README there. `cost` says how much slower a lesson runs when it is watched. Exit code: 0
all as it should be, 1 not, 2 wrong usage.
"""

import argparse
import collections
import concurrent.futures
import csv
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CALIBRATION = ROOT / "cuda_on_cpu" / "calibration"
COUNTS, BUGS, COST = "inspection_counts", "inspection_bugs", "inspection_cost"
LESSONS_THAT_COST = ("day01_vector_add", "day05_matmul_tiled", "day06_transpose", "day15_reduction")

WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_"
INSTRUCTIONS = "smsp__inst_executed_op_"
OF_SASS = "sm__sass_l1tex_"
# Which counters make up requests and transactions: their sum.
COUNTERS = {
    ("shared", "load"): ([INSTRUCTIONS + "shared_ld"], [WAVEFRONTS + "ld"]),
    ("shared", "store"): ([INSTRUCTIONS + "shared_st"], [WAVEFRONTS + "st"]),
    ("shared", "atomic"): ([INSTRUCTIONS + "shared_atom"], [WAVEFRONTS + "atom"]),
    ("shared", "matrix_load"): ([INSTRUCTIONS + "ldsm"], [WAVEFRONTS + "ld"]),
    ("shared", "async_copy"): (
        [INSTRUCTIONS + "ldgsts"],
        [OF_SASS + "data_pipe_lsu_wavefronts_mem_shared_op_ldgsts"],
    ),
    ("global", "load"): ([REQUESTS + "ld"], [SECTORS + "ld"]),
    ("global", "store"): ([REQUESTS + "st"], [SECTORS + "st"]),
    ("global", "atomic_load"): ([REQUESTS + "ld"], [SECTORS + "ld"]),
    ("global", "atomic_store"): ([REQUESTS + "st"], [SECTORS + "st"]),
    ("global", "atomic"): ([REQUESTS + "red", REQUESTS + "atom"], [SECTORS + "red", SECTORS + "atom"]),
    # Copies of 4 bytes go through L1; those of 16 bytes do not, and are counted as they come from L2.
    ("global", "async_copy"): (
        [INSTRUCTIONS + "ldgsts"],
        [
            SECTORS + "ldgsts_cache_access",
            OF_SASS + "m_xbar2l1tex_read_sectors_mem_global_op_ldgsts_cache_bypass",
        ],
    ),
}


def output_of(command, **options):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def program(build, name):
    return str(pathlib.Path(build) / "bin" / name)


def read_record(records, name):
    return json.loads((records / f"{name}.json").read_text())


def write_record(records, name, record):
    """One case a line: a change of one shows as a change of one line."""
    rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in record["cases"])
    head = json.dumps(
        {key: value for key, value in record.items() if key != "cases"}, indent=1, ensure_ascii=False
    )
    (records / f"{name}.json").write_text(head[:-2] + ',\n "cases": [\n' + rows + "\n ]\n}\n")


# ---- Measuring on a GPU --------------------------------------------------------------------------------------------------


def machine(tool):
    gpu = output_of(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]).splitlines()[
        0
    ]
    device, driver = gpu.split(", ")
    version = re.search(r"[Vv]ersion (\d[\d.]*)", output_of([tool, "--version"])).group(1)
    return {
        "device": device,
        "driver": driver,
        "tool": f"{tool} {version}",
        "date": str(datetime.date.today()),
    }


def counters_of_launches(command, metrics):
    """For each launch, in order: the kernel's name and its counters."""
    text = output_of(
        [
            "ncu",
            "--clock-control",
            "none",
            "--cache-control",
            "none",
            "--csv",
            "--metrics",
            ",".join(f"{metric}.sum" for metric in metrics),
            *command,
        ]
    )
    launches = collections.OrderedDict()
    for row in csv.DictReader(line for line in text.splitlines() if line.startswith('"')):
        launch = launches.setdefault(row["ID"], (row["Kernel Name"], {}))
        launch[1][row["Metric Name"].removesuffix(".sum")] = int(float(row["Metric Value"].replace(",", "")))
    return list(launches.values())


def bare(kernel):
    """void (anonymous namespace)::load<float>(int) -> load; load<float> -> load"""
    return re.search(r"(\w+)(<[^()]*>)?(\(|$)", kernel.split("::", 1)[-1]).group(1)


def measure_counts(build, records):
    counts = program(build, COUNTS)
    cases = json.loads(output_of([counts, "--list"]))
    for (space, operation), (requests, transactions) in COUNTERS.items():
        here = [case for case in cases if (case["space"], case["operation"]) == (space, operation)]
        launches = counters_of_launches([counts, "--only", space, operation], requests + transactions)
        if [bare(name) for name, _ in launches] != [bare(case["kernel"]) for case in here]:
            sys.exit(f"ncu saw other kernels than the list of {counts} has for {space} {operation}")
        for case, (_, seen) in zip(here, launches):
            case["gpu"] = {
                "requests": sum(seen[metric] for metric in requests),
                "transactions": sum(seen[metric] for metric in transactions),
            }
    write_record(records, COUNTS, machine("ncu") | {"cases": cases})


REPORT = r"^=+ (?:Error: |Warning: |Info: )?((?:Invalid|Race|Uninitialized|Barrier|Divergent|Missing)[^\n]*)"


def reports_of(text):
    """What compute-sanitizer says, without the places, which change from build to build."""
    said = re.findall(REPORT, text, re.MULTILINE)
    return sorted({re.sub(r" between .*| at .*| in .*", "", report) for report in said})


def sanitize(build, bug, fixed):
    command = [
        "compute-sanitizer",
        "--tool",
        bug["tool"],
        "--report-api-errors",
        "no",
        "--error-exitcode",
        "86",
        program(build, BUGS),
        bug["name"],
    ] + (["--fixed"] if fixed else [])
    result = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    return {"found": result.returncode == 86, "said": reports_of(result.stdout)}


def measure_bugs(build, records):
    bugs = json.loads(output_of([program(build, BUGS), "--list"]))
    runs = [(bug, fixed) for bug in bugs if bug["tool"] for fixed in (False, True)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = pool.map(lambda run: sanitize(build, *run), runs)
    for (bug, fixed), result in zip(runs, results):
        bug.setdefault("gpu", {})["fixed" if fixed else "planted"] = result
    write_record(records, BUGS, machine("compute-sanitizer") | {"cases": bugs})


# ---- Comparing -----------------------------------------------------------------------------------------------------------


def marked_lines(name, marker):
    """Kernel -> the numbers of its lines that end in a comment which matches `marker`."""
    lines, kernel = collections.defaultdict(list), None
    for number, line in enumerate((CALIBRATION / f"{name}.cu").read_text().splitlines(), 1):
        if match := re.match(r"__global__ void (\w+)\(", line):
            kernel = match.group(1)
        if re.search(rf"// {marker}$", line):
            lines[kernel].append(number)
    return lines


def seen_counts(case, lines):
    """Of the case's kind of access: requests and transactions in the lines marked `counted`, and
    elsewhere.
    """
    totals = {True: [0, 0], False: [0, 0]}
    for kernel in case["inspection"]:
        for line in kernel["lines"]:
            if (line["space"], line["operation"]) == (case["space"], case["operation"]):
                here = totals[line["source"]["line"] in lines[bare(case["kernel"])]]
                here[0] += line["requests"]
                here[1] += line["transactions"]
    return totals[True], totals[False]


def compare_counts(build, records, update):
    record = read_record(records, COUNTS)
    lines = marked_lines(COUNTS, "counted")
    current = json.loads(output_of([program(build, COUNTS), "--inspect"]))
    key = lambda case: (case["kernel"], case["parameters"], case["space"], case["operation"])
    recorded = {key(case): case for case in record["cases"]}
    wrong, verdicts = [], collections.Counter()
    if [key(case) for case in current] != list(recorded):
        wrong.append("the cases are not those of the record: measure again")
    for case in current:
        (requests, transactions), elsewhere = seen_counts(case, lines)
        measured = recorded.get(key(case))
        if measured is None:
            continue
        before = measured.get("inspection")
        measured["inspection"] = {"requests": requests, "transactions": transactions}
        measured["remark"] = case["remark"]
        same = measured["inspection"] == measured["gpu"]
        verdicts["exact" if same else "explained" if case["remark"] else "wrong"] += 1
        name = f"{case['kernel']} {case['parameters']} ({case['space']} {case['operation']})"
        if not same and not case["remark"]:
            wrong.append(f"{name}: inspection {measured['inspection']}, GPU {measured['gpu']}")
        if before not in (None, measured["inspection"]) and not update:
            wrong.append(f"{name}: inspection {measured['inspection']}, recorded {before}")
        if elsewhere != [0, 0]:
            wrong.append(f"{name}: {elsewhere[0]} requests in lines that are not marked as counted")
    print(f"{len(current)} cases: " + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    if update:
        write_record(records, COUNTS, record)
    return wrong


def judge(bug, lines):
    """What is wrong with the findings of a planted bug, and of its twin."""

    def in_words(finding):
        return f"{finding['kind']} in line {finding['source']['line']}"

    wrong = [f"finding without the mistake: {in_words(finding)}" for finding in bug["findings_when_fixed"]]
    if bug["kind"] == "none":
        return wrong
    kinds = {finding["kind"] for finding in bug["findings"] if finding["source"]["line"] in lines}
    if bug["kind"] not in kinds:
        wrong.append(
            f"{bug['kind']} not found in lines {lines}; found: {sorted(map(in_words, bug['findings']))}"
        )
    places = [finding[end] for finding in bug["findings"] for end in ("source", "other") if end in finding]
    wrong += [
        f"points elsewhere: line {place['line']}, expected {lines}"
        for place in places
        if place["line"] not in lines
    ]
    return wrong


def compare_bugs(build, records, update):
    record = read_record(records, BUGS)
    lines = marked_lines(BUGS, r"found: \w+")
    current = json.loads(output_of([program(build, BUGS), "--inspect"], stderr=subprocess.DEVNULL))
    recorded = {bug["name"]: bug for bug in record["cases"]}
    wrong, found = [], 0
    if [bug["name"] for bug in current] != list(recorded):
        wrong.append("the bugs are not those of the record: measure again")
    for bug in current:
        mistakes = judge(bug, lines[bug["name"]])
        found += not mistakes
        wrong += [f"{bug['name']}: {mistake}" for mistake in mistakes]
        if bug["name"] in recorded:
            recorded[bug["name"]]["inspection"] = {
                "planted": sorted({finding["kind"] for finding in bug["findings"]}),
                "fixed": sorted({finding["kind"] for finding in bug["findings_when_fixed"]}),
            }
    print(f"{len(current)} kernels with and without a planted bug: {found} as they should be")
    if update:
        write_record(records, BUGS, record)
    return wrong


# ---- Cost ----------------------------------------------------------------------------------------------------------------


def seconds_of_plain_runs(build, lesson, scratch):
    output_of([program(build, lesson), "--json", str(scratch)])
    rows = map(json.loads, scratch.read_text().splitlines()[1:])  # the first line is the records' head
    return {row["version"]: row["min_ms"] / 1e3 for row in rows if row["min_ms"]}


def seconds_of_watched_runs(build, lesson, scratch, findings):
    environment = os.environ | {"CUDA_ON_CPU_FINDINGS": "on" if findings else "off"}
    output_of([program(build, lesson), "--inspect", str(scratch)], env=environment)
    return {
        row["version"]: row["seconds"]
        for row in json.loads(scratch.read_text())["results"]
        if not row["cannot_run"]
    }


def least(runs):
    return {key: min(run[key] for run in runs) for key in runs[0]}


def measure_cost(plain, build, records, repeats):
    """The least of several runs each, in turns: what else the machine does then falls to all alike."""
    record = {
        "processor": processor(),
        "threads": int(os.environ.get("CUDA_ON_CPU_THREADS", os.cpu_count())),
        "date": str(datetime.date.today()),
        "cases": [],
    }
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory) / "out.json"
        for lesson in LESSONS_THAT_COST:
            runs = [
                (
                    seconds_of_plain_runs(plain, lesson, scratch),
                    seconds_of_watched_runs(build, lesson, scratch, False),
                    seconds_of_watched_runs(build, lesson, scratch, True),
                )
                for _ in range(repeats)
            ]
            unwatched, counted, searched = (least(column) for column in zip(*runs))
            record["cases"] += [
                {
                    "lesson": lesson,
                    "version": version,
                    "plain": unwatched[version],
                    "counting": counted[version],
                    "findings": searched[version],
                }
                for version in searched
            ]
    for case in record["cases"]:
        print(
            f"{case['lesson']:20} {case['version']:20} {1e3 * case['plain']:8.2f} ms   counting "
            f"{case['counting'] / case['plain']:5.1f}x   with findings {case['findings'] / case['plain']:5.1f}x"
        )
    records.mkdir(parents=True, exist_ok=True)
    write_record(records, COST, record)


def processor():
    names = re.findall(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return names[0] if names else platform.machine()


# ---- Tables --------------------------------------------------------------------------------------------------------------


def where_measured(record):
    return (
        f"\n\nMeasured on {record['device']}, driver {record['driver']}, {record['tool']}, {record['date']}."
    )


def shortened(values):
    """1 2 2 2 4 -> 1 2 (3x) 4"""
    runs = []
    for value in values:
        if runs and runs[-1][0] == value:
            runs[-1][1] += 1
        else:
            runs.append([value, 1])
    return " ".join(str(value) if count == 1 else f"{value} ({count}×)" for value, count in runs)


def table_of_counts(record):
    """One row for each kernel and kind of access: its cases are the numbers in a cell, in the order
    of their parameters.
    """
    families = {kind: collections.OrderedDict() for kind in COUNTERS}
    for case in record["cases"]:
        families[case["space"], case["operation"]].setdefault(case["kernel"], []).append(case)
    rows = ["| counted | kernel | cases | GPU | inspection |", "|---|---|---|---|---|"]
    for (space, operation), kernels in families.items():
        for kernel, cases in kernels.items():
            first, last = cases[0]["parameters"], cases[-1]["parameters"]
            span = f"{len(cases)}: {first} … {last}" if len(cases) > 1 else first
            gpu, seen = (
                shortened([case[who]["transactions"] for case in cases]) for who in ("gpu", "inspection")
            )
            exact = all(case["gpu"] == case["inspection"] for case in cases)
            verdict = "exact" if exact else f"{seen}; {cases[0]['remark']}"
            rows.append(
                f"| {space} {operation.replace('_', ' ')} | `{kernel}` | {span} | {gpu} | {verdict} |"
            )
    exact = sum(case["gpu"] == case["inspection"] for case in record["cases"])
    rows.append(
        f"\n{exact} of {len(record['cases'])} cases are exact, in requests and in transactions; of the others their "
        "row says why they are not." + where_measured(record)
    )
    return "\n".join(rows)


def table_of_bugs(record):
    rows = ["| kernel | expected | inspection | compute-sanitizer |", "|---|---|---|---|"]
    for bug in record["cases"]:
        kinds = ", ".join(bug["inspection"]["planted"]) or "nothing"
        if bug["inspection"]["fixed"]:
            kinds += "; also without the mistake: " + ", ".join(bug["inspection"]["fixed"])
        if "gpu" not in bug:
            sanitizer = "has no tool for it"
        else:
            planted = bug["gpu"]["planted"]
            said = f": {'; '.join(planted['said'])}" if planted["said"] else ""
            sanitizer = f"{bug['tool']}{said}" if planted["found"] else f"{bug['tool']}: nothing"
            if bug["gpu"]["fixed"]["found"]:
                sanitizer += "; also without the mistake"
        rows.append(f"| `{bug['name']}` | {bug['kind'].replace('none', 'nothing')} | {kinds} | {sanitizer} |")
    return "\n".join(rows) + where_measured(record)


def table_of_cost(record):
    rows = [
        "| lesson | version | not watched | counting | and looking for mistakes |",
        "|---|---|---|---|---|",
    ]
    rows += [
        f"| {case['lesson']} | `{case['version']}` | {1e3 * case['plain']:.1f} ms | {case['counting'] / case['plain']:.1f}× "
        f"| {case['findings'] / case['plain']:.1f}× |"
        for case in record["cases"]
    ]
    return (
        "\n".join(rows)
        + f"\n\nMeasured on {record['threads']} core{'s' if record['threads'] > 1 else ''} of an {record['processor']}, "
        f"{record['date']}."
    )


TABLES = {COUNTS: table_of_counts, BUGS: table_of_bugs, COST: table_of_cost}


def write_tables(records, check):
    readme = CALIBRATION / "README.md"
    text = readme.read_text()
    for name, table in TABLES.items():
        begin, end = f"<!-- table: {name} -->\n", "<!-- end table -->"
        head, rest = text.split(begin)
        of_machine = records.parent / "cpu" if name == COST else records
        text = head + begin + table(read_record(of_machine, name)) + "\n" + end + rest.split(end, 1)[1]
    if text == readme.read_text():
        return []
    if check:
        return [f"the tables of {readme.relative_to(ROOT)} are not those of the records"]
    readme.write_text(text)
    return []


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("measure", "compare", "tables"):
        command = commands.add_parser(name)
        command.add_argument(
            "--records", type=pathlib.Path, required=True, help="docs/measurements/<machine>"
        )
        if name != "tables":
            command.add_argument(
                "--build",
                required=True,
                help="build directory with bin/inspection_counts and bin/inspection_bugs",
            )
            command.add_argument("--only", choices=["counts", "bugs"], help="half of the work")
    cost = commands.add_parser("cost")
    cost.add_argument("--records", type=pathlib.Path, required=True, help="docs/measurements/<machine>")
    cost.add_argument("--plain", required=True, help="build directory of the preset cpu")
    cost.add_argument("--build", required=True, help="build directory of the preset inspect")
    cost.add_argument("--repeats", type=int, default=3, help="how often each is run; the least counts")
    commands.choices["compare"].add_argument(
        "--update", action="store_true", help="write what was seen into the records"
    )
    commands.choices["tables"].add_argument(
        "--check", action="store_true", help="write nothing, only say whether they are up to date"
    )
    arguments = parser.parse_args()

    if arguments.command == "cost":
        measure_cost(arguments.plain, arguments.build, arguments.records, arguments.repeats)
        return 0
    if arguments.command == "tables":
        wrong = write_tables(arguments.records, arguments.check)
    else:
        wrong = []
        halves = {"measure": (measure_counts, measure_bugs), "compare": (compare_counts, compare_bugs)}[
            arguments.command
        ]
        options = (arguments.update,) if arguments.command == "compare" else ()
        for name, half in zip(("counts", "bugs"), halves):
            if arguments.only in (None, name):
                wrong += half(arguments.build, arguments.records, *options) or []
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
