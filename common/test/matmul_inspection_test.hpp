// Inspection of matrix products: operands and expected counts, for tests of what a lesson states
// about its memory accesses.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/device/device_buffer.hpp"
#include "common/device/operands.hpp"
#include "common/test/inspection_test.hpp"

namespace course {

class MatmulInspectionTest : public testing::Test {
  protected:
    void SetUp() override {
        if (const std::string reason = why_no_inspection(); !reason.empty()) GTEST_SKIP() << reason;
    }

    // Aligned operands that consist of whole tiles of every version: at least two in each
    // direction, and more along K than a block has stages. `b_begin`: the offset of B from a
    // 16-byte aligned address, in floats.
    Operands operands(Op op_a = Op::kNone, Op op_b = Op::kNone, std::size_t b_begin = 0) const {
        const auto b = b_.span().subspan(b_begin, kN * kDepth);
        return {.a = {.first = op_a == Op::kNone ? a_.matrix(kN, kDepth) : a_.matrix(kDepth, kN)},
                .b = {.first = op_b == Op::kNone ? DeviceMatrix<const float>(b, kDepth, kN)
                                                 : DeviceMatrix<const float>(b, kN, kDepth)},
                .op_a = op_a,
                .op_b = op_b};
    }
    Batch<float> c() { return {.first = c_.matrix(kN, kN)}; }

    // Requests of all lines with asynchronous copies of `bytes` per lane to shared memory.
    static std::uint64_t copies(const Inspection& seen, unsigned bytes) {
        std::uint64_t requests = 0;
        for (const KernelInspection& kernel : seen.kernels) {
            for (const AccessLine& line : kernel.lines) {
                if (line.space == Space::kGlobal && line.operation == Operation::kAsyncCopy &&
                    line.bytes == bytes)
                    requests += line.requests;
            }
        }
        return requests;
    }
    static std::uint64_t copied_bytes(const Inspection& seen) {
        std::uint64_t bytes = 0;
        for (const KernelInspection& kernel : seen.kernels) {
            for (const AccessLine& line : kernel.lines) {
                if (line.space == Space::kGlobal && line.operation == Operation::kAsyncCopy)
                    bytes += line.bytes_used;
            }
        }
        return bytes;
    }
    static std::uint64_t written_bytes(const Inspection& seen) {
        std::uint64_t bytes = 0;
        for (const KernelInspection& kernel : seen.kernels)
            bytes += kernel.global_written_bytes;
        return bytes;
    }

    static constexpr std::size_t kN = 512;
    static constexpr std::size_t kDepth = 40;

  private:
    const std::vector<float> ones_ = std::vector<float>(kN * kDepth + 4, 1.0f);
    const DeviceBuffer<float> a_{std::span(ones_).first(kN * kDepth)};
    const DeviceBuffer<float> b_{std::span(ones_)};
    DeviceBuffer<float> c_{kN * kN};
};

}  // namespace course
