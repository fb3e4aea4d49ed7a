#!/usr/bin/env python3
"""Records what one warp of each core kernel of a day does, and its counts by line, in docs/traces/DAY.jsonl.

    scripts/record_traces.py day06_transpose day15_reduction      by ./course inspect --trace; no GPU
    scripts/record_traces.py --check [DAY...]                     exit code 1 where a source has changed since

site/kernels.py makes pages of these files; tools/course/inspect_trace.hpp has the format. The problem
is small, so that a kernel's edges do not fill the trace, and every version takes a few seconds. Files
of docs/traces are read by read() here: see compact().
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRACES = "docs/traces"
FORMAT = "course trace 1"

# Problem sizes, as the days' programs read them; for other days the program's own choice.
SIZES = {
    "gemm_ladder": "128x256x32",
    "day01_vector_add": "4096",
    "day03_warps_and_scheduling": "2048",
    "day05_matmul_tiled": "64x64x64",
    "day06_transpose": "64x64",
    "day07_profiling": "16384",
    "day10_convolution": "48x64x5",
    "day11_stencil": "32x32x32x1",
    "day12_histogram": "16384",
    "day13_wavefronts": "32",
    "day14_electrostatics": "256x8x2x64",
    "day15_reduction": "65536",
    "day16_scan": "8192",
    "day17_filter": "8192",
    "day18_merge": "1024",
    "day19_sort": "2048",
    "day20_softmax": "4096",
    "day21_softmax_rows": "8x1000",
    "day23_memory_model": "4096",
    "day24_single_pass": "16384",
    "day25_attention": "1x2x64x32",
    "day26_fused_attention": "1x1x128x64",
    "day27_mixture_of_experts": "128x64x64x4x2",
    "day28_conv_layers": "1x8x16x16x16x3x1",
    "day29_decoding_attention": "1x8x2x128x64",
    "day30_quantization": "64x128",
    "day31_int8_matmul": "128x128x64",
    "day32_llm_int8": "64x64x128",
    "day33_lenet_training": "1",
    "day34_attention_backward": "1x1x64x64",
    "day35_spmv": "512",
    "day36_graph_traversal": "1024",
    "day37_mri": "16x8x8x64",
    "day38_async_pipeline": "128x128x64",
    "day39_dynamic_parallelism": "512",
    "day40_tensor_cores": "128x128x64",
    "day41_hopper_matmul": "256x256x128",
    "day42_eight_bits": "256x256x128",
    "day43_hopper_attention": "1x1x128x64",
    "day44_eight_bit_attention": "1x1x128x64",
    "day45_fused_matmul": "2x128x256x32",
    "day46_reduce_in_matmul": "128x512x16",
    "day47_masked_matmul": "1x256x256x32",
    "day48_top_k": "64x512x16",
    "day50_multi_gpu": "40x20x20x2",
    "day51_all_reduce": "5003x2",
}
# More kernels than that are no lesson: a version that launches one for each of many sizes. But some
# layers have as many stages.
MOST_KERNELS = 5
MORE_KERNELS = {"day27_mixture_of_experts": 8, "day32_llm_int8": 8, "day33_lenet_training": 14}
# A problem that shows more than the first one does; the words of its name.
PROBLEMS = {"day32_llm_int8": "with outliers", "day35_spmv": "power law"}
# Versions with a kernel in beyond/ that have a replay, too.
ALSO = {
    "day21_softmax_rows": ["cluster_per_row"],
    "day29_decoding_attention": ["async_ring"],
    "day32_llm_int8": ["fused"],
    "day33_lenet_training": ["layers"],
    "day40_tensor_cores": ["multi_stage"],
    "day41_hopper_matmul": ["multicast"],
}
# With fewer requests there is nothing to step through: a version that calculates in registers.
FEWEST_REQUESTS = 2
# Chooses among the other versions by the problem's size.
CHOICE = "auto"
# The end of the name of a solution (day 7), which is not shown before it is looked for.
SOLUTION = "_repaired"


def text_hash(text):
    """FNV-1a, 64 bits, as tools/course/inspect_trace.cpp."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def is_pattern(entry):
    """Has the step of a trace several runs of offsets?"""
    return len(entry) > 7


def moved(runs, distance):
    """Runs of offsets (first, step, count) that begin `distance` bytes further."""
    return [value + distance if i % 3 == 0 else value for i, value in enumerate(runs)]


def compact(trace):
    """The trace as docs/traces has it. A file's name is its number in "sources". Several runs of offsets that occur again are
    stored once: "patterns" has them, beginning at 0, and the step has [place, lanes, transactions, ideal, the first offset, the
    number of its pattern]."""
    numbers = {file: number for number, file in enumerate(trace["sources"])}
    trace = {**trace, **{key: [{**one, "file": numbers.get(one["file"], one["file"])} for one in trace[key]] for key in ("lines", "places")}}
    patterns = {}
    for entry in filter(is_pattern, trace["recorded"]):
        pattern = tuple(moved(entry[4:], -entry[4]))
        patterns[pattern] = patterns.get(pattern, 0) + 1
    again = {pattern: number for number, pattern in enumerate(pattern for pattern, uses in patterns.items() if uses > 1)}
    if not again:
        return trace
    recorded = []
    for entry in trace["recorded"]:
        number = again.get(tuple(moved(entry[4:], -entry[4]))) if is_pattern(entry) else None
        recorded.append(entry if number is None else entry[:5] + [number])
    return {**trace, "patterns": [list(pattern) for pattern in again], "recorded": recorded}


