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
            {{"day01_vector_add", 1, "vector_add", "Vector addition"},
             {"day05_matmul_tiled", 5, "matmul_tiled", "Tiled matrix multiplication"},
             {"day12_histogram", 12, "histogram", "Histogram"},
             {"gemm_ladder", std::nullopt, "gemm_ladder", "From naive SGEMM to cuBLAS"}}};
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
}

TEST(FindDay, SuggestsTheNearestName) {
    EXPECT_NE(usage_error("vektor_ad").find("nearest is day01_vector_add"), std::string::npos);
    EXPECT_NE(usage_error("histogramm").find("nearest is day12_histogram"), std::string::npos);
    EXPECT_NE(usage_error("gem_lader").find("nearest is gemm_ladder"), std::string::npos);
    EXPECT_NE(usage_error("histogramm").find("./course list"), std::string::npos);
}

TEST(FindDay, ListsThemWhereNoneIsNear) {
    // As text, "day13" is near to "day01" and "day12", but neither is a useful suggestion.
    for (const char* name : {"day13", "2", "99", "foo", ""}) {
        EXPECT_EQ(usage_error(name), fmt::format("there is no day '{}'. All of them: day01, day05, day12, "
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

TEST(FindDay, ZeroIsTheNumberOfDayZero) {
    Calendar days = calendar();
    days.days.push_back({"day00_first_program", 0, "first_program", "First programs"});
    for (const char* name : {"0", "00", "day00"})
        EXPECT_EQ(find_day(days, name).directory, "day00_first_program") << name;
    EXPECT_EQ(short_name(days.days.back()), "day00");
    EXPECT_EQ(short_name(find_day(days, "gemm_ladder")), "gemm_ladder");
}

TEST(FindDayWithVersions, RefusesADayOfWholePrograms) {
    Calendar days = calendar();
    days.days.push_back(
        {.directory = "day00_first_program", .number = 0, .topic = "first_program", .programs = {{"hello"}}});
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
         "question": "Which thread?", "chapters_4e": "2, 3", "chapters_5e": "3", "hours": 1.5, "beyond_hours": 2, "beside": "add 1024"},
        {"directory": "gemm_ladder", "number": null, "topic": "gemm_ladder", "title": "The ladder"},
        {"directory": "day00_p", "number": 0, "topic": "p", "title": "P", "programs": [["hello"], ["add", "31"]]}]})");
    const Calendar read = load_calendar(file);
    EXPECT_EQ(read.backend, "gpu");
    EXPECT_EQ(read.build_type, "Release");
    ASSERT_EQ(read.days.size(), 3U);
    EXPECT_TRUE(read.days[0].programs.empty());
    EXPECT_EQ(read.days[2].programs, (std::vector<std::vector<std::string>>{{"hello"}, {"add", "31"}}));
    EXPECT_EQ(read.days[0].topic, "vector_add");
    EXPECT_EQ(read.days[0].number, 1);
    EXPECT_EQ(read.days[0].question, "Which thread?");
    EXPECT_EQ(read.days[0].chapters_4e, "2, 3");
    EXPECT_EQ(read.days[0].chapters_5e, "3");
    EXPECT_EQ(read.days[0].hours, 1.5);
    EXPECT_EQ(read.days[0].beyond_hours, 2);
    EXPECT_EQ(read.days[1].beyond_hours, 0);
    EXPECT_EQ(read.days[0].beside, "add 1024");
    EXPECT_FALSE(read.days[1].number);
}

TEST(LoadCalendar, RefusesWhatIsNotACalendar) {
    const TemporaryDirectory directory;
    EXPECT_THROW(load_calendar(directory.path() / "missing.json"), std::runtime_error);
    EXPECT_THROW(load_calendar(directory.write("a.json", "{")), std::runtime_error);
    EXPECT_THROW(load_calendar(directory.write("b.json", R"({"backend": "cpu"})")), std::runtime_error);
}

}  // namespace
}  // namespace course::tool
