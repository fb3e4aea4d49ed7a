// Every version against the CPU, value by value: a fused multiply-add has one right result.
#include "copies_and_streams.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/bench/head_start.hpp"
#include "common/bench/machine.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/parallel.hpp"
#include "common/check/unwritten.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"
#include "common/test/shell_run.hpp"

namespace {

using course::DataPattern;
using day09::HostBuffer;
using day09::HostMemory;
using day09::Job;
using day09::Runner;
using day09::Version;

constexpr std::uint64_t kSeed = 2;
// Floats before and behind `out`. Odd, so that `out` is not aligned to 16 bytes.
constexpr std::size_t kGuard = 33;

std::vector<float> data(std::size_t n, std::uint64_t seed = kSeed,
                        DataPattern pattern = DataPattern::kSignedUniform) {
    return course::make_data<float>(n, pattern, seed);
}

std::vector<float> expected_of(const std::vector<float>& in, int steps) {
    std::vector<float> out(in.size());
    day09::iterate_on_cpu(in, out, steps);
    return out;
}

// Host memory of a version's kind: input, and output that begins as NaN between guards.
struct HostData {
    HostData(HostMemory memory, std::size_t n) : size(n), in(memory, n), guarded(memory, n + 2 * kGuard) {
        spoil();
    }

    void set(const std::vector<float>& values) { std::copy(values.begin(), values.end(), in.data()); }
    void spoil() { std::memset(guarded.data(), 0xFF, (size + 2 * kGuard) * sizeof(float)); }
    float* out() const { return guarded.data() + kGuard; }
    Job job(int steps, int chunks = 8) const { return {in.data(), out(), size, steps, chunks}; }

    course::VerifyResult compare(const std::vector<float>& expected) const {
        const std::vector<double> exact(expected.begin(), expected.end());
        course::VerifyResult result =
            course::verify(std::span<const float>(out(), size), exact, {.factor = 0});
        const auto untouched = [](float value) {
            std::uint32_t bits = 0;
            std::memcpy(&bits, &value, sizeof bits);
            return bits == 0xFFFFFFFF;
        };
        if (!std::all_of(guarded.data(), out(), untouched)) result.damage = "written before out";
        if (!std::all_of(out() + size, out() + size + kGuard, untouched))
            result.damage = "written behind out";
        return result;
    }

    std::size_t size;
    HostBuffer in;
    HostBuffer guarded;
};

class VersionTest : public course::DeviceTestWithParam<const Version*> {
  protected:
    void SetUp() override {
        course::DeviceTestWithParam<const Version*>::SetUp();
        if (IsSkipped()) return;
        if (const std::string reason = GetParam()->cannot_run({1 << 20, 1}); !reason.empty())
            GTEST_SKIP() << reason;
    }
    HostMemory memory() const { return GetParam()->launcher.memory; }
    bool is_one_of(std::initializer_list<const char*> names) const {
        return std::find(names.begin(), names.end(), GetParam()->name) != names.end();
    }
    // In the default stream, or in streams of its own?
    bool uses_streams() const { return !is_one_of({"pageable", "pinned", "malloc_each_time"}); }

