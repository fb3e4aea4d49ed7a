// NCCL on the CPU: ranks of one process, each with a device of its own, and ranks of several
// processes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

// Set before the stand-in reads it.
const int environment_is_set = setenv("CUDA_ON_CPU_DEVICES", "4", 1) + setenv("CUDA_ON_CPU_TIMEOUT", "2", 1);

constexpr int kRanks = 3;

// The communicators of all ranks in one process, and a stream for each.
class Ranks : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(ncclCommInitAll(comms, kRanks, nullptr), ncclSuccess);
        for (int rank = 0; rank < kRanks; ++rank) {
            ASSERT_EQ(cudaSetDevice(rank), cudaSuccess);
            ASSERT_EQ(cudaStreamCreate(&streams[rank]), cudaSuccess);
        }
    }
    void TearDown() override {
        for (int rank = 0; rank < kRanks; ++rank) {
            ASSERT_EQ(cudaSetDevice(rank), cudaSuccess);
            static_cast<void>(cudaStreamDestroy(streams[rank]));
            EXPECT_EQ(ncclCommDestroy(comms[rank]), ncclSuccess);
        }
        EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    }
    // Calls `call(rank)` for all ranks in one group, and waits.
    void in_group(const std::function<ncclResult_t(int)>& call) {
        ASSERT_EQ(ncclGroupStart(), ncclSuccess);
        for (int rank = 0; rank < kRanks; ++rank)
            EXPECT_EQ(call(rank), ncclSuccess) << "rank " << rank;
        ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
        for (int rank = 0; rank < kRanks; ++rank)
            EXPECT_EQ(cudaStreamSynchronize(streams[rank]), cudaSuccess) << "rank " << rank;
    }
    // The messages of a call that cannot complete; the streams have an error afterwards.
    std::string report_of(const std::function<void()>& call) {
        testing::internal::CaptureStderr();
        call();
        for (int rank = 0; rank < kRanks; ++rank) {
            EXPECT_EQ(cudaSetDevice(rank), cudaSuccess);
            static_cast<void>(cudaStreamSynchronize(streams[rank]));
            static_cast<void>(cudaDeviceReset());
        }
        return testing::internal::GetCapturedStderr();
    }
    ncclComm_t comms[kRanks] = {};
    cudaStream_t streams[kRanks] = {};
};

// An array on the device of a rank.
template <class T>
class Array {
  public:
    Array(int rank, const std::vector<T>& values) : size_(values.size()) {
        EXPECT_EQ(cudaSetDevice(rank), cudaSuccess);
        EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data_), size_ * sizeof(T)), cudaSuccess);
        EXPECT_EQ(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
    }
    ~Array() { static_cast<void>(cudaFree(data_)); }
    Array(Array&& other) noexcept : size_(other.size_), data_(std::exchange(other.data_, nullptr)) {}
    T* data() { return data_; }
    std::vector<T> read() const {
        std::vector<T> values(size_);
        EXPECT_EQ(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDefault), cudaSuccess);
        return values;
    }

  private:
    std::size_t size_;
    T* data_ = nullptr;
};

template <class T>
std::vector<T> values_of(int rank, std::size_t count) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = static_cast<T>((rank + 2) * static_cast<int>(i % 5 + 1));
    return values;
}

template <class T>
std::vector<Array<T>> arrays(std::size_t count) {
    std::vector<Array<T>> all;
    for (int rank = 0; rank < kRanks; ++rank)
        all.emplace_back(rank, values_of<T>(rank, count));
    return all;
}

template <class T>
T result_of(T a, T b, T c, ncclRedOp_t op) {
    switch (op) {
        case ncclProd:
            return static_cast<T>(a * b * c);
        case ncclMax:
            return c;
        case ncclMin:
            return a;
        case ncclAvg:
            return static_cast<T>((a + b + c) / 3);
        default:
            return static_cast<T>(a + b + c);
    }
}

template <class T>
T expected(std::size_t i, ncclRedOp_t op) {
    return result_of(values_of<T>(0, i + 1)[i], values_of<T>(1, i + 1)[i], values_of<T>(2, i + 1)[i], op);
}

// More than one chunk of 256 KiB, and not a multiple of it.
constexpr std::size_t kMany = 70001;

