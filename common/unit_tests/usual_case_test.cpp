#include "common/bench/usual_case.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/bench/version.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"
#include "test_kernels.hpp"

namespace {

constexpr std::size_t kCount = 100;

struct Ones {
    course::DeviceBuffer<float> in{std::span<const float>(std::vector<float>(kCount, 3.0f))};
    course::DeviceBuffer<float> same{std::span<const float>(std::vector<float>(kCount, 4.0f))};
    course::DeviceBuffer<double> wider{kCount};
    course::GuardedBuffer<float> out{kCount};
    int spoilt = 0;
};

using Filler = course::Version<float, std::size_t>;  // the launcher is the value to fill with

std::vector<Filler> fillers() {
    const auto work = [](const std::size_t& n) {
        return course::Work{.bytes = 4.0 * static_cast<double>(n)};
    };
    const auto only_odd = [](const std::size_t& n) { return std::string(n % 2 == 0 ? "n is even" : ""); };
    return {{"ones", "", 1.0f, work}, {"twos", "", 2.0f, work}, {"odd", "", 1.0f, work, only_odd}};
}

void fill_with(const Filler& version, Ones& data, cudaStream_t stream) {
    course::testing::fill(data.out.span(), version.launcher, 0, kCount, stream);
}

course::VerifyResult all_are(const std::vector<float>& got, double expected) {
    return course::verify(got, std::vector<double>(kCount, expected));
}

class UsualCaseTest : public course::DeviceTest {
  protected:
    course::UsualCase<Ones> usual_{"fill 100", "float", std::make_shared<Ones>()};

