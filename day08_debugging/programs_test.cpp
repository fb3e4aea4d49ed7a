// Day 8's programs: where errors are reported, how each crime fails, and what its repair prints.
#include "common/test/programs_test.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using course::ProgramsTest;
using course::ShellOutcome;

// Of "cudaFree      cudaSuccess", the word behind `what`.
std::string result_of(const ShellOutcome& outcome, const std::string& what) {
    std::size_t at = outcome.text.find("\n" + what + "  ");
    if (at == std::string::npos) return "no line '" + what + "' in\n" + outcome.text;
    at = outcome.text.find_first_not_of(' ', at + 1 + what.size());
    return outcome.text.substr(at, outcome.text.find_first_of(" :\n", at) - at);
}

bool says(const ShellOutcome& outcome, const std::string& text) {
    return outcome.text.find(text) != std::string::npos;
}

// --- error codes ---------------------------------------------------------------------------------

using ErrorCodes = ProgramsTest;

TEST_F(ErrorCodes, OfARefusedCallAreReturnedStoredAndCleared) {
    ShellOutcome outcome = run("error_codes");
    outcome.text.insert(0, "\n");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    EXPECT_EQ(result_of(outcome, "cudaMalloc of 2^60 bytes"), "cudaErrorMemoryAllocation");
    EXPECT_EQ(result_of(outcome, "cudaPeekAtLastError: read, kept"), "cudaErrorMemoryAllocation");
    EXPECT_EQ(result_of(outcome, "cudaGetLastError: read, cleared"), "cudaErrorMemoryAllocation");
    EXPECT_EQ(result_of(outcome, "cudaGetLastError: again"), "cudaSuccess");
    EXPECT_EQ(result_of(outcome, "cudaMalloc of 4096 bytes"), "cudaSuccess");
}

TEST_F(ErrorCodes, OfARefusedLaunchAreNotThoseOfTheWait) {
    const ShellOutcome outcome = run("error_codes");
    EXPECT_EQ(result_of(outcome, "cudaDeviceSynchronize after the launch"), "cudaSuccess");
    const std::string refusal = result_of(outcome, "cudaGetLastError after the launch");
    // Which of the two it is, is the driver's choice.
    EXPECT_TRUE(refusal == "cudaErrorInvalidConfiguration" || refusal == "cudaErrorInvalidValue") << refusal;
    EXPECT_EQ(result_of(outcome, "the launch with 1024 threads"), "cudaSuccess");
    EXPECT_EQ(result_of(outcome, "cudaDeviceSynchronize"), "cudaSuccess");
    EXPECT_EQ(result_of(outcome, "cudaFree"), "cudaSuccess");
}

// --- asynchronous errors -------------------------------------------------------------------------

using Asynchronous = ProgramsTest;

TEST_F(Asynchronous, TheFirstCallThatWaitsReportsTheKernelsError) {
    const ShellOutcome outcome = run("asynchronous", "", "CUDA_ON_CPU_STREAMS=late");
    EXPECT_EQ(result_of(outcome, "cudaGetLastError after the launch"), "cudaSuccess");
    for (const char* const call : {"cudaMemcpy", "cudaDeviceSynchronize", "cudaGetLastError", "cudaMalloc"})
        EXPECT_EQ(result_of(outcome, call), "cudaErrorIllegalAddress") << call;
    EXPECT_EQ(result_of(outcome, "cudaGetLastError: again"), "cudaSuccess");
}

TEST_F(Asynchronous, OnTheCPUTheLaunchItselfRunsTheKernel) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "a GPU runs it while the host goes on";
    const ShellOutcome outcome = run("asynchronous");
    EXPECT_EQ(result_of(outcome, "cudaGetLastError after the launch"), "cudaErrorIllegalAddress");
    EXPECT_TRUE(says(outcome, "illegal access to a null pointer")) << outcome.text;
    EXPECT_TRUE(says(outcome, "asynchronous.cu:")) << outcome.text;
}

// --- checks in a kernel --------------------------------------------------------------------------

using DeviceChecks = ProgramsTest;

TEST_F(DeviceChecks, PrintfTellsAndGoesOn) {
    const ShellOutcome outcome = run("device_checks", "printf");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    EXPECT_TRUE(says(outcome, "block 1, thread 1: in[5] is -25\n")) << outcome.text;
    EXPECT_TRUE(says(outcome, "0 1 2 3 4 ") && says(outcome, "nan 6 7 \n")) << outcome.text;
}

TEST_F(DeviceChecks, AFailedAssertionNamesThreadAndCondition) {
    const ShellOutcome outcome = run("device_checks", "assert");
    EXPECT_EQ(outcome.exit_code, 1) << outcome.text;
    EXPECT_TRUE(says(outcome, "Assertion `in[i] >= 0")) << outcome.text;
    EXPECT_TRUE(says(outcome, "thread") && says(outcome, "device_checks.cu:")) << outcome.text;
    EXPECT_TRUE(says(outcome, "cudaDeviceSynchronize: device-side assert triggered\n")) << outcome.text;
}

TEST_F(DeviceChecks, ATrapIsAFailedLaunch) {
    const ShellOutcome outcome = run("device_checks", "trap");
    EXPECT_EQ(outcome.exit_code, 1) << outcome.text;
    EXPECT_TRUE(says(outcome, "cudaDeviceSynchronize: unspecified launch failure\n")) << outcome.text;
    expect_fails("device_checks", "", 2, "usage: device_checks printf|assert|trap");
}