def expand(trace):
    """compact(), undone."""
    files, patterns = list(trace["sources"]), trace.pop("patterns", [])
    for one in trace["lines"] + trace["places"]:
        if isinstance(one["file"], int):
            one["file"] = files[one["file"]]
    for i, entry in enumerate(trace["recorded"]):
        if len(entry) == 6:
            trace["recorded"][i] = entry[:4] + moved(patterns[entry[5]], entry[4])
    return trace


def read(path):
    """The traces of a file, as dictionaries."""
    traces = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for trace in traces:
        if trace.get("format") != FORMAT:
            raise ValueError(f"{path}: the format is {trace.get('format')!r}; expected {FORMAT!r}")
    return [expand(trace) for trace in traces]


def changed_sources(root, traces):
    """The files whose text is not that of the recording, or that are gone."""
    recorded = {(file, value) for trace in traces for file, value in trace["sources"].items()}
    hashes = {
        file: text_hash((root / file).read_text(encoding="utf-8")) if (root / file).is_file() else None
        for file, _ in recorded
    }
    return sorted({file for file, value in recorded if hashes[file] != value})


def is_core(trace):
    """Is all of the kernel in the day's own folder, none in beyond/ ?"""
    return not any("/beyond/" in file for file in trace["sources"])


def core_of(traces):
    """The traces of the core versions, and of those in ALSO: all kernels of each, on the problem of PROBLEMS or the first."""
    def is_beyond(trace):
        return not is_core(trace) and trace["version"] not in ALSO.get(trace["day"], [])

    beyond = {(trace["version"], trace["problem"]) for trace in traces if is_beyond(trace)}
    problem_of = {}
    for trace in traces:
        version, problem = trace["version"], trace["problem"]
        if (version, problem) in beyond:
            continue
        wanted = PROBLEMS.get(trace["day"])
        if version not in problem_of or wanted and wanted in problem and wanted not in problem_of[version]:
            problem_of[version] = problem
    return [trace for trace in traces if problem_of.get(trace["version"]) == trace["problem"]]


def is_worth_a_replay(traces):
    """Has the warp of some kernel of a version more than one request?"""
    return any(sum(len(step) > 2 for step in trace["recorded"]) >= FEWEST_REQUESTS for trace in traces)


def kept_of(traces):
    """Of the core's traces those that a day keeps."""
    of_version = {}
    for trace in core_of(traces):
        # Without a step the kernel did nothing for this problem.
        if trace["recorded"] and trace["version"] != CHOICE and not trace["version"].endswith(SOLUTION):
            of_version.setdefault(trace["version"], []).append(trace)
    kept, seen = [], []
    for traces in of_version.values():
        # Of versions that differ on the host only, the first.
        shown = [(trace["kernel"], trace["threads"], trace["recorded"]) for trace in traces]
        if is_worth_a_replay(traces) and shown not in seen:
            kept += traces[: MORE_KERNELS.get(traces[0]["day"], MOST_KERNELS)]
            seen.append(shown)
    return kept


def record(day, size):
    """Inspects the day and writes its file of traces."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "trace.jsonl"
        command = [str(ROOT / "course"), "inspect", day, "--trace", str(out)] + (["--size", size] if size else [])
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        if not out.exists():
            sys.exit(f"{day}: no trace was written: {' '.join(command)}")
        kept = kept_of(read(out))
    if not kept:
        sys.exit(f"{day}: no version of the core left a trace with a request")
    path = ROOT / TRACES / f"{kept[0]['day']}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(compact(trace), separators=(",", ":"), ensure_ascii=False) + "\n" for trace in kept))
    versions = len({trace["version"] for trace in kept})
    print(f"{path.relative_to(ROOT)}: {len(kept)} kernels of {versions} versions, {path.stat().st_size / 1000:.0f} KB")


def check(days):
    """Prints the days whose traces are stale; returns the exit code."""
    stale = False
    for path in sorted((ROOT / TRACES).glob("*.jsonl")):
        if days and path.stem not in days:
            continue
        for file in changed_sources(ROOT, read(path)):
            print(f"{path.relative_to(ROOT)}: {file} has changed since: scripts/record_traces.py {path.stem}")
            stale = True
    return 1 if stale else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("days", nargs="*", metavar="DAY", help="folders of days, such as day06_transpose")
    parser.add_argument("--check", action="store_true", help="say which traces are older than their sources")
    parser.add_argument("--size", help="the problem size, instead of the day's own here")
    arguments = parser.parse_args()
    for day in arguments.days:
        if not (ROOT / day).is_dir():
            parser.error(f"DAY is {day!r}; expected the folder of a day, such as day06_transpose")
    if arguments.check:
        return check(arguments.days)
    if not arguments.days:
        parser.error("no DAY is named; expected the folders of days, such as day06_transpose")
    for day in arguments.days:
        record(day, arguments.size or SIZES.get(day, ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