TEST_F(Ranks, AllReduceAddsAllRanks) {
    auto data = arrays<float>(kMany);
    in_group([&](int rank) {
        return ncclAllReduce(data[rank].data(), data[rank].data(), kMany, ncclFloat, ncclSum, comms[rank],
                             streams[rank]);
    });
    for (int rank = 0; rank < kRanks; ++rank) {
        const std::vector<float> got = data[rank].read();
        for (std::size_t i = 0; i < kMany; i += i < 20 ? 1 : 997)
            ASSERT_EQ(got[i], expected<float>(i % 5, ncclSum)) << "rank " << rank << ", element " << i;
        ASSERT_EQ(got.back(), expected<float>((kMany - 1) % 5, ncclSum));
    }
}

template <class T>
void check_reductions(Ranks*, ncclDataType_t type, ncclComm_t* comms, cudaStream_t* streams) {
    for (const ncclRedOp_t op : {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg}) {
        auto send = arrays<T>(10);
        auto receive = arrays<T>(10);
        ASSERT_EQ(ncclGroupStart(), ncclSuccess);
        for (int rank = 0; rank < kRanks; ++rank) {
            ASSERT_EQ(ncclReduce(send[rank].data(), receive[rank].data(), 10, type, op, 1, comms[rank],
                                 streams[rank]),
                      ncclSuccess);
        }
        ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
        for (int rank = 0; rank < kRanks; ++rank)
            ASSERT_EQ(cudaStreamSynchronize(streams[rank]), cudaSuccess);
        const std::vector<T> got = receive[1].read();
        for (std::size_t i = 0; i < got.size(); ++i)
            EXPECT_EQ(got[i], expected<T>(i, op)) << "type " << type << ", op " << op << ", element " << i;
        EXPECT_EQ(receive[0].read(), values_of<T>(0, 10)) << "only the root receives";
    }
}

TEST_F(Ranks, ReduceInEachTypeAndOperation) {
    check_reductions<std::int8_t>(this, ncclInt8, comms, streams);
    check_reductions<std::uint8_t>(this, ncclUint8, comms, streams);
    check_reductions<std::int32_t>(this, ncclInt32, comms, streams);
    check_reductions<std::uint32_t>(this, ncclUint32, comms, streams);
    check_reductions<std::int64_t>(this, ncclInt64, comms, streams);
    check_reductions<std::uint64_t>(this, ncclUint64, comms, streams);
    check_reductions<float>(this, ncclFloat32, comms, streams);
    check_reductions<double>(this, ncclFloat64, comms, streams);
}

// Types of 16 and 8 bits are added and multiplied in float and rounded once at the end. An e4m3
// result that is too large becomes 448.
template <class T>
void check_short_floats(ncclDataType_t type, ncclComm_t* comms, cudaStream_t* streams) {
    for (const ncclRedOp_t op : {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg}) {
        std::vector<Array<T>> data;
        for (int rank = 0; rank < kRanks; ++rank) {
            const std::vector<float> values = values_of<float>(rank, 10);
            std::vector<T> rounded;
            for (const float value : values)
                rounded.push_back(static_cast<T>(value));
            data.emplace_back(rank, rounded);
        }
        ASSERT_EQ(ncclGroupStart(), ncclSuccess);
        for (int rank = 0; rank < kRanks; ++rank)
            ASSERT_EQ(
                ncclAllReduce(data[rank].data(), data[rank].data(), 10, type, op, comms[rank], streams[rank]),
                ncclSuccess);
        ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
        for (int rank = 0; rank < kRanks; ++rank) {
            ASSERT_EQ(cudaStreamSynchronize(streams[rank]), cudaSuccess);
            const std::vector<T> got = data[rank].read();
            for (std::size_t i = 0; i < got.size(); ++i) {
                const auto of = [i](int r) {
                    return static_cast<float>(static_cast<T>(values_of<float>(r, 10)[i]));
                };
                const auto expected_value = static_cast<T>(result_of(of(0), of(1), of(2), op));
                EXPECT_EQ(static_cast<float>(got[i]), static_cast<float>(expected_value))
                    << "type " << type << ", op " << op << ", element " << i << ", rank " << rank;
            }
        }
    }
}

TEST_F(Ranks, ReduceTypesOf16And8Bits) {
    check_short_floats<__half>(ncclFloat16, comms, streams);
    check_short_floats<__nv_bfloat16>(ncclBfloat16, comms, streams);
    check_short_floats<__nv_fp8_e4m3>(ncclFloat8e4m3, comms, streams);
    check_short_floats<__nv_fp8_e5m2>(ncclFloat8e5m2, comms, streams);
}

