// What ./course can do: one function, one file each. They return the exit code (errors.hpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkout.hpp"

namespace course::tool {

int list_days(const Checkout& checkout);

struct RunOptions {
    std::string day;
    std::string size;                // as the day's program reads it; empty: its own choice
    std::string variant;             // empty: all
    std::string json;                // file for the records; empty: none
    std::vector<std::string> extra;  // handed to the program as they are
};
int run_day(const Checkout& checkout, const RunOptions& options);

struct InspectOptions {
    std::string day;
    std::string variant;             // empty: all
    std::string size;                // empty: the program's own choice
    std::string html;                // file for the page; empty: none
    std::string json;                // file for the figures, with the sentences about them; empty: none
    std::vector<std::string> extra;  // handed to the program as they are
};
// In a build of its own, build/inspect, whichever build this is. kFailed when there are findings.
int inspect_day(const Checkout& checkout, const InspectOptions& options);

// Without a day: everything.
int test_days(const Checkout& checkout, const std::optional<std::string>& day);

struct BenchOptions {
    std::string day;
    bool sweep =
        false;  // --sweep of the day's program instead of --bench; the records have a file of their own
    bool record = false;  // the figures go to docs/measurements/, once the program has succeeded
};
int bench_day(const Checkout& checkout, const BenchOptions& options);

// With `check_only`, no file is written, and a README that would change is a failure.
int update_tables(const Checkout& checkout, bool check_only);

int doctor(const Checkout& checkout);

}  // namespace course::tool
