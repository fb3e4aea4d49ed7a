// What an inspection reports of the versions, of each form of the litmus tests, and of the
// protocols of the exercises.
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "beyond/proxy.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"
#include "common/test/inspection_test.hpp"
#include "litmus.hpp"
#include "memory_model.hpp"
#include "protocols.hpp"

namespace {

using course::DeviceBuffer;

constexpr std::size_t kElements = 12 * 1024 + 5;

TEST(Lesson, NoVersionHasRaces) {
    const std::vector<std::int32_t> zeros(kElements);
    const DeviceBuffer<std::int32_t> in{std::span(zeros)};
    DeviceBuffer<day23::Record> total(1);
    day23::Workspace workspace(kElements);
    for (const auto& version : day23::versions()) {
        SCOPED_TRACE(version.name);
        EXPECT_NO_RACES([&] { version.launcher(in.span(), total.span(), workspace, nullptr); });
    }
}

TEST(Lesson, TheSequenceLockHasNoRaces) {
    DeviceBuffer<std::uint32_t> mixed(3);
    DeviceBuffer<std::uint32_t> memory(day23::state_words());
    EXPECT_NO_RACES([&] { day23::read_while_written(50, mixed.span(), memory.span(), nullptr); });
}

std::string findings_of(const course::Inspection& seen) {
    std::string kinds;
    for (const course::KernelInspection& kernel : seen.kernels)
        for (const course::Finding& finding : kernel.findings)
            kinds += finding.kind + ": " + finding.message + "\n";
    return kinds;
}

// Every form that is a race has a finding, and no other one has. An outcome that atomic accesses
// allow is no race, so the inspection says nothing of it.
class Litmus : public testing::TestWithParam<const day23::LitmusForm*> {};
INSTANTIATE_TEST_SUITE_P(Forms, Litmus, testing::ValuesIn([] {
                             std::vector<const day23::LitmusForm*> forms;
                             for (const day23::LitmusForm& form : day23::litmus_forms())
                                 forms.push_back(&form);
                             return forms;
                         }()),
                         [](const auto& one) {
                             std::string name;
                             for (const char c : one.param->test + "_" + one.param->form)
                                 if (c != ',') name += c == ' ' ? '_' : c;
                             return name;
                         });

TEST_P(Litmus, RacesAreFoundAndNothingElse) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    const std::string found =
        findings_of(course::inspect([] { day23::run_litmus(*GetParam(), 1, /*groups=*/2); }));
    if (GetParam()->is_race)
        EXPECT_NE(found.find("race"), std::string::npos) << found;
    else
        EXPECT_EQ(found, "");
}

class Broken : public testing::TestWithParam<std::size_t> {
  protected:
    // Runs it on n elements; returns what is wrong with the result, or "".
    static std::string run(const day23::Protocol& protocol, unsigned n) {
        std::vector<int> in(n);
        for (unsigned i = 0; i < n; ++i)
            in[i] = static_cast<int>(i * 37 % 101) - 50;
        const std::vector<int> expected = protocol.on_cpu(in);
        const DeviceBuffer<int> in_device{std::span<const int>(in)};
        course::GuardedBuffer<int> out(n);
        DeviceBuffer<unsigned> words = course::zeros<unsigned>(day23::kProtocolWords + n);
        protocol.launch(in_device.data(), out.data(), n, words.data(), nullptr);
        course::VerifyResult result = course::verify_exact(out.to_host(), expected);
        result.damage = out.damage();
        if (!result.ok()) return result.message();
        if (protocol.word_of_sum == 0) return "";
        int sum = 0;
        for (unsigned first = 0; first < n; first += 64)
            sum += expected[first];
        const auto word = static_cast<int>(words.to_host()[protocol.word_of_sum]);
        if (word == sum) return "";
        return "words[" + std::to_string(protocol.word_of_sum) + "] is " + std::to_string(word) +
               " after the launch; expected " + std::to_string(sum);
    }
};
INSTANTIATE_TEST_SUITE_P(Protocols, Broken, testing::Range(std::size_t{0}, std::size_t{6}),
                         [](const auto& one) { return day23::protocols()[one.param].name; });

class Repaired : public Broken {};
INSTANTIATE_TEST_SUITE_P(Protocols, Repaired, testing::Range(std::size_t{0}, std::size_t{6}),
                         [](const auto& one) { return day23::protocols()[one.param].name; });

TEST_P(Repaired, IsRightAndHasNoRaces) {
    const day23::Protocol& protocol = day23::protocols()[GetParam()];
    for (const unsigned n : {1U, 64U, 65U, 300U}) {
        std::string wrong;
        EXPECT_NO_RACES([&] { wrong = run(protocol, n); });
        EXPECT_EQ(wrong, "") << n << " elements";
    }
}

TEST_P(Broken, AsTheExerciseGivesItHasARace) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    const day23::Protocol& protocol = day23::broken_protocols()[GetParam()];
    const std::string found = findings_of(course::inspect([&] { run(protocol, 300); }));
    EXPECT_NE(found.find("race"), std::string::npos) << found;
}

TEST(BulkCopy, WithoutTheProxyFenceIsReported) {
    if (const std::string reason = course::why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    const std::vector<std::int32_t> ones(512, 1);
    const DeviceBuffer<std::int32_t> in{std::span(ones)};
    DeviceBuffer<std::int32_t> out(512);
    const auto findings = [&](bool is_fenced) {
        return findings_of(
            course::inspect([&] { day23::double_by_bulk_copy(in.span(), out.span(), is_fenced, nullptr); }));
    };
    EXPECT_EQ(findings(true), "");
    EXPECT_NE(findings(false).find("fence.proxy.async"), std::string::npos) << findings(false);
}

}  // namespace