TEST_F(Ranks, BroadcastGatherAndScatter) {
    auto data = arrays<int>(kMany);
    auto gathered = arrays<int>(4 * kRanks);
    auto scattered = arrays<int>(30000);
    auto whole = arrays<int>(30000 * kRanks);
    in_group([&](int rank) {
        return ncclBroadcast(data[rank].data(), data[rank].data(), kMany, ncclInt, 2, comms[rank],
                             streams[rank]);
    });
    in_group([&](int rank) {
        return ncclAllGather(whole[rank].data(), gathered[rank].data(), 4, ncclInt, comms[rank],
                             streams[rank]);
    });
    in_group([&](int rank) {
        return ncclReduceScatter(whole[rank].data(), scattered[rank].data(), 30000, ncclInt, ncclSum,
                                 comms[rank], streams[rank]);
    });
    for (int rank = 0; rank < kRanks; ++rank) {
        EXPECT_EQ(data[rank].read(), values_of<int>(2, kMany)) << "rank " << rank;
        const std::vector<int> all = gathered[rank].read();
        for (int i = 0; i < 4 * kRanks; ++i)
            EXPECT_EQ(all[static_cast<std::size_t>(i)], (i / 4 + 2) * (i % 4 + 1)) << "rank " << rank;
        const std::vector<int> part = scattered[rank].read();
        for (std::size_t i = 0; i < part.size(); i += 101)
            EXPECT_EQ(part[i], 9 * static_cast<int>((static_cast<std::size_t>(rank) * 30000 + i) % 5 + 1));
    }
}

