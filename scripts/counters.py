#!/usr/bin/env python3
"""Hardware counters of each version of a day, as records, and what limits each kernel.

    ./course bench day15 --counters          on a machine with a GPU and Nsight Compute: builds, and calls this
    scripts/counters.py --renew              after a change of the rule below: every stored class again
    scripts/counters.py --check              exit code 1 where a stored class is not what the rule says
    scripts/counters.py --why FILE           the rule's reason for each stored class, for ./course profile

Nsight Compute (ncu) profiles one launch of every version on the problems that the day's README shows,
and on one more for each version that, by the stored times, runs on none of them: the program launches
each version once untimed, then once in an NVTX range with the names of problem and version
(common/bench/program.hpp). Clocks and caches are left as they are, as in ./course bench: the caches
hold what the launch before left there. A kernel is replayed once per group of counters.

docs/measurements/<machine>/<day>.counters.jsonl is JSON Lines. The first line is a header; each line
after it is one kernel of one version. If a version launches a kernel several times, times and counts
are summed, and shares are averaged, weighted by time.
"""

import argparse
import collections
import csv
import datetime
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FORMAT = "course counters 1"

# How busy each unit was, in percent of what it can do; of several counters, the largest. A pipe counts
# while its SM has work. The key is the
# class of a kernel that this unit limits.
PEAK = ".avg.pct_of_peak_sustained_elapsed"
PIPE = ".avg.pct_of_peak_sustained_active"
UNITS = {
    "memory": ["dram__throughput" + PEAK],
    "L2": ["lts__throughput" + PEAK],
    "shared memory": ["l1tex__data_pipe_lsu_wavefronts_mem_shared" + PEAK],
    "L1": ["l1tex__throughput" + PEAK, "l1tex__data_pipe_lsu_wavefronts" + PEAK],
    "atomics": ["lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed"],
    "tensor": ["sm__pipe_tensor_cycles_active" + PIPE],
    "FMA": ["sm__pipe_fma_cycles_active" + PIPE, "sm__pipe_fmaheavy_cycles_active" + PIPE],
    "ALU": ["sm__pipe_alu_cycles_active" + PIPE],
    "FP64": ["sm__pipe_fp64_cycles_active" + PIPE],
    "special functions": ["sm__inst_executed_pipe_xu" + PIPE],
    "issue": ["sm__inst_issued" + PEAK],
}
# The problem of a program that is no day's, and how many of its launches are profiled.
WHOLE_PROGRAM, MOST_LAUNCHES = "the whole program", 50
STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
STALLS = [  # the names of Nsight Compute's table of warp states
    "barrier branch_resolving dispatch_stall drain imc_miss lg_throttle long_scoreboard math_pipe_throttle",
    "membar mio_throttle misc no_instruction not_selected selected short_scoreboard sleeping tex_throttle wait",
]
OCCUPANCY_LIMITS = {
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
    "blocks": "launch__occupancy_limit_blocks",
    "warps": "launch__occupancy_limit_warps",
}
AVERAGES = {  # averaged over the launches of a kernel
    "MHz": "sm__cycles_elapsed.avg.per_second",
    "occupancy": "sm__warps_active" + PIPE,
    "largest_occupancy": "sm__maximum_warps_per_active_cycle_pct",
    "waves": "launch__waves_per_multiprocessor",
    "sectors_per_load": "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
    "sectors_per_store": "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
    "lanes": "smsp__thread_inst_executed_per_inst_executed.ratio",
}
SUMS = {
    "dram_bytes_read": "dram__bytes_read.sum",
    "dram_bytes_written": "dram__bytes_write.sum",
    "shared_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "bank_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "local_loads": "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum",
    "local_stores": "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum",
}
LIMIT_MHZ = "device__attribute_clock_rate"  # in kHz
# Instructions per cycle, of all cycles and of those in which the SM had work.
ISSUED, ISSUED_WHILE_ACTIVE = "sm__inst_issued" + PEAK, "sm__inst_issued" + PIPE

# The rule. A unit limits a kernel when it is at least BUSY percent busy.
BUSY = 60
# What passes through one unit keeps another busy, too: data from memory passes through L2, data from
# shared memory through L1, and each instruction is issued. Where the first is at most this much less
# busy than the second, the first is what counts.
CLOSE = 15
MATH = ["tensor", "FMA", "ALU", "FP64", "special functions"]
# Math units that are nearly always busy, while the clock is this much below the highest, are limited
# by power.
NEARLY_ALWAYS, SLOW_CLOCK = 85, 0.92
# A kernel as short as this is done before the GPU is full.
SHORT_US = 5
MOSTLY = 0.4
# A pipe of the few SMs that have work does not limit a kernel which leaves the others idle.
FEW_SMS = 50