    template <class Action>
    static std::string mistake(Action action) {
        try {
            action();
        } catch (const std::logic_error& error) {
            return error.what();
        }
        return "";
    }
};

TEST_F(UsualCaseTest, OutputIsSpoiltVerifiedAndGuarded) {
    usual_.output(&Ones::out, [](const Ones&, const auto& got) { return all_are(got, 1); });
    course::testing::fill(usual_.data->out.span(), 1, 0, kCount);
    EXPECT_TRUE(usual_.result.verify().ok());
    usual_.result.spoil();
    EXPECT_EQ(usual_.result.verify().untouched, kCount);
    course::testing::fill(usual_.data->out.span(), 1, 0, kCount + 1);
    EXPECT_NE(usual_.result.verify().damage, "");
}

TEST_F(UsualCaseTest, DamageOfOtherOutputsCounts) {
    usual_.output(&Ones::out, [](const Ones&, const auto& got) {
        course::VerifyResult result = all_are(got, 1);
        result.damage = "the guards of another output";
        return result;
    });
    course::testing::fill(usual_.data->out.span(), 1, 0, kCount);
    EXPECT_EQ(usual_.result.verify().damage, "the guards of another output");
}

TEST_F(UsualCaseTest, AllThatIsToBeSpoiltIs) {
    usual_.output(&Ones::out, [](const Ones&, const auto& got) { return all_are(got, 1); });
    usual_.also_spoil([](Ones& data) { data.spoilt += 1; });
    usual_.also_spoil([](Ones& data) { data.spoilt += 10; });
    course::testing::fill(usual_.data->out.span(), 1, 0, kCount);
    usual_.result.spoil();
    EXPECT_EQ(usual_.data->spoilt, 11);
    EXPECT_EQ(usual_.result.verify().untouched, kCount);
}

TEST_F(UsualCaseTest, ASecondOutputIsRefused) {
    const auto right = [](const Ones&, const auto&) { return course::VerifyResult{}; };
    usual_.output(&Ones::out, right);
    EXPECT_EQ(mistake([&] { usual_.output(&Ones::out, right); }),
              "UsualCase: fill 100 has a verify already; expected one call of output()");
}

TEST_F(UsualCaseTest, EachVersionBecomesAContestant) {
    usual_.output(&Ones::out, [](const Ones&, const auto& got) { return all_are(got, 1); });
    std::vector<Filler> list = fillers();
    usual_.versions(list, kCount, fill_with);
    // The added contestants keep their own copy.
    list[0].launcher = 7.0f;
    const std::vector<course::Contestant>& added = usual_.result.contestants;
    ASSERT_EQ(course::names(added), (std::vector<std::string>{"ones", "twos", "odd"}));
    EXPECT_EQ(added[0].work.bytes, 400);
    EXPECT_EQ(added[0].role, course::Role::kOurs);
    EXPECT_EQ(added[2].cannot_run, "n is even");
    added[0].launch(nullptr);
    EXPECT_TRUE(usual_.result.verify().ok());
    added[1].launch(nullptr);
    EXPECT_FALSE(usual_.result.verify().ok());
}

TEST_F(UsualCaseTest, EachVersionMayHaveResultsOfItsOwn) {
    usual_.versions(fillers(), kCount, fill_with, [](const Filler& version, Ones& data) {
        return all_are(data.out.to_host(), static_cast<double>(version.launcher));
    });
    const std::vector<course::Contestant>& added = usual_.result.contestants;
    added[1].launch(nullptr);
    EXPECT_TRUE(added[1].verify().ok());
    EXPECT_FALSE(added[0].verify().ok());
}

TEST_F(UsualCaseTest, TheCpuIsAPeerWithItsOwnResult) {
    const course::Contestant& cpu = usual_.cpu(
        {.bytes = 8}, [](Ones& data) { data.spoilt = 5; },
        [](const Ones& data) {
            course::VerifyResult verified;
            verified.differing = data.spoilt == 5 ? 0 : 1;
            return verified;
        });
    EXPECT_EQ(cpu.role, course::Role::kPeer);
    EXPECT_TRUE(cpu.on_host);
    EXPECT_FALSE(cpu.verify().ok());
    cpu.launch(nullptr);
    EXPECT_TRUE(cpu.verify().ok());
}

TEST_F(UsualCaseTest, LimitCopiesOneBufferToAnother) {
    const course::Contestant& all = usual_.limit_copy(&Ones::in, &Ones::same);
    EXPECT_EQ(all.role, course::Role::kLimit);
    EXPECT_EQ(all.work.bytes, 800);
    EXPECT_EQ(all.work.written, 400);
    all.launch(nullptr);
    EXPECT_EQ(usual_.data->same.to_host(), std::vector<float>(kCount, 3.0f));

    const course::Contestant& part = usual_.limit_copy(&Ones::in, &Ones::out, 8, "two");
    EXPECT_EQ(part.name, "two");
    EXPECT_EQ(part.work.written, 8);
    part.launch(nullptr);
    EXPECT_EQ(usual_.data->out.to_host()[1], 3.0f);
    EXPECT_NE(usual_.data->out.to_host()[2], 3.0f);
}

TEST_F(UsualCaseTest, LimitBetweenBuffersOfUnequalSizesIsRefused) {
    EXPECT_EQ(mistake([&] { usual_.limit_copy(&Ones::in, &Ones::wider); }),
              "UsualCase: cudaMemcpy of 400 bytes, from a buffer of 400 to one of 800; expected equal sizes");
    EXPECT_EQ(mistake([&] { usual_.limit_copy(&Ones::in, &Ones::wider, 401); }),
              "UsualCase: cudaMemcpy of 401 bytes, from a buffer of 400 to one of 800; expected no more than "
              "either has");
    EXPECT_EQ(mistake([&] { usual_.limit_copy(&Ones::in, &Ones::wider, 400); }), "");
}

TEST(OnlyExtent, RefusesSizesOfSeveralNumbers) {
    EXPECT_EQ(course::only_extent({7}, "bytes"), 7U);
    EXPECT_EQ(course::refusal([] {
                  course::only_extent({7, 8}, "bytes");
              }),
              "size has 2 numbers; expected one, the number of bytes, for example 1048576");
}

}  // namespace
