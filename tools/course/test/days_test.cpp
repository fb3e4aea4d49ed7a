#include "days.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "temporary_directory.hpp"

namespace course::tool {
namespace {

Calendar calendar() {
    return {"cpu",
            "Release",
            {{"day00_first_program", 0, "first_program", "Whole programs", "2, 3", true, {{"hello"}}},
             {"day01_vector_add", 1, "vector_add", "Vector addition", "2, 3", true},
             {"day05_matmul_tiled", 5, "matmul_tiled", "Tiled matrix multiplication", "3-6", false},
             {"day12_histogram", 12, "histogram", "Histogram", "9", true},
             {"gemm_ladder", -1, "gemm_ladder", "From naive SGEMM to cuBLAS", "5, 6", false}}};
}

std::string usage_error(const std::string& name) {
    try {
        const Calendar days = calendar();
        find_day(days, name);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "no error";
}

TEST(FindDay, UnderstandsEveryNameOfADay) {
    const Calendar days = calendar();
    for (const char* name :
         {"day01", "1", "01", "day1", "vector_add", "day01_vector_add", "day01_vector_add/"}) {
        EXPECT_EQ(find_day(days, name).directory, "day01_vector_add") << name;
    }
    EXPECT_EQ(find_day(days, "day12").directory, "day12_histogram");
    EXPECT_EQ(find_day(days, "gemm_ladder").directory, "gemm_ladder");
    for (const char* name : {"day00", "0", "00", "first_program"})
        EXPECT_EQ(find_day(days, name).directory, "day00_first_program") << name;
}

TEST(FindDay, SuggestsTheNearestName) {
    EXPECT_NE(usage_error("vektor_ad").find("nearest is day01_vector_add"), std::string::npos);
    EXPECT_NE(usage_error("histogramm").find("nearest is day12_histogram"), std::string::npos);
    EXPECT_NE(usage_error("gem_lader").find("nearest is gemm_ladder"), std::string::npos);
    EXPECT_NE(usage_error("histogramm").find("./course list"), std::string::npos);
}

TEST(FindDay, ListsThemWhereNoneIsNear) {
    // As text, "day13" is as near to "day01" and "day12"; neither is what was meant.
    for (const char* name : {"day13", "2", "99", "foo", ""}) {
        EXPECT_EQ(usage_error(name),
                  fmt::format("there is no day '{}'. All of them: day00, day01, day05, day12, "
                              "gemm_ladder (./course list)",
                              name));
    }
}

TEST(FindDay, TheLadderHasNoNumber) {
    EXPECT_NE(usage_error("-1"), "no error");
    EXPECT_NE(usage_error("day-1"), "no error");
    EXPECT_NE(usage_error(""), "no error");
    EXPECT_NE(usage_error("day"), "no error");
    EXPECT_NE(usage_error("99999999999999999999"), "no error");
}

TEST(FindReadyDay, RefusesAPlannedDay) {
    const Calendar days = calendar();
    EXPECT_EQ(find_ready_day(days, "1").directory, "day01_vector_add");
    EXPECT_THROW(find_ready_day(days, "matmul_tiled"), UsageError);
}

TEST(FindDayWithVersions, RefusesADayOfWholePrograms) {
    const Calendar days = calendar();
    EXPECT_EQ(find_day_with_versions(days, "1", "inspect").directory, "day01_vector_add");
    try {
        find_day_with_versions(days, "day00", "inspect");
        FAIL() << "day00 has no versions";
    } catch (const UsageError& error) {
        EXPECT_STREQ(error.what(),
                     "day00_first_program has whole programs and no versions: there is nothing to inspect. "
                     "Run it: ./course run day00");
    }
}

TEST(LoadCalendar, ReadsWhatTheBuildWrites) {
    const TemporaryDirectory directory;
    const auto file = directory.write("days.json", R"({"backend": "gpu", "build_type": "Release", "days": [
        {"directory": "day01_vector_add", "number": 1, "topic": "vector_add", "title": "Vector addition",
         "chapter": "2, 3", "ready": true},
        {"directory": "day00_p", "number": 0, "topic": "p", "title": "P", "chapter": "2", "ready": true,
         "programs": [["hello"], ["add", "31"]]}]})");
    const Calendar read = load_calendar(file);
    EXPECT_EQ(read.backend, "gpu");
    EXPECT_EQ(read.build_type, "Release");
    ASSERT_EQ(read.days.size(), 2U);
    EXPECT_TRUE(read.days[0].programs.empty());
    EXPECT_EQ(read.days[1].programs, (std::vector<std::vector<std::string>>{{"hello"}, {"add", "31"}}));
    EXPECT_EQ(read.days[0].topic, "vector_add");
    EXPECT_EQ(read.days[0].chapter, "2, 3");
    EXPECT_TRUE(read.days[0].ready);
}

TEST(LoadCalendar, RefusesWhatIsNotACalendar) {
    const TemporaryDirectory directory;
    EXPECT_THROW(load_calendar(directory.path() / "missing.json"), std::runtime_error);
    EXPECT_THROW(load_calendar(directory.write("a.json", "{")), std::runtime_error);
    EXPECT_THROW(load_calendar(directory.write("b.json", R"({"backend": "cpu"})")), std::runtime_error);
}

}  // namespace
}  // namespace course::tool