// --- the crimes, repaired ------------------------------------------------------------------------

class Repaired : public ProgramsTest {
  protected:
    // Prints `text` for `arguments`, frees what it allocates, and reports a launch that is refused.
    void expect_reliable(const std::string& program, const std::string& arguments, const std::string& text) {
        if (!expect_prints(program, arguments, text) || !course::is_cpu_stand_in()) return;
        expect_no_leaks(program, arguments);
        const ShellOutcome refused = run(program, arguments, "CUDA_ON_CPU_REFUSE=launch:1");
        EXPECT_TRUE(refused.exit_code == 1 && says(refused, program + ".cu:"))
            << "a launch was refused, and the program did not report it: does CUDA_CHECK(cudaGetLastError()) "
            << "follow the launch? Got exit code " << refused.exit_code << " and\n"
            << refused.text;
    }
};

using Seats = Repaired;
using Blur = Repaired;
using Smooth = Repaired;
using Totals = Repaired;
using Average = Repaired;
using Photos = Repaired;

TEST_F(Seats, GuestsWithoutASeatGetNone) {
    expect_prints("seats", "1", "guest 0 sits in front, guest 0 at the back, 0 seats are free\n");
    expect_prints("seats", "51", "guest -1 sits in front, guest 0 at the back, 1 seats are free\n");
    expect_reliable("seats", "1000", "guest 999 sits in front, guest 0 at the back, 10 seats are free\n");
}

TEST_F(Blur, TheImageIsBlurred) {
    expect_prints("blur", "0", "radius 0: the first pixel is 0.00, the last one 1.00, their mean 105.50\n");
    expect_reliable("blur", "3",
                    "radius 3: the first pixel is 67.50, the last one 71.50, their mean 105.59\n");
}

TEST_F(Smooth, NoSampleDependsOnTheOrderOfThreads) {
    for (const std::string n : {"1", "2", "257", "5003"})
        expect_prints("smooth", n, "0 of " + n + " samples are wrong\n");
    expect_reliable("smooth", "1000", "0 of 1000 samples are wrong\n");
}

TEST_F(Totals, EachYearBeginsWithNothing) {
    expect_reliable("totals", "3",
                    "year 1: the best shop sold 1200, all together 606000\n"
                    "year 2: the best shop sold 2400, all together 1212000\n"
                    "year 3: the best shop sold 3600, all together 1818000\n");
}

TEST_F(Average, AnyNumberOfSamplesHasItsMeans) {
    expect_prints("average", "1", "0.0\n");
    expect_prints("average", "512", "127.5\n383.5\n");
    expect_reliable("average", "1000", "127.5\n383.5\n639.5\n883.5\n");
    const ShellOutcome outcome = run("average", "1000", "CUDA_ON_CPU_BARRIERS=whole");
    EXPECT_EQ(outcome.exit_code, 0) << "a barrier is still in a branch\n" << outcome.text;
}

TEST_F(Photos, EachHasMemoryOfItsOwn) {
    expect_reliable("photos", "2", "the first photo has brightness 2, the second one 4\n");
}

// --- the crimes, as they are reported ------------------------------------------------------------

using Crimes = ProgramsTest;

TEST_F(Crimes, OfSeatsTheCopyBehindTheKernelIsBlamed) {
    const ShellOutcome outcome = run("crimes_seats");
    EXPECT_EQ(outcome.exit_code, 1) << outcome.text;
    EXPECT_TRUE(says(outcome, "cudaMemcpy(guests.data()")) << outcome.text;
    EXPECT_TRUE(says(outcome, "an illegal memory access was encountered")) << outcome.text;
}

TEST_F(Crimes, OfBlurEveryRadiusLeavesTheImageAsItIs) {
    for (const std::string radius : {"1", "9"})
        expect_prints(
            "crimes_blur", radius,
            "radius " + radius + ": the first pixel is 0.00, the last one 1.00, their mean 105.50\n");
}

TEST_F(Crimes, OfSmoothSomeSamplesAreWrong) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "on a GPU another number in each run, which may be 0";
    const ShellOutcome up = run("crimes_smooth", "1000", "CUDA_ON_CPU_ORDER=ascending");
    EXPECT_TRUE(up.exit_code == 1 && says(up, "997 of 1000 samples are wrong\n")) << up.text;
    const ShellOutcome down = run("crimes_smooth", "1000", "CUDA_ON_CPU_ORDER=descending");
    EXPECT_TRUE(down.exit_code == 1 && says(down, "994 of 1000 samples are wrong\n")) << down.text;
}

TEST_F(Crimes, OfTotalsTheYearsAreWrong) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "memory that nothing has written may hold zeros on a GPU";
    const ShellOutcome outcome = run("crimes_totals");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    EXPECT_FALSE(says(outcome, "year 3: the best shop sold 3600,")) << outcome.text;
}

TEST_F(Crimes, OfAverageOnlyWholeBlocksAreRight) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "undefined on a GPU";
    expect_prints("crimes_average", "512", "127.5\n383.5\n");
    expect_fails("crimes_average", "1000", 1, "threads of one block wait at different barriers");
}

TEST_F(Crimes, OfPhotosACopyHasAnInvalidArgument) {
    const ShellOutcome outcome = run("crimes_photos");
    EXPECT_EQ(outcome.exit_code, 1) << outcome.text;
    EXPECT_TRUE(says(outcome, "cudaMemcpy(pixels.data()")) << outcome.text;
    EXPECT_TRUE(says(outcome, "invalid argument")) << outcome.text;
}

}  // namespace