    course::VerifyResult run(const std::vector<float>& in, int steps, int chunks) const {
        HostData host(memory(), in.size());
        host.set(in);
        Runner runner(*GetParam(), host.job(steps, chunks));
        runner.run();
        return host.compare(expected_of(in, steps));
    }
};

INSTANTIATE_TEST_SUITE_P(DayNine, VersionTest, course::each_of(day09::versions()), course::VersionName());

auto versions(std::initializer_list<const char*> names) {
    std::vector<const Version*> found;
    for (const char* name : names)
        found.push_back(&course::find_version(day09::versions(), name));
    return testing::ValuesIn(found);
}

// Versions of which nothing but the wait is refused in a capture.
class CapturableTest : public VersionTest {};
INSTANTIATE_TEST_SUITE_P(DayNine, CapturableTest,
                         versions({"pinned_async", "chunked_streams", "graph", "zero_copy"}),
                         course::VersionName());

// Versions that use the runner's device memory.
class DeviceMemoryTest : public VersionTest {};
INSTANTIATE_TEST_SUITE_P(DayNine, DeviceMemoryTest,
                         versions({"pageable", "pinned", "pinned_async", "chunked_streams", "graph"}),
                         course::VersionName());

TEST_P(VersionTest, AllSizes) {
    // Around a warp, a block, a chunk of one and of two blocks (8 chunks), and a large prime.
    for (const std::size_t n :
         {0, 1, 2, 7, 8, 9, 31, 32, 33, 255, 256, 257, 2047, 2048, 2049, 4095, 4096, 4097, 100003}) {
        const course::VerifyResult result = run(data(n, kSeed + n), 3, 8);
        EXPECT_TRUE(result.ok()) << "n = " << n << ": " << result.message();
    }
}

TEST_P(VersionTest, AllPatterns) {
    for (const DataPattern pattern : {DataPattern::kHugeNextToTiny, DataPattern::kAllEqual,
                                      DataPattern::kWithNan, DataPattern::kWithInf}) {
        const course::VerifyResult result = run(data(4097, kSeed, pattern), 3, 8);
        EXPECT_TRUE(result.ok()) << course::name(pattern) << ": " << result.message();
    }
}

// Other tests of the version run in a process of their own, which leave nothing behind themselves.
TEST_P(VersionTest, DestroysWhatItCreates) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "a GPU's driver does not tell";
    const std::string tests = std::filesystem::read_symlink("/proc/self/exe");
    const course::ShellOutcome outcome =
        course::run_in_shell("CUDA_ON_CPU_LEAKS=on env -u COURSE_TEST_REPORT '" + tests +
                             "' --gtest_filter='*.AllPatterns/" + GetParam()->name + "'");
    EXPECT_NE(outcome.text.find("[  PASSED  ] 1 test"), std::string::npos) << outcome.text;
    const std::size_t at = outcome.text.find(" never ");  // freed, or destroyed
    if (at == std::string::npos) return;
    const std::size_t begin = outcome.text.rfind('\n', at) + 1;
    ADD_FAILURE() << outcome.text.substr(begin, outcome.text.find('\n', at) - begin);
}

TEST_P(VersionTest, AnyNumberOfChunks) {
    for (const std::size_t n : {1, 5, 100, 1009}) {
        // Chunks of several blocks, of one element, and more than there are elements.
        for (const int chunks : {1, 2, 3, 4, 5, 7, 16, 99, 100, 101, 1 << 30}) {
            if (n == 1009 && chunks > 101) continue;  // a thousand copies, or nodes of a graph
            const course::VerifyResult result = run(data(n), 2, chunks);
            EXPECT_TRUE(result.ok()) << "n = " << n << ", " << chunks << " chunks: " << result.message();
        }
    }
}

TEST_P(VersionTest, AnyNumberOfSteps) {
    for (const int steps : {0, 1, 15, 16, 17, 33, 1000}) {
        const course::VerifyResult result = run(data(1009), steps, 3);
        EXPECT_TRUE(result.ok()) << steps << " steps: " << result.message();
    }
}

// What is queued, captured or cached for one run must not answer for the next.
TEST_P(VersionTest, EveryRunSeesTheInputOfItsTime) {
    constexpr std::size_t kSize = 10007;
    HostData host(memory(), kSize);
    host.set(data(kSize, 99));
    Runner runner(*GetParam(), host.job(2, 5));
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const std::vector<float> in = data(kSize, seed);
        host.set(in);
        host.spoil();
        runner.run();
        const course::VerifyResult result = host.compare(expected_of(in, 2));
        EXPECT_TRUE(result.ok()) << "run " << seed << ": " << result.message();
    }
}

TEST_P(VersionTest, PreparingRunsNothing) {
    HostData host(memory(), 1000);
    host.set(data(1000));
    const Runner runner(*GetParam(), host.job(1, 3));
    CUDA_CHECK(cudaDeviceSynchronize());
    EXPECT_EQ(host.compare(expected_of(data(1000), 1)).untouched, 1000U);
}

TEST_P(VersionTest, TwoRunnersDoNotDisturbEachOther) {
    HostData a(memory(), 3001);
    HostData b(memory(), 2999);
    a.set(data(3001, 5));
    b.set(data(2999, 6));
    Runner first(*GetParam(), a.job(4, 3));
    Runner second(*GetParam(), b.job(5, 4));
    first.run();
    second.run();
    first.run();
    EXPECT_TRUE(a.compare(expected_of(data(3001, 5), 4)).ok());
    EXPECT_TRUE(b.compare(expected_of(data(2999, 6), 5)).ok());
}

