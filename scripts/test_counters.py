#!/usr/bin/env python3
"""Tests of counters.py: what it reads of Nsight Compute's output, the rule, and the stored classes."""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import counters

HEADING = (
    '"ID","Process ID","thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg","Kernel Name",'
    '"gpu__time_duration.sum","launch__registers_per_thread","dram__throughput.avg.pct_of_peak_sustained_elapsed",'
    '"lts__throughput.avg.pct_of_peak_sustained_elapsed","l1tex__throughput.avg.pct_of_peak_sustained_elapsed",'
    '"l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed",'
    '"sm__inst_issued.avg.pct_of_peak_sustained_elapsed","sm__inst_issued.avg.pct_of_peak_sustained_active",'
    '"sm__cycles_elapsed.avg.per_second",'
    '"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",'
    '"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio","l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",'
    '"launch__occupancy_limit_registers","launch__occupancy_limit_warps","device__attribute_clock_rate"\n'
)
UNITS = '"","","","","ns","register/thread","%","%","%","%","%","%","hz","","","","block","block",""\n'


def row(version, kernel, ns, memory, conflicts=0):
    label = f'7271  ""<default domain>:decoding 16x32:8x64 / {version}:none:none:none:none:none:none"" '
    return (
        f'"0","7271","{label}","{kernel}","{ns}","40","{memory}","50","20","10","30","40","1,980,000,000","6","2",'
        f'"{conflicts}","6","8","1,980,000"\n'
    )


def busy(**units):
    shares = {unit: 0.0 for unit in counters.UNITS} | {name.replace("_", " "): v for name, v in units.items()}
    return {"busy": shares, "active": 100.0, "us": 100.0, "launches": 1, "MHz": 1980, "highest_MHz": 1980, "stalls": {"wait": 1.0}}


class Reading(unittest.TestCase):
    def test_launches_of_one_kernel_are_one_record(self):
        lines = ["==PROF== Connected\n", HEADING, UNITS]
        lines.append(row("split", "void <unnamed>::split_keys<float, (int)4>(const float *)", "1,000", "90", "1,024"))
        lines.append(row("split", "combine(float *)", "500", "10"))
        lines.append(row("split", "void <unnamed>::split_keys<float, (int)4>(const float *)", "3,000", "70"))
        first, second = counters.records(counters.read_csv(lines))
        self.assertEqual(first["problem"], "decoding 16x32:8x64")
        self.assertEqual([first["kernel"], second["kernel"]], ["split_keys", "combine"])
        self.assertEqual([first["launches"], first["us"]], [2, 4.0])
        self.assertEqual(first["busy"]["memory"], 75.0, "weighted by time")
        self.assertEqual(first["bank_conflicts"], 1024)
        self.assertEqual(first["stalls"], {"barrier": 0.75, "wait": 0.25})
        self.assertEqual(first["occupancy_limit"], "registers")
        self.assertEqual(first["active"], 75.0)
        self.assertEqual([first["limited_by"], second["limited_by"]], ["memory", "launch"])

    def test_what_is_no_profile_is_refused(self):
        with self.assertRaisesRegex(ValueError, "profiled no kernel"):
            counters.read_csv(["==PROF== Connected\n"])
        with self.assertRaisesRegex(ValueError, "expected 'PROBLEM / VERSION'"):
            counters.read_csv([HEADING, UNITS, row("a", "k", 1, 1).replace(" / ", " ")])

    def test_problems_for_versions_that_run_on_none_of_those_shown(self):
        with tempfile.TemporaryDirectory() as directory:
            records = pathlib.Path(directory) / "day.jsonl"
            self.assertEqual(counters.other_problems(records, ["large"]), [])
            lines = [{"format": "course records 1"}]
            for problem, version, ms in (("small", "plain", 1), ("large", "plain", 9), ("largest", "plain", 99), ("small", "other", 2),
                                         ("pairs", "other", 3), ("pairs", "third", 1)):
                lines.append({"problem": problem, "version": version, "role": "ours", "median_ms": ms})
            lines.append({"problem": "of a peer", "version": "library", "role": "peer", "median_ms": 1})
            records.write_text("".join(json.dumps(line) + "\n" for line in lines))
            self.assertEqual(counters.other_problems(records, ["large"]), ["pairs"])
            self.assertEqual(counters.other_problems(records, ["large", "pairs"]), [])
            self.assertEqual(counters.other_problems(records, []), ["largest", "pairs"])

    def test_names_of_kernels(self):
        for given, name in {
            "add(const float *)": "add",
            "void reduce<Sum<float>, (int)4>(const float *)": "reduce",
            "void (anonymous namespace)::sgemm(float *)": "sgemm",
            "course::tile::multiply<Tile<128>>(float *)": "multiply",
            "void attention<unnamed>::Tile<(int)64>(float *)": "attention",  # the qualifier is an argument's
        }.items():
            self.assertEqual(counters.kernel_name(given), name)


