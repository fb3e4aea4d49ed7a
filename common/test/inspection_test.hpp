// Checks in tests what a lesson states about its memory accesses.
//
//     TEST(Transpose, APaddedTileHasNoConflicts) {
//         EXPECT_CONFLICT_FREE([&] { transpose_padded(in, out); });
//     }
//
// The test is skipped, with the reason, if the build does not support inspection.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "common/bench/inspection.hpp"

namespace course {

inline std::string described(const AccessLine& line) {
    return fmt::format("{}:{}: {} of {} bytes, {}: {} requests took {} {}, {} would do; the worst {}",
                       line.source.file, line.source.line, name(line.operation), line.bytes, line.worst.array,
                       line.requests, line.transactions,
                       line.space == Space::kShared ? "wavefronts" : "sectors", line.ideal,
                       line.worst.transactions);
}

// Does each line that accesses the space take only as many transactions as its bytes need? There
// must be at least one such line, because a kernel without instrumentation has none.
inline testing::AssertionResult ideal(const Inspection& seen, Space space) {
    bool any = false;
    testing::AssertionResult result = testing::AssertionSuccess();
    for (const KernelInspection& kernel : seen.kernels) {
        for (const AccessLine& line : kernel.lines) {
            if (line.space != space) continue;
            any = true;
            if (line.transactions == line.ideal) continue;
            if (result) result = testing::AssertionFailure();
            result << kernel.name << "\n  " << described(line) << '\n';
        }
    }
    if (!any) return testing::AssertionFailure() << "no access to " << name(space) << " memory was seen";
    return result;
}

// No request to shared memory takes more wavefronts than its bytes need.
inline testing::AssertionResult conflict_free(const Inspection& seen) {
    return ideal(seen, Space::kShared);
}

// No request to global memory touches more sectors than its bytes need.
inline testing::AssertionResult coalesced(const Inspection& seen) {
    return ideal(seen, Space::kGlobal);
}

// There are no findings: no race, no access out of bounds, no read of unwritten memory.
inline testing::AssertionResult without_findings(const Inspection& seen) {
    testing::AssertionResult result = testing::AssertionSuccess();
    for (const KernelInspection& kernel : seen.kernels) {
        for (const Finding& finding : kernel.findings) {
            if (result) result = testing::AssertionFailure();
            result << kernel.name << "\n  " << finding.kind << ' ' << finding.source.file << ':'
                   << finding.source.line << ": " << finding.message << '\n';
        }
    }
    return result;
}

}  // namespace course

// Takes a function that launches kernels. Where inspection is not supported, the rest of the test
// is skipped.
#define COURSE_EXPECT_INSPECTED(property, ...)                                       \
    if (const std::string reason = ::course::why_no_inspection(); !reason.empty()) { \
        GTEST_SKIP() << reason;                                                      \
    } else {                                                                         \
        EXPECT_TRUE(::course::property(::course::inspect(__VA_ARGS__)));             \
    }                                                                                \
    static_assert(true, "wants a semicolon")
#define EXPECT_CONFLICT_FREE(...) COURSE_EXPECT_INSPECTED(conflict_free, __VA_ARGS__)
#define EXPECT_COALESCED(...) COURSE_EXPECT_INSPECTED(coalesced, __VA_ARGS__)
#define EXPECT_NO_RACES(...) COURSE_EXPECT_INSPECTED(without_findings, __VA_ARGS__)