// A missing wait, seen without luck: the stream is kept busy for some milliseconds before the job.
// A version that does not wait returns at once. The CPU stand-in runs everything when it is queued,
// so this can only fail on a GPU.
TEST_P(VersionTest, NothingIsUnderWayWhenItReturns) {
    HostData host(memory(), 100003);
    const std::vector<float> in = data(100003);
    host.set(in);
    Runner runner(*GetParam(), host.job(2));
    runner.run();
    host.spoil();
    course::give_head_start(5000, uses_streams() ? runner.streams().front() : nullptr);
    runner.run();
    const course::VerifyResult result = host.compare(expected_of(in, 2));
    EXPECT_TRUE(result.ok()) << result.message();
    EXPECT_EQ(cudaStreamQuery(nullptr), cudaSuccess);
    for (const cudaStream_t stream : runner.streams())
        EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
}

// And seen on any machine: waiting for a stream that captures is an error, so a version that waits
// is refused, and one that does not is captured.
TEST_P(CapturableTest, WaitsForItsFirstStream) {
    HostData host(memory(), 1000);
    const std::vector<float> in = data(1000);
    host.set(in);
    Runner runner(*GetParam(), host.job(2));
    const cudaStream_t stream = runner.streams().front();
    const course::DeviceSpan<const float> on_device = runner.device_out();
    if (!on_device.empty())
        CUDA_CHECK(cudaMemset(const_cast<float*>(on_device.data()), 0xFF, on_device.size() * sizeof(float)));
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaError_t refused = cudaSuccess;
    try {
        runner.run();
    } catch (const course::CudaError& error) {
        refused = error.code();
    }
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    static_cast<void>(cudaGetLastError());
    EXPECT_EQ(refused, cudaErrorStreamCaptureUnsupported)
        << "no cudaStreamSynchronize for the stream where the job ends";
    EXPECT_EQ(ended, cudaErrorStreamCaptureInvalidated) << "something else than the wait was refused";
    if (graph != nullptr) CUDA_CHECK(cudaGraphDestroy(graph));
    CUDA_CHECK(cudaDeviceSynchronize());
    EXPECT_EQ(host.compare(expected_of(in, 2)).untouched, 1000U)
        << "what went to another stream was not captured, and ran";
    std::vector<float> back(on_device.size());
    course::copy_device_to_host(back.data(), back.size(), on_device.data(), back.size(), sizeof(float),
                                nullptr);
    EXPECT_TRUE(std::ranges::all_of(back, course::is_unwritten<float>))
        << "the kernel was launched on another stream, and ran";

    runner.run();  // the runner is as good as before
    EXPECT_TRUE(host.compare(expected_of(in, 2)).ok());
}

// Versions that use the default stream. Streams of the runner do not wait for it, nor it for them.
class DefaultStreamTest : public VersionTest {};
INSTANTIATE_TEST_SUITE_P(DayNine, DefaultStreamTest, versions({"pageable", "pinned", "malloc_each_time"}),
                         course::VersionName());

// What goes to a stream of the runner would be captured instead of running. On a GPU a capture and
// the default stream do not go together; there EveryRunSeesTheInputOfItsTime finds the race.
TEST_P(DefaultStreamTest, LeavesTheOtherStreamsAlone) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "a GPU refuses the default stream during a capture";
    HostData host(memory(), 1000);
    const std::vector<float> in = data(1000);
    host.set(in);
    Runner runner(*GetParam(), host.job(2));
    for (const cudaStream_t stream : runner.streams())
        CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    runner.run();
    for (const cudaStream_t stream : runner.streams()) {
        cudaGraph_t graph = nullptr;
        CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
        std::size_t nodes = 0;
        CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
        EXPECT_EQ(nodes, 0U);
        CUDA_CHECK(cudaGraphDestroy(graph));
    }
    EXPECT_TRUE(host.compare(expected_of(in, 2)).ok());
}