class Rule(unittest.TestCase):
    def test_the_busiest_unit(self):
        self.assertEqual(counters.limit(busy(memory=92.0, L2=94.0)), "memory")
        self.assertEqual(counters.limit(busy(memory=20.0, L2=87.0)), "L2")
        self.assertEqual(counters.limit(busy(memory=53.0, L2=66.0)), "latency", "data of memory, which is not busy")
        self.assertEqual(counters.limit(busy(shared_memory=78.0, L1=81.0)), "shared memory")
        self.assertEqual(counters.limit(busy(L1=99.0)), "L1")
        self.assertEqual(counters.limit(busy(FMA=77.0, issue=86.0)), "FMA")
        self.assertEqual(counters.limit(busy(FMA=48.0, issue=61.0)), "issue")
        self.assertEqual(counters.limit(busy(FMA=59.9, issue=59.9)), "latency")
        self.assertEqual(counters.limit(busy(atomics=71.0)), "atomics")

    def test_power_is_a_busy_math_unit_at_a_low_clock(self):
        kernel = busy(tensor=95.0)
        self.assertEqual(counters.limit(kernel), "tensor")
        self.assertEqual(counters.limit(kernel | {"MHz": 1582}), "power")
        self.assertEqual(counters.limit(busy(memory=95.0) | {"MHz": 1582}), "memory")

    def test_a_pipe_of_few_sms_does_not_limit_the_gpu(self):
        kernel = busy(ALU=83.0, issue=0.5)
        self.assertEqual(counters.limit(kernel), "ALU")
        self.assertEqual(counters.limit(kernel | {"active": 0.8}), "latency")
        self.assertEqual(counters.limit(busy(memory=83.0) | {"active": 0.8}), "memory")

    def test_no_unit_is_busy(self):
        self.assertEqual(counters.limit(busy() | {"us": 9.0, "launches": 2}), "launch")
        self.assertEqual(counters.limit(busy() | {"us": 11.0, "launches": 2}), "latency")
        self.assertEqual(counters.limit(busy() | {"stalls": {"barrier": 0.4}}), "barriers")
        self.assertEqual(counters.limit(busy() | {"stalls": {"imc_miss": 0.4}}), "constant memory")
        self.assertEqual(counters.limit(busy() | {"stalls": {"imc_miss": 0.39}}), "latency")
        self.assertEqual(counters.limit(busy(issue=81.0) | {"stalls": {"imc_miss": 0.8}}), "issue")


    def test_the_reason_has_the_figures_that_decide(self):
        for kernel, reason in (
            (busy(memory=92.4, L2=94.0), "memory is 92 % busy, .* passes through L2 \\(94 %\\), too"),
            (busy(memory=92.4, L2=80.0), "memory is 92 % busy, and from 60 % on the busiest unit counts$"),
            (busy(shared_memory=78.0, L1=81.0), "shared memory, with the L1 cache in the same unit, is 81 % busy"),
            (busy(tensor=95.0) | {"MHz": 1582}, "tensor is 95 % busy, at 1582 MHz: less than 92 % of .* 1980 MHz"),
            (busy(memory=53.0, L2=66.0), "no unit is 60 % busy \\(memory is 53 % busy\\); L2 is 66 % busy, but with the work of another"),
            (busy(ALU=83.0) | {"active": 0.8}, "only 1 % of the SMs have work"),
            (busy() | {"us": 9.0, "launches": 2}, "a launch takes 4.5 us, less than 5$"),
            (busy() | {"stalls": {"barrier": 0.4}}, "wait at barriers for 40 % of their time$"),
            (busy() | {"stalls": {"imc_miss": 0.8}}, "wait for the constant cache for 80 % of their time$"),
        ):
            self.assertRegex(counters.judge(kernel)[1], reason)