def judge(kernel):
    """(class, reason) of one kernel: what keeps it from being faster, and why the rule says so.

    1. The busiest unit, if it is at least 60 % busy. L2 counts for itself only where it is more than
       15 points ahead of memory, L1 where it is as far ahead of shared memory, and the issue of
       instructions where it is as far ahead of every math unit that is 60 % busy. "power" instead of
       a math unit or issue that is at least 85 % busy while the clock is below 92 % of the highest. Math
       units do not count where SMs have work for less than half of the time, on average.
    2. "launch": a launch takes less than 5 us.
    3. "barriers": for at least 40 % of the time that warps have, they wait at __syncthreads(),
       or "constant memory": they wait as long for the constant cache.
    4. "latency": no unit is busy; warps wait for results.
    """
    busy = dict.fromkeys(UNITS, 0) | kernel["busy"]
    passing = {}  # units that are busy with the work of another
    few = kernel["active"] < FEW_SMS
    if few:
        busy |= dict.fromkeys(MATH, 0)
    if busy["L2"] - busy["memory"] <= CLOSE:
        passing["L2"] = busy.pop("L2")
    if busy["L1"] - busy["shared memory"] <= CLOSE:
        passing["L1"] = busy.pop("L1")
        busy["shared memory"] = max(busy["shared memory"], passing["L1"])
    if any(busy[unit] >= BUSY and busy["issue"] - busy[unit] <= CLOSE for unit in MATH):
        passing["issue"] = busy.pop("issue")
    unit = max(busy, key=busy.get)
    share = f"{unit} is {busy[unit]:.0f} % busy"
    if unit == "shared memory" and "L1" in passing:
        del passing["L1"]
        share = f"shared memory, with the L1 cache in the same unit, is {busy[unit]:.0f} % busy"
    if busy[unit] >= BUSY:
        if unit in (*MATH, "issue") and busy[unit] >= NEARLY_ALWAYS:
            if kernel["MHz"] < SLOW_CLOCK * kernel["highest_MHz"]:
                return "power", (
                    f"{share}, at {kernel['MHz']:.0f} MHz: less than {100 * SLOW_CLOCK:.0f} % of the highest "
                    f"clock, {kernel['highest_MHz']:.0f} MHz"
                )
        follow = [f"{name} ({value:.0f} %)" for name, value in passing.items() if value > busy[unit]]
        return unit, f"{share}, and from {BUSY} % on the busiest unit counts" + (
            f"; what keeps it busy passes through {' and '.join(follow)}, too" if follow else ""
        )
    idle = f"no unit is {BUSY} % busy ({share})"
    also = [f"{name} is {value:.0f} % busy, but with the work of another unit" for name, value in passing.items() if value >= BUSY]
    if few and max(kernel["busy"].get(name, 0) for name in MATH) >= BUSY:
        also.append(f"only {kernel['active']:.0f} % of the SMs have work")
    idle = "; ".join([idle, *also])
    each = kernel["us"] / kernel["launches"]
    if each < SHORT_US:
        return "launch", f"{idle}; a launch takes {each:.1f} us, less than {SHORT_US}"
    waiting = kernel["stalls"].get("barrier", 0)
    if waiting >= MOSTLY:
        return "barriers", f"{idle}; warps wait at barriers for {100 * waiting:.0f} % of their time"
    waiting = kernel["stalls"].get("imc_miss", 0)
    if waiting >= MOSTLY:
        return "constant memory", f"{idle}; warps wait for the constant cache for {100 * waiting:.0f} % of their time"
    return "latency", f"{idle}; warps wait for results"


def limit(kernel):
    """The class of one kernel."""
    return judge(kernel)[0]


def number(text):
    return float(text.replace(",", ""))


def kernel_name(text):
    """void (anonymous namespace)::add<float, 4>(const float *) -> add"""
    return re.match(r"(?:void )?(?:\((?:anonymous namespace|unnamed)\)::|<unnamed>::|\w+::)*(\w+)", text)[1]


def read_csv(lines, in_ranges=True):
    """One dictionary per profiled launch, {"problem", "version", "kernel", counter: value...}, from the
    output of ncu --csv --page raw --print-units base. Of a program without ranges, each kernel is its
    own version.
    """
    table = list(csv.reader(line for line in lines if not line.startswith("==")))
    if len(table) < 2:
        raise ValueError("ncu profiled no kernel")
    heading = table[0]
    name = heading.index("Kernel Name")
    launches = []
    for row in table[2:]:  # table[1] holds the units
        kernel = kernel_name(row[name])
        launch = {"problem": WHOLE_PROGRAM, "version": kernel, "kernel": kernel}
        if in_ranges:
            in_range = next(i for i, name in enumerate(heading) if ":Push/Pop_Range:" in name)
            found = re.search(r'"<default domain>:(.*) / (.*?):none', row[in_range])
            if found is None:
                raise ValueError(
                    f"kernel {row[name]} stands in the range {row[in_range]!r}; expected 'PROBLEM / VERSION'"
                )
            launch |= {"problem": found[1], "version": found[2]}
        for counter, value in zip(heading, row):
            if "__" in counter and re.fullmatch(r"[-+.,\dEe]+", value):
                launch[counter] = number(value)
        launches.append(launch)
    return launches