// A halo exchange: each rank sends to the next and receives from the previous one.
TEST_F(Ranks, SendAndReceiveInARing) {
    auto send = arrays<int>(kMany);
    auto receive = arrays<int>(kMany);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < kRanks; ++rank) {
        ASSERT_EQ(
            ncclSend(send[rank].data(), kMany, ncclInt, (rank + 1) % kRanks, comms[rank], streams[rank]),
            ncclSuccess);
        ASSERT_EQ(ncclRecv(receive[rank].data(), kMany, ncclInt, (rank + kRanks - 1) % kRanks, comms[rank],
                           streams[rank]),
                  ncclSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    for (int rank = 0; rank < kRanks; ++rank) {
        ASSERT_EQ(cudaStreamSynchronize(streams[rank]), cudaSuccess);
        EXPECT_EQ(receive[rank].read(), values_of<int>((rank + kRanks - 1) % kRanks, kMany));
    }
}

// The two sends of a step need the two receives, which are calls on other streams.
TEST_F(Ranks, AGroupMayUseSeveralStreams) {
    auto send = arrays<int>(100);
    auto receive = arrays<int>(100);
    cudaStream_t second[2] = {};
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (const int rank : {0, 1}) {
        ASSERT_EQ(cudaSetDevice(rank), cudaSuccess);
        ASSERT_EQ(cudaStreamCreate(&second[rank]), cudaSuccess);
        // In the second stream, but before the send.
        ASSERT_EQ(cudaMemsetAsync(send[rank].data(), rank + 1, 100 * sizeof(int), second[rank]), cudaSuccess);
        ASSERT_EQ(ncclSend(send[rank].data(), 100, ncclInt, 1 - rank, comms[rank], streams[rank]),
                  ncclSuccess);
        ASSERT_EQ(ncclRecv(receive[rank].data(), 100, ncclInt, 1 - rank, comms[rank], second[rank]),
                  ncclSuccess);
    }
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
    for (const int rank : {0, 1}) {
        EXPECT_EQ(cudaStreamSynchronize(second[rank]), cudaSuccess);
        EXPECT_EQ(receive[rank].read(), std::vector<int>(100, (2 - rank) * 0x01010101)) << "rank " << rank;
        EXPECT_EQ(cudaStreamDestroy(second[rank]), cudaSuccess);
    }
}

TEST_F(Ranks, EachMayHaveAHostThread) {
    auto data = arrays<double>(100);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) {
        threads.emplace_back([&, rank] {
            EXPECT_EQ(cudaSetDevice(rank), cudaSuccess);
            for (int round = 0; round < 5; ++round)
                EXPECT_EQ(ncclAllReduce(data[rank].data(), data[rank].data(), 100, ncclDouble, ncclMax,
                                        comms[rank], streams[rank]),
                          ncclSuccess);
            EXPECT_EQ(cudaStreamSynchronize(streams[rank]), cudaSuccess);
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    for (int rank = 0; rank < kRanks; ++rank)
        EXPECT_EQ(data[rank].read(), values_of<double>(2, 100));
}

// --- Mistakes ------------------------------------------------------------------------------------

TEST_F(Ranks, DifferentCountsAreReported) {
    auto data = arrays<float>(16);
    const std::string report = report_of([&] {
        ncclGroupStart();
        for (int rank = 0; rank < kRanks; ++rank)
            ncclAllReduce(data[rank].data(), data[rank].data(), rank == 1 ? 8 : 16, ncclFloat, ncclSum,
                          comms[rank], streams[rank]);
        ncclGroupEnd();
    });
    for (const char* part : {"call 1", "ncclAllReduce of 8 ncclFloat32", "ncclAllReduce of 16 ncclFloat32"})
        EXPECT_NE(report.find(part), std::string::npos) << report;
}

TEST_F(Ranks, AMissingRankIsReported) {
    auto data = arrays<float>(16);
    const std::string report = report_of([&] {
        ncclGroupStart();
        for (const int rank : {0, 2})
            ncclAllReduce(data[rank].data(), data[rank].data(), 16, ncclFloat, ncclSum, comms[rank],
                          streams[rank]);
        ncclGroupEnd();
    });
    for (const char* part :
         {"ncclAllReduce, call 1", "has waited 2 s", "rank 1, which has not made this call"})
        EXPECT_NE(report.find(part), std::string::npos) << report;
}

TEST_F(Ranks, ASendWithoutAReceiveIsReported) {
    auto data = arrays<float>(16);
    const std::string report =
        report_of([&] { ncclSend(data[0].data(), 16, ncclFloat, 1, comms[0], streams[0]); });
    EXPECT_NE(
        report.find("rank 0: ncclSend to rank 1, call 1 has waited 2 s for rank 1, which has not called "
                    "ncclRecv from rank 0"),
        std::string::npos)
        << report;
}

TEST_F(Ranks, SendsThatWaitForEachOtherAreReported) {
    auto data = arrays<float>(16);
    const std::string report = report_of([&] {
        std::vector<std::thread> threads;
        for (const int rank : {0, 1}) {
            threads.emplace_back([&, rank] {
                ncclSend(data[rank].data(), 16, ncclFloat, 1 - rank, comms[rank], streams[rank]);
                ncclRecv(data[rank].data(), 16, ncclFloat, 1 - rank, comms[rank], streams[rank]);
            });
        }
        for (std::thread& thread : threads)
            thread.join();
    });
    for (const char* part : {"ncclSend to rank", "which waits in ncclSend", "ncclGroupStart"})
        EXPECT_NE(report.find(part), std::string::npos) << report;
}

TEST_F(Ranks, AHostThreadOfSeveralNeedsAGroup) {
    auto data = arrays<float>(16);
    const std::string report = report_of([&] {
        EXPECT_EQ(ncclAllReduce(data[0].data(), data[0].data(), 16, ncclFloat, ncclSum, comms[0], streams[0]),
                  ncclSuccess);
        EXPECT_EQ(ncclAllReduce(data[1].data(), data[1].data(), 16, ncclFloat, ncclSum, comms[1], streams[1]),
                  ncclInvalidUsage);
    });
    for (const char* part : {"ncclAllReduce is called for rank 1", "for rank 0, outside a group"})
        EXPECT_NE(report.find(part), std::string::npos) << report;
}

TEST_F(Ranks, WrongArgumentsAreRefused) {
    auto data = arrays<float>(16);
    testing::internal::CaptureStderr();
    EXPECT_EQ(ncclSend(data[0].data(), 17, ncclFloat, 1, comms[0], streams[0]), ncclInvalidArgument);
    EXPECT_EQ(ncclSend(data[1].data(), 16, ncclFloat, 1, comms[0], streams[0]), ncclInvalidArgument);
    EXPECT_EQ(ncclSend(data[0].data(), 16, ncclFloat, kRanks, comms[0], streams[0]), ncclInvalidArgument);
    EXPECT_EQ(ncclSend(data[0].data(), 16, ncclFloat, 1, comms[0], streams[1]), ncclInvalidUsage);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    const std::string report = testing::internal::GetCapturedStderr();
    for (const char* part : {"expected 68 bytes", "is memory of device 1; the rank's device is 0",
                             "the stream belongs to device 1"})
        EXPECT_NE(report.find(part), std::string::npos) << report;
}

// 2^62 floats are 2^64 bytes, which wrap to 0 in 64-bit arithmetic.
TEST_F(Ranks, ACountOfMoreThanAllMemoryIsRefused) {
    auto data = arrays<float>(16);
    testing::internal::CaptureStderr();
    EXPECT_EQ(ncclAllReduce(data[1].data(), data[1].data(), std::size_t{1} << 62, ncclFloat, ncclSum,
                            comms[1], streams[1]),
              ncclInvalidArgument);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("the count of rank 1 is 4611686018427387904"),
              std::string::npos);
}

// In-place buffers have only one valid position; other buffers must not overlap.
TEST_F(Ranks, BuffersThatOverlapAreRefused) {
    auto data = arrays<float>(16 * kRanks);
    const auto gather = [&](int rank, std::size_t from) {
        return ncclAllGather(data[rank].data() + from, data[rank].data(), 16, ncclFloat, comms[rank],
                             streams[rank]);
    };
    const auto scatter = [&](int rank, std::size_t to) {
        return ncclReduceScatter(data[rank].data(), data[rank].data() + to, 16, ncclFloat, ncclSum,
                                 comms[rank], streams[rank]);
    };
    testing::internal::CaptureStderr();
    EXPECT_EQ(
        ncclAllReduce(data[2].data(), data[2].data() + 15, 16, ncclFloat, ncclSum, comms[2], streams[2]),
        ncclInvalidArgument);
    EXPECT_EQ(gather(1, 0), ncclInvalidArgument);
    EXPECT_EQ(scatter(2, 0), ncclInvalidArgument);
    const std::string report = testing::internal::GetCapturedStderr();
    for (const char* part :
         {"ncclAllReduce: the buffers of rank 2 overlap", "ncclAllGather: the buffers of rank 1 overlap",
          "send = receive + rank * count", "send = receive - rank * count"})
        EXPECT_NE(report.find(part), std::string::npos) << report;
    in_group([&](int rank) { return gather(rank, static_cast<std::size_t>(rank) * 16); });
    in_group([&](int rank) { return scatter(rank, static_cast<std::size_t>(rank) * 16); });
    in_group([&](int rank) {
        return ncclAllReduce(data[rank].data(), data[rank].data() + 16, 16, ncclFloat, ncclSum, comms[rank],
                             streams[rank]);
    });
}

TEST_F(Ranks, MemoryFreedWithinAGroupIsReported) {
    auto data = arrays<float>(16);
    testing::internal::CaptureStderr();
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int rank = 0; rank < kRanks; ++rank)
        EXPECT_EQ(ncclAllReduce(data[rank].data(), data[rank].data(), 16, ncclFloat, ncclSum, comms[rank],
                                streams[rank]),
                  ncclSuccess);
    data.pop_back();
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
    const std::string report = testing::internal::GetCapturedStderr();
    for (const char* part : {"ncclAllReduce: the send buffer of rank 2", "which has been freed"})
        EXPECT_NE(report.find(part), std::string::npos) << report;
}

// Its calls have not been carried out yet.
TEST_F(Ranks, ACommunicatorOfAnOpenGroupIsNotDestroyed) {
    auto data = arrays<float>(16);
    testing::internal::CaptureStderr();
    in_group([&](int rank) {
        const ncclResult_t result = ncclAllReduce(data[rank].data(), data[rank].data(), 16, ncclFloat,
                                                  ncclSum, comms[rank], streams[rank]);
        EXPECT_EQ(ncclCommDestroy(comms[rank]), ncclInvalidUsage);
        return result;
    });
    const std::string report = testing::internal::GetCapturedStderr();
    EXPECT_NE(report.find("ncclCommDestroy: ncclAllReduce of rank 1 is in a group that has not ended"),
              std::string::npos)
        << report;
    EXPECT_EQ(data[0].read()[0], expected<float>(0, ncclSum));
}

TEST_F(Ranks, AGroupThatNeverEndsIsReported) {
    auto data = arrays<float>(16);
    testing::internal::CaptureStderr();
    std::thread([&] {
        EXPECT_EQ(ncclGroupStart(), ncclSuccess);
        EXPECT_EQ(ncclAllReduce(data[1].data(), data[1].data(), 16, ncclFloat, ncclSum, comms[1], streams[1]),
                  ncclSuccess);
    }).join();
    EXPECT_NE(testing::internal::GetCapturedStderr().find("ncclAllReduce of rank 1 was never carried out"),
              std::string::npos);
}

TEST(Communicators, ARankThatNeverComesIsReported) {
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    testing::internal::CaptureStderr();
    ncclComm_t comm = nullptr;
    EXPECT_EQ(ncclCommInitRank(&comm, 2, id, 0), ncclRemoteError);
    const std::string report = testing::internal::GetCapturedStderr();
    EXPECT_NE(report.find("rank 1, which has not called ncclCommInitRank"), std::string::npos) << report;
}

TEST(Communicators, TwoRanksNeedTwoDevices) {
    const int devices[] = {1, 1};
    ncclComm_t comms[2] = {};
    testing::internal::CaptureStderr();
    EXPECT_EQ(ncclCommInitAll(comms, 2, devices), ncclInvalidUsage);
    EXPECT_NE(testing::internal::GetCapturedStderr().find("ranks 0 and 1 have one device, 1"),
              std::string::npos);
}

// Within a group, ncclCommInitAll only begins to create them.
TEST(Communicators, ThoseOfAGroupAreCompleteAtItsEnd) {
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    ASSERT_EQ(ncclCommInitAll(&comm, 1, nullptr), ncclSuccess);
    testing::internal::CaptureStderr();
    EXPECT_EQ(ncclSend(nullptr, 0, ncclFloat, 0, comm, nullptr), ncclInvalidUsage);
    EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidUsage);
    const std::string report = testing::internal::GetCapturedStderr();
    for (const char* part :
         {"complete after ncclGroupEnd only", "ncclCommInitRank of rank 0 is in a group that has not ended"})
        EXPECT_NE(report.find(part), std::string::npos) << report;
    EXPECT_NE(ncclGroupEnd(), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

// --- Several processes ---------------------------------------------------------------------------

// Runs `work(rank)` in a process for each rank. Returns the exit codes.
std::vector<int> in_processes(int ranks, const std::function<int(int)>& work) {
    std::vector<pid_t> children;
    for (int rank = 0; rank < ranks; ++rank) {
        children.push_back(fork());
        if (children.back() == 0) _exit(work(rank));
    }
    std::vector<int> codes;
    for (const pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    }
    return codes;
}

// A process with several threads must not be forked.
bool has_one_thread() {
    const std::filesystem::directory_iterator threads("/proc/self/task");
    return std::distance(begin(threads), end(threads)) == 1;
}

TEST(Processes, ReduceTogether) {
    if (!has_one_thread()) GTEST_SKIP() << "expected a process for each test, as ctest starts them";
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    EXPECT_EQ(in_processes(2,
                           [&](int rank) {
                               if (cudaSetDevice(rank) != cudaSuccess) return 2;
                               ncclComm_t comm = nullptr;
                               if (ncclCommInitRank(&comm, 2, id, rank) != ncclSuccess) return 3;
                               Array<float> data(rank, values_of<float>(rank, kMany));
                               ncclAllReduce(data.data(), data.data(), kMany, ncclFloat, ncclSum, comm,
                                             nullptr);
                               if (cudaDeviceSynchronize() != cudaSuccess) return 4;
                               for (const float value : data.read()) {
                                   if (value < 5 || value > 25) return 5;
                               }
                               return ncclCommDestroy(comm) == ncclSuccess ? 0 : 6;
                           }),
              (std::vector<int>{0, 0}));
}

TEST(Processes, OneThatDiesEndsTheOthersWait) {
    if (!has_one_thread()) GTEST_SKIP() << "expected a process for each test, as ctest starts them";
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    const std::vector<int> codes = in_processes(2, [&](int rank) {
        cudaSetDevice(rank);
        ncclComm_t comm = nullptr;
        if (ncclCommInitRank(&comm, 2, id, rank) != ncclSuccess) return 3;
        if (rank == 1) return 7;
        Array<float> data(rank, values_of<float>(rank, 10));
        ncclAllReduce(data.data(), data.data(), 10, ncclFloat, ncclSum, comm, nullptr);
        return cudaDeviceSynchronize() == cudaSuccess ? 0 : 9;
    });
    EXPECT_EQ(codes, (std::vector<int>{9, 7}));
}

}  // namespace