# An ncu that says what it is asked for, and profiles a kernel of the last problem.
NCU = """#!/bin/sh
case "$1" in
    --version) echo "Version 2025.3.1.0 (build 1) (public-release)" ;;
    --query-metrics) echo "dram__throughput  Counter  %" ;;
    *) echo "$@" >'{directory}/arguments'
       while [ "$1" != --log-file ]; do shift; done
       cat '{directory}/log' >"$2"
       exit $(cat '{directory}/code') ;;
esac
"""


class Measuring(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = pathlib.Path(temporary.name)
        ncu = self.directory / "ncu"
        ncu.write_text(NCU.format(directory=self.directory))
        ncu.chmod(0o755)
        path = mock.patch.dict(os.environ, {"PATH": f"{self.directory}:{os.environ['PATH']}"})
        path.start()
        self.addCleanup(path.stop)
        self.output = self.directory / "day15_reduction.counters.jsonl"
        self.ncu_says("".join([HEADING, UNITS, row("coarsened", "reduce(float *)", "1,000", "90")]))

    def ncu_says(self, log, code=0):
        (self.directory / "log").write_text(log)
        (self.directory / "code").write_text(str(code))

    def measure(self):
        counters.measure("day15_reduction", "./program", self.output, {"day": "day15_reduction", "device": "NVIDIA H200"})

    def test_the_problems_of_the_readme_are_profiled(self):
        self.measure()
        said = (self.directory / "arguments").read_text()
        self.assertIn("./program --bench --profile sum 268435456", said)
        self.assertIn("dram__throughput.avg.pct_of_peak_sustained_elapsed", said)
        self.assertNotIn("lts__throughput", said, "this GPU has no such counter")
        header, kernels = counters.read(self.output)
        self.assertEqual(header, {"day": "day15_reduction", "device": "NVIDIA H200", "ncu": "2025.3.1"})
        self.assertEqual([kernel["version"] for kernel in kernels], ["coarsened"])

    def test_a_marker_that_names_versions_names_the_same_problem(self):
        shown = counters.shown_problems("day37_mri")
        self.assertIn("mri 128x128x128 voxels 3000 samples", shown)
        self.assertFalse([problem for problem in shown if "versions" in problem])

    def test_one_version_and_the_kernels_of_any_program(self):
        counters.measure("day15_reduction", "./program", self.output, {}, "shuffle")
        self.assertTrue((self.directory / "arguments").read_text().endswith("--profile sum 268435456 --only shuffle\n"))

        without = "".join([HEADING, UNITS, row("x", "void mine<4>(float *)", "1,000", "90")]).replace(" / x", "")
        self.ncu_says(without)
        arguments = ["counters.py", "--header", '{"device": "D"}', "--measure-program"]
        with mock.patch.object(sys, "argv", [*arguments, str(self.output), "./mine", "--only", "7"]):
            counters.main()
        said = (self.directory / "arguments").read_text()
        self.assertTrue(said.endswith(" --launch-count 50 ./mine --only 7\n"), said)
        self.assertNotIn("--profile-from-start", said)
        header, kernels = counters.read(self.output)
        self.assertEqual(header["device"], "D")
        self.assertEqual([(one["problem"], one["version"]) for one in kernels], [("the whole program", "mine")])

    def test_nothing_is_written_when_ncu_fails(self):
        self.ncu_says("==ERROR== ERR_NVGPUCTRPERM\n", code=1)
        with self.assertRaisesRegex(ValueError, "may not read the GPU's counters"):
            self.measure()
        for system in ("NVreg_RestrictProfilingToAdminUsers=0", "--cap-add=SYS_ADMIN", "WSL", "sudo", "notebook"):
            self.assertIn(system, counters.PERMISSION)
        self.ncu_says("==ERROR== no device\n", code=2)
        with self.assertRaisesRegex(ValueError, "exit code 2:\n==ERROR== no device"):
            self.measure()
        self.assertFalse(self.output.exists())


class Stored(unittest.TestCase):
    def test_every_class_follows_the_rule(self):
        with mock.patch.object(sys, "argv", ["counters.py", "--check"]), self.assertRaises(SystemExit) as ended:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                counters.main()
        self.assertEqual(ended.exception.code, 0, printed.getvalue())

    def test_every_file_is_of_a_day_and_has_kernels(self):
        for path in counters.stored():
            header, kernels = counters.read(path)
            self.assertTrue(kernels, path)
            self.assertTrue((counters.ROOT / header["day"]).is_dir(), path)


if __name__ == "__main__":
    unittest.main()