def combine(launches):
    """The record of one kernel of a version from all its launches."""
    weights = [launch["gpu__time_duration.sum"] for launch in launches]
    total = sum(weights)

    def average(counter):
        values = [(launch[counter], weight) for launch, weight in zip(launches, weights) if counter in launch]
        return sum(value * weight for value, weight in values) / sum(weight for _, weight in values) if values else None

    def rounded(value, digits=4):
        return float(f"{value:.{digits}g}")

    first = launches[0]
    kernel = {key: first[key] for key in ("problem", "version", "kernel")}
    kernel["launches"] = len(launches)
    kernel["us"] = rounded(total / 1e3)
    shares = {unit: [average(counter) for counter in counters] for unit, counters in UNITS.items()}
    kernel["busy"] = {
        unit: round(max(known), 1) for unit, values in shares.items() if (known := [v for v in values if v is not None])
    }
    waiting = {m[1]: average(m[0]) for key in first if (m := STALL.fullmatch(key))}
    all_states = sum(waiting.values()) or 1
    largest = sorted(waiting.items(), key=lambda item: -item[1])[:3]
    kernel["stalls"] = {name: round(value / all_states, 3) for name, value in largest}
    for key, counter in AVERAGES.items():
        if (value := average(counter)) is not None:
            kernel[key] = rounded(value / 1e6 if key == "MHz" else value)
    issued, while_active = average(ISSUED), average(ISSUED_WHILE_ACTIVE)
    kernel["active"] = round(100 * issued / while_active, 1) if while_active else 0.0
    kernel["highest_MHz"] = rounded(first[LIMIT_MHZ] / 1e3)
    for key, counter in SUMS.items():
        kernel[key] = rounded(sum(launch.get(counter, 0) for launch in launches), 6)
    kernel["registers"] = int(first["launch__registers_per_thread"])
    limits = {name: first[counter] for name, counter in OCCUPANCY_LIMITS.items() if counter in first}
    kernel["occupancy_limit"] = min(limits, key=limits.get)
    kernel["limited_by"] = limit(kernel)
    return kernel


def records(launches):
    """One record per kernel of each version, in the order of their first launches."""
    groups = collections.defaultdict(list)
    for launch in launches:
        groups[launch["problem"], launch["version"], launch["kernel"]].append(launch)
    return [combine(group) for group in groups.values()]


def write(path, header, kernels):
    lines = [{"format": FORMAT} | header, *kernels]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) + "\n" for one in lines))


def read(path):
    """(header, kernels) of a stored file."""
    header, *kernels = [json.loads(line) for line in path.read_text().splitlines()]
    if header.pop("format", None) != FORMAT:
        raise ValueError(f'{path}: the first line is no header; expected an object with "format": "{FORMAT}"')
    return header, kernels


def shown_problems(day):
    """The problems whose tables stand in the day's READMEs."""
    found = []
    for page in sorted((ROOT / day).glob("**/README.md")):
        found += re.findall(rf"<!-- (?:measurements|ladder): \w+/{day}, (.*?)(?:; versions:.*?)? -->", page.read_text())
    return list(dict.fromkeys(found))


def other_problems(records, shown):
    """Problems for the versions that run on none of those shown: of each version the one that takes it longest."""
    if not records.exists():
        return []
    longest = {}  # version: (time, problem)
    for line in records.read_text().splitlines():
        record = json.loads(line)
        if record.get("role") == "ours":
            # A shown problem comes first.
            key = (record["problem"] in shown, record["median_ms"], record["problem"])
            longest[record["version"]] = max(key, longest.get(record["version"], key))
    return list(dict.fromkeys(problem for is_shown, _, problem in longest.values() if not is_shown))