// Chunks that share device memory overwrite each other, but not where one is finished before the
// next begins. So this looks at the cause: afterwards the device holds all of the input and all of
// the output.
TEST_P(DeviceMemoryTest, HoldsAllOfTheDataAfterwards) {
    const std::vector<float> in = data(10007);
    HostData host(memory(), in.size());
    host.set(in);
    Runner runner(*GetParam(), host.job(2, 7));
    runner.run();
    std::vector<float> back(in.size());
    course::copy_device_to_host(back.data(), back.size(), runner.device_in().data(), in.size(), sizeof(float),
                                nullptr);
    EXPECT_TRUE(back == in)
        << "the device does not hold all of the input afterwards: do chunks share device memory?";
    course::copy_device_to_host(back.data(), back.size(), runner.device_out().data(), in.size(),
                                sizeof(float), nullptr);
    EXPECT_TRUE(back == expected_of(in, 2))
        << "the device does not hold all of the output afterwards: do chunks share device memory?";
}

// Right results need neither chunks nor streams. So this counts them: each chunk is three nodes of
// a graph, and the first one in each stream waits for no other.
class ChunksTest : public VersionTest {};
INSTANTIATE_TEST_SUITE_P(DayNine, ChunksTest, versions({"chunked_streams"}), course::VersionName());

TEST_P(ChunksTest, AreAsManyAsWantedAndInAllStreams) {
    struct {
        std::size_t n;
        int wanted;
        std::size_t chunks;
    } const cases[] = {{12, 1, 1}, {12, 4, 4}, {10, 4, 4}, {2, 4, 2}};
    for (const auto& [n, wanted, chunks] : cases) {
        HostData host(memory(), n);
        const Job job = host.job(1, wanted);
        const Runner runner(*GetParam(), job);
        const cudaStream_t stream = runner.streams()[0];
        cudaGraph_t graph = nullptr;
        std::size_t nodes = 0;
        std::size_t first_nodes = 0;
        CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        day09::queue_chunks(job, runner.device());
        CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
        CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
        CUDA_CHECK(cudaGraphGetRootNodes(graph, nullptr, &first_nodes));
        CUDA_CHECK(cudaGraphDestroy(graph));
        EXPECT_EQ(nodes, 3 * chunks) << n << " elements, " << wanted << " chunks";
        EXPECT_EQ(first_nodes, std::min(chunks, runner.streams().size()))
            << "streams with work, " << n << " elements, " << wanted << " chunks";
    }
}

TEST_P(VersionTest, GivesBackAllMemory) {
    if (!course::is_cpu_stand_in()) GTEST_SKIP() << "a GPU's driver keeps memory for the next time";
    std::size_t before = 0;
    std::size_t after = 0;
    std::size_t total = 0;
    CUDA_CHECK(cudaMemGetInfo(&before, &total));
    for (int i = 0; i < 3; ++i)
        EXPECT_TRUE(run(data(5000), 1, 3).ok());
    CUDA_CHECK(cudaMemGetInfo(&after, &total));
    EXPECT_EQ(before, after);
}

// A pool belongs to the whole program: its threshold is as before when the last runner has ended,
// in whatever order they end.
TEST(MemoryPool, HasItsOldThresholdAfterwards) {
    if (const std::string reason = course::why_no_device(); !reason.empty()) GTEST_SKIP() << reason;
    const Version& version = course::find_version(day09::versions(), "stream_ordered");
    if (!version.cannot_run({1, 1}).empty()) GTEST_SKIP() << version.cannot_run({1, 1});
    const auto threshold = [] {
        cudaMemPool_t pool = nullptr;
        std::uint64_t bytes = 0;
        CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
        CUDA_CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &bytes));
        return bytes;
    };
    const std::uint64_t before = threshold();
    HostData host(HostMemory::kPinned, 1);
    std::optional<Runner> first(std::in_place, version, host.job(1));
    std::optional<Runner> second(std::in_place, version, host.job(1));
    EXPECT_EQ(threshold(), std::numeric_limits<std::uint64_t>::max()) << "keeps all of its memory";
    first.reset();
    second.reset();
    EXPECT_EQ(threshold(), before);
}

