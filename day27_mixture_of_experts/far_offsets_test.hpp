// Layers of which one array has more than 2^31 elements: x, the weights, or the results. Nearly all
// of an input is NaN; only what a few tokens need has values. So an offset that is computed as an
// `int` leads to a NaN or out of the array.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/check/check.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "mixture_of_experts.hpp"

namespace day27 {

inline constexpr std::size_t kFar = (std::size_t{1} << 31) + (std::size_t{1} << 20);
// Device memory of the largest of these layers: out, and the workspace's results.
inline constexpr std::size_t kFarBytes = 2 * kFar * sizeof(float) + (std::size_t{1} << 28);

template <class T>
struct FarOffsets {
    using Launcher = void (*)(const LayerOf<T>&, Workspace&, cudaStream_t);

    // At least `elements` elements in the array that is large. Rows have a multiple of `multiple`
    // elements: with 8, rows of BF16 are aligned.
    static void expect_right(Launcher launch, std::size_t elements, std::size_t multiple = 1) {
        const auto rounded_up = [multiple](std::size_t size) {
            return (size + multiple - 1) / multiple * multiple;
        };
        const std::size_t hidden = rounded_up(65);
        expect_right_in_weights(launch, hidden, rounded_up(elements / ((kExperts - 2) * hidden) + 1));
        const std::size_t tokens = std::min(std::size_t{1} << 12, elements / 64);
        const std::size_t in_row = rounded_up(elements / tokens + 1);
        expect_right_in_rows(launch, {tokens, in_row, 8, 1, 1});
        expect_right_in_rows(launch, {tokens, rounded_up(2), in_row, 1, 1});
    }

  private:
    static constexpr std::size_t kExperts = 256;

    static std::vector<T> data(std::size_t size, std::uint64_t seed) {
        return course::make_data<T>(size, course::DataPattern::kSignedUniform, seed);
    }
    static course::DeviceBuffer<T> filled_with_nan(std::size_t size) {
        course::DeviceBuffer<T> buffer(size);
        CUDA_CHECK(cudaMemset(buffer.data(), 0xff, buffer.bytes()));
        return buffer;
    }
    template <class U>
    static void copy(U* to, std::span<const U> from) {
        CUDA_CHECK(cudaMemcpy(to, from.data(), from.size_bytes(), cudaMemcpyHostToDevice));
    }
    static std::vector<float> floats(const std::vector<T>& values) { return {values.begin(), values.end()}; }

    // `few`: the layer of the tokens that are compared. `got`: their results.
    static void compare(const Shape& all, const Shape& few, const std::vector<float>& logits,
                        const std::vector<T>& x, const std::vector<T>& weights,
                        const std::vector<float>& got) {
        const Expected expected = layer_on_cpu(few, logits, floats(x), floats(weights), 0, few.tokens,
                                               std::is_same_v<T, float> ? Sums::kRounded : Sums::kCutOff);
        std::vector<double> magnitude = expected.bound;
        for (double& bound : magnitude)
            bound /= course::FloatTraits<float>::kEpsilon;
        const course::VerifyResult result =
            course::verify(got, expected.value, {.factor = 1}, magnitude, few.width);
        EXPECT_TRUE(result.ok()) << name(all) << ": is each offset computed in 64 bits? " << result.message();
    }

    // All tokens choose the last two experts.
    static void expect_right_in_weights(Launcher launch, std::size_t hidden, std::size_t width) {
        const Shape all{5, hidden, width, kExperts, 2};
        const Shape few{5, hidden, width, 2, 2};
        const std::vector<float> logits =
            course::make_data<float>(few.tokens * few.experts, course::DataPattern::kSignedUniform, 1);
        std::vector<float> all_logits(all.tokens * kExperts, -9);
        for (std::size_t i = 0; i < logits.size(); ++i)
            all_logits[i / 2 * kExperts + kExperts - 2 + i % 2] = logits[i];
        const std::vector<T> x = data(few.tokens * hidden, 2);
        const std::vector<T> weights = data(few.experts * hidden * width, 3);

        const course::DeviceBuffer<float> logits_device{std::span<const float>(all_logits)};
        const course::DeviceBuffer<T> x_device{std::span<const T>(x)};
        course::DeviceBuffer<T> weights_device = filled_with_nan(kExperts * hidden * width);
        copy(weights_device.data() + (kExperts - 2) * hidden * width, std::span<const T>(weights));
        course::DeviceBuffer<float> out(all.tokens * width);
        Workspace workspace(all);
        launch({all, logits_device.span(), x_device.span(), std::as_const(weights_device).span(), out.span()},
               workspace, nullptr);
        compare(all, few, logits, x, weights, out.to_host());
    }

    // One expert; the first token and the last one are compared.
    static void expect_right_in_rows(Launcher launch, const Shape& all) {
        const Shape few{2, all.hidden, all.width, 1, 1};
        const std::vector<T> x = data(few.tokens * few.hidden, 4);
        const std::vector<T> weights = data(few.hidden * few.width, 5);
        const std::vector<float> logits(all.tokens);

        const course::DeviceBuffer<float> logits_device{std::span<const float>(logits)};
        const course::DeviceBuffer<T> weights_device{std::span<const T>(weights)};
        course::DeviceBuffer<T> x_device = filled_with_nan(all.tokens * all.hidden);
        const std::span<const T> rows(x);
        copy(x_device.data(), rows.first(all.hidden));
        copy(x_device.data() + (all.tokens - 1) * all.hidden, rows.last(all.hidden));
        course::DeviceBuffer<float> out(all.tokens * all.width);
        Workspace workspace(all);
        launch({all, logits_device.span(), std::as_const(x_device).span(), weights_device.span(), out.span()},
               workspace, nullptr);
        std::vector<float> got(2 * all.width);
        const std::size_t bytes = all.width * sizeof(float);
        CUDA_CHECK(cudaMemcpy(got.data(), out.data(), bytes, cudaMemcpyDeviceToHost));
        CUDA_CHECK(cudaMemcpy(got.data() + all.width, out.data() + (all.tokens - 1) * all.width, bytes,
                              cudaMemcpyDeviceToHost));
        compare(all, few, {0, 0}, x, weights, got);
    }
};

}  // namespace day27