def version_of_ncu():
    """2025.3.1, of "Version 2025.3.1.0 (build ...)"."""
    said = subprocess.run(["ncu", "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"Version (\d+\.\d+\.\d+)", said)
    return found[1] if found else "of unknown version"


def known_counters():
    """The names of the counters that this GPU has, without their suffixes."""
    listed = subprocess.run(["ncu", "--query-metrics"], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in listed.splitlines() if "__" in line}


PERMISSION = """this user may not read the GPU's counters (ERR_NVGPUCTRPERM). What permits it:
  Linux, root      reads them always: sudo
  Linux, all users echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/profiling.conf
                   then sudo update-initramfs -u (Fedora, RHEL: sudo dracut --force), and restart. It is done when
                   grep RmProfilingAdminOnly /proc/driver/nvidia/params prints 0
  a container      start it with --cap-add=SYS_ADMIN
  Windows, WSL     NVIDIA Control Panel on Windows, as administrator: Desktop > Enable Developer Settings, then
                   Developer > Manage GPU Performance Counters > Allow access to all users
  a cloud notebook, a cluster
                   mostly not permitted; only who runs the machine can change that"""


def profile(options, log):
    """Runs ncu with these options, and returns the lines of its table. The program's output goes to stderr."""
    counters = [counter for several in UNITS.values() for counter in several]
    counters += [*AVERAGES.values(), *SUMS.values(), *OCCUPANCY_LIMITS.values()]
    counters += ["gpu__time_duration.sum", "launch__registers_per_thread", ISSUED_WHILE_ACTIVE]
    counters += [
        f"smsp__average_warps_issue_stalled_{state}_per_issue_active.ratio" for line in STALLS for state in line.split()
    ]
    known = known_counters()
    counters = [one for one in counters if one.startswith("launch__") or one.split(".")[0] in known or "maximum_warps" in one]
    command = ["ncu", "--clock-control", "none", "--cache-control", "none", "--csv", "--page", "raw"]
    command += ["--print-units", "base", "--log-file", str(log), "--metrics", ",".join(counters), *options]
    log.unlink(missing_ok=True)
    ended = subprocess.run(command, stdout=sys.stderr)
    text = log.read_text() if log.exists() else ""
    if "ERR_NVGPUCTRPERM" in text:
        raise ValueError(PERMISSION)
    if ended.returncode != 0:
        raise ValueError(f"ncu ended with exit code {ended.returncode}:\n{text[-2000:]}")
    return text.splitlines(keepends=True)


def measure(day, program, output, header, version=None):
    """Profiles a day's program, or one version of it; writes the records to `output`."""
    problems = shown_problems(day)
    if not problems:
        raise ValueError(f"{day}: no README shows a table of measurements; expected a marker of ./course tables")
    problems += other_problems(ROOT / "docs/measurements" / output.parent.name / f"{day}.jsonl", problems)
    options = ["--profile-from-start", "off", "--nvtx", program, "--bench"]
    for problem in problems:
        options += ["--profile", problem]
    if version:
        options += ["--only", version]
    lines = profile(options, output.with_suffix(".csv"))
    write(output, header | {"ncu": version_of_ncu()}, records(read_csv(lines)))


def measure_program(command, output, header):
    """The same for a program that is no day's: each kernel of its first launches."""
    lines = profile(["--launch-count", str(MOST_LAUNCHES), *command], output.with_suffix(".csv"))
    write(output, header | {"ncu": version_of_ncu()}, records(read_csv(lines, in_ranges=False)))


def stored():
    return sorted((ROOT / "docs/measurements").glob("*/*.counters.jsonl"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", nargs=3, metavar=("DAY", "PROGRAM", "OUTPUT"), help="profile a day's program")
    parser.add_argument("--only", metavar="VERSION", help="of --measure: only this version")
    parser.add_argument(
        "--measure-program", nargs=argparse.REMAINDER, metavar="OUTPUT PROGRAM ARGUMENTS", help="profile any program"
    )
    parser.add_argument("--header", default="{}", help="JSON object: device, driver, commit... of --measure")
    parser.add_argument("--renew", action="store_true", help="apply the rule to every stored file")
    parser.add_argument("--check", action="store_true", help="do the stored classes follow the rule?")
    parser.add_argument("--why", metavar="FILE", help="print the rule's reason for the class of each kernel, one a line")
    options = parser.parse_args()
    if options.measure or options.measure_program:
        header = json.loads(options.header)
        header["date"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        try:
            if options.measure:
                day, program, output = options.measure
                measure(day, program, pathlib.Path(output), {"day": day} | header, options.only)
            else:
                output, *command = options.measure_program
                measure_program(command, pathlib.Path(output), header)
        except (ValueError, OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"counters: {error}")
        return
    if options.why:
        for kernel in read(pathlib.Path(options.why))[1]:
            print(judge(kernel)[1])
        return
    wrong = 0
    for path in stored():
        header, kernels = read(path)
        for kernel in kernels:
            if kernel["limited_by"] != (right := limit(kernel)):
                wrong += 1
                if options.check:
                    print(f"{path.relative_to(ROOT)}: {kernel['version']}, {kernel['kernel']}: {kernel['limited_by']}, "
                          f"but the rule says {right}")
                kernel["limited_by"] = right
        if options.renew:
            write(path, header, kernels)
    print(f"{len(stored())} file(s), {wrong} class(es) {'renewed' if options.renew else 'wrong'}")
    sys.exit(1 if options.check and wrong else 0)


if __name__ == "__main__":
    main()