// 2^31 bytes in each direction, and a few. A number of bytes in an int would be negative. To pin
// that much memory takes longer than the test, so versions that follow one another share it.
class LargeTest : public VersionTest {
  protected:
    static constexpr std::size_t kSize = (std::size_t{1} << 29) + 1003;
    static float input(std::size_t i) { return static_cast<float>(i % 1009); }
    static void TearDownTestSuite() { shared_.reset(); }

    const HostData& data_in(HostMemory memory) {
        if (!shared_ || shared_memory_ != memory) {
            shared_.reset();
            shared_.emplace(memory, kSize);
            shared_memory_ = memory;
            course::for_each_index(kSize, [&](std::size_t i) { shared_->in.data()[i] = input(i); });
        }
        shared_->spoil();
        return *shared_;
    }

  private:
    static inline std::optional<HostData> shared_;
    static inline HostMemory shared_memory_ = HostMemory::kPageable;
};
INSTANTIATE_TEST_SUITE_P(DayNine, LargeTest, versions({"pageable", "chunked_streams", "zero_copy"}),
                         course::VersionName());

TEST_P(LargeTest, MoreBytesThan31BitsCount) {
    if (const std::string reason = course::why_not_so_large(2 * kSize * sizeof(float)); !reason.empty())
        GTEST_SKIP() << reason;
    const HostData& host = data_in(memory());
    Runner runner(*GetParam(), host.job(1));
    runner.run();
    std::atomic<std::size_t> wrong = 0;
    course::for_each_part(kSize, [&](std::size_t begin, std::size_t end) {
        std::size_t wrong_here = 0;
        for (std::size_t i = begin; i < end; ++i)
            wrong_here += host.out()[i] == std::fma(day09::kFactor, input(i), day09::kAddend) ? 0 : 1;
        wrong += wrong_here;
    });
    EXPECT_EQ(wrong, 0U) << "of " << kSize << " elements";
}

TEST_P(VersionTest, RefusesBadArguments) {
    HostData host(memory(), 100);
    const auto refusal = [](Job job) {
        return course::refusal([&] { const Runner runner(*GetParam(), job); });
    };
    const std::string name = GetParam()->name;
    Job job = host.job(1);
    job.steps = -1;
    EXPECT_EQ(refusal(job), name + ": steps is -1; expected 0 or more");
    job = host.job(1);
    job.chunks = 0;
    EXPECT_EQ(refusal(job), name + ": chunks is 0; expected 1 or more");
    job = host.job(1);
    job.in = nullptr;
    EXPECT_EQ(refusal(job), name + ": in is null; expected 100 floats of host memory");
    job = host.job(1);
    job.out = nullptr;
    EXPECT_EQ(refusal(job), name + ": out is null; expected 100 floats of host memory");
    job = host.job(1);
    job.in = job.out + 10;
    job.n = 11;
    EXPECT_EQ(refusal(job), name + ": out overlaps in; expected no element in common");
    job.in = job.out + 11;
    EXPECT_EQ(refusal(job), "") << "out ends where in begins";
    job = {};
    EXPECT_EQ(refusal(job), "") << "nothing to do";
}

TEST_P(VersionTest, RefusesMemoryOfAnotherKind) {
    const std::string name = GetParam()->name;
    course::DeviceBuffer<float> device(100);
    const std::pair<HostMemory, std::string> kinds[] = {
        {HostMemory::kPageable, "pageable memory (malloc)"},
        {HostMemory::kPinned, "pinned memory (cudaMallocHost)"},
        {HostMemory::kManaged, "managed memory (cudaMallocManaged)"}};
    const HostData right(memory(), 100);
    std::string expected;
    for (const auto& [kind, text] : kinds)
        if (kind == memory()) expected = text;
    for (const auto& [kind, text] : kinds) {
        if (kind == memory()) continue;
        const HostData wrong(kind, 100);
        Job job = right.job(1);
        job.in = wrong.in.data();
        EXPECT_EQ(course::refusal([&] { const Runner runner(*GetParam(), job); }),
                  name + ": in is " + text + "; expected " + expected);
        job = right.job(1);
        job.out = wrong.out();
        EXPECT_EQ(course::refusal([&] { const Runner runner(*GetParam(), job); }),
                  name + ": out is " + text + "; expected " + expected);
    }
    Job job = right.job(1);
    job.out = device.data();
    EXPECT_EQ(course::refusal([&] { const Runner runner(*GetParam(), job); }),
              name + ": out is device memory (cudaMalloc); expected " + expected);

    // Memory of the right kind that ends too early. Where `malloc` ends is not known.
    if (memory() == HostMemory::kPageable) return;
    job = right.job(1);
    job.n = std::size_t{1} << 24;
    EXPECT_EQ(course::refusal([&] { const Runner runner(*GetParam(), job); }),
              name + ": in is pageable memory (malloc); expected " + expected);
}

class ForkAndJoin : public course::DeviceTest {
  protected:
    void SetUp() override {
        course::DeviceTest::SetUp();
        if (IsSkipped()) return;
        host_.emplace(HostMemory::kPinned, 1);
        runner_.emplace(course::find_version(day09::versions(), "chunked_streams"), host_->job(1));
    }
    std::optional<HostData> host_;
    std::optional<Runner> runner_;
};

// A capture notes which stream waits for which. It refuses to end while a stream has work that the
// first one does not wait for.
TEST_F(ForkAndJoin, MakeOneGraphOfAllStreams) {
    course::DeviceBuffer<float> bytes(64);
    const std::span<const cudaStream_t> streams = runner_->streams();
    CUDA_CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal));
    day09::fork_streams(runner_->device());
    for (std::size_t s = 0; s < streams.size(); ++s) {
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        CUDA_CHECK(cudaStreamIsCapturing(streams[s], &status));
        EXPECT_EQ(status, cudaStreamCaptureStatusActive) << "stream " << s << " does not wait for stream 0";
        CUDA_CHECK(cudaMemsetAsync(bytes.data() + s, 0, sizeof(float), streams[s]));
    }
    day09::join_streams(runner_->device());
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(streams[0], &graph), cudaSuccess)
        << "stream 0 does not wait for all others";
    static_cast<void>(cudaGetLastError());
    if (graph == nullptr) return;
    std::size_t nodes = 0;
    CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT_EQ(nodes, streams.size());
    CUDA_CHECK(cudaGraphDestroy(graph));
}

// Outside of a capture, where only a GPU can fail: the other streams take longer than the first
// one.
TEST_F(ForkAndJoin, LeaveNothingUnderWay) {
    const std::span<const cudaStream_t> streams = runner_->streams();
    course::give_head_start(3000, streams[0]);
    day09::fork_streams(runner_->device());
    for (const cudaStream_t stream : streams.subspan(1))
        course::give_head_start(3000, stream);
    day09::join_streams(runner_->device());
    CUDA_CHECK(cudaStreamSynchronize(streams[0]));
    for (std::size_t s = 0; s < streams.size(); ++s)
        EXPECT_EQ(cudaStreamQuery(streams[s]), cudaSuccess) << "stream " << s;
}

class Managed : public course::DeviceTest {};

TEST_F(Managed, IsRefusedWhereItWouldFillTheDevice) {
    const Version& managed = course::find_version(day09::versions(), "managed");
    if (!managed.cannot_run({1, 1}).empty()) GTEST_SKIP() << managed.cannot_run({1, 1});
    const HostData host(HostMemory::kManaged, 1);
    Job job = host.job(1);
    job.n = std::size_t{1} << 40;
    const std::string refusal = course::refusal([&] { const Runner runner(managed, job); });
    EXPECT_EQ(refusal.find("managed: in and out are 8796093022208 bytes; expected at most a quarter of the "),
              0U)
        << refusal;
}

TEST(IterateOnCpu, RoundsOnceForEachStep) {
    const std::vector<float> in = data(3000);
    const std::vector<float> out = expected_of(in, 2);
    for (std::size_t i = 0; i < in.size(); ++i) {
        const float once = std::fma(day09::kFactor, in[i], day09::kAddend);
        ASSERT_EQ(out[i], std::fma(day09::kFactor, once, day09::kAddend)) << "element " << i;
    }
}

TEST(IterateOnCpu, RefusesDifferentLengths) {
    std::vector<float> three(3);
    std::vector<float> four(4);
    EXPECT_EQ(course::refusal([&] { day09::iterate_on_cpu(three, four, 1); }),
              "iterate_on_cpu: in and out have 3 and 4 elements; expected the same number");
}

}  // namespace
