// The expected results of day 28, for its tests and its program.
#pragma once

#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/check/verify.hpp"
#include "common/device/half_traits.hpp"
#include "conv_layers.hpp"

namespace day28 {

// The expected result of a pass on these operands, NCHW.
class Reference {
  public:
    Reference(Pass pass, const Shape& shape, std::vector<float> a, std::vector<float> b)
        : pass_(pass),
          shape_(shape),
          a_(std::move(a)),
          b_(std::move(b)),
          expected_(pass_on_cpu(pass, shape, a_, b_)) {}

    const Expected& expected() const { return expected_; }

    // winograd: that of the launcher.
    course::VerifyResult verify(const std::vector<float>& got, int winograd) {
        if (winograd == 0)
            return course::verify(
                got, expected_.values,
                {.terms = lengths(pass_, shape_).terms, .growth = course::Growth::kSquareRoot},
                expected_.magnitude);
        if (!bounds_.contains(winograd)) bounds_[winograd] = winograd_bound(winograd, pass_, shape_, a_, b_);
        const WinogradBound& bound = bounds_[winograd];
        return course::verify(got, expected_.values, {.terms = bound.roundings, .factor = 0.5},
                              bound.magnitude);
    }

  private:
    Pass pass_;
    Shape shape_;
    std::vector<float> a_;
    std::vector<float> b_;
    Expected expected_;
    std::map<int, WinogradBound> bounds_;
};

// The other order of a tensor of `images` images, `channels` channels and `pixels` pixels.
template <class T>
std::vector<T> channels_last(const std::vector<T>& nchw, int images, int channels, int pixels) {
    std::vector<T> nhwc;
    nhwc.reserve(nchw.size());
    for (int n = 0; n < images; ++n)
        for (int i = 0; i < pixels; ++i)
            for (int c = 0; c < channels; ++c)
                nhwc.push_back(nchw[(static_cast<std::size_t>(n) * static_cast<std::size_t>(channels) +
                                     static_cast<std::size_t>(c)) *
                                        static_cast<std::size_t>(pixels) +
                                    static_cast<std::size_t>(i)]);
    return nhwc;
}

// Forward on tensor cores: operands of type T, channels last, and the expected result.
template <class T>
class TensorCoreReference {
  public:
    // The operands are rounded to T first, so the values before rounding do not matter.
    TensorCoreReference(const Shape& shape, const std::vector<float>& x_nchw,
                        const std::vector<float>& w_kcrs) {
        const std::vector<T> x_rounded(x_nchw.begin(), x_nchw.end());
        const std::vector<T> w_rounded(w_kcrs.begin(), w_kcrs.end());
        x = channels_last(x_rounded, shape.n, shape.c, shape.h * shape.w);
        w = channels_last(w_rounded, shape.k, shape.c, shape.r * shape.s);
        const Expected expected =
            pass_on_cpu(Pass::kForward, shape, std::vector<float>(x_rounded.begin(), x_rounded.end()),
                        std::vector<float>(w_rounded.begin(), w_rounded.end()));
        values_ = channels_last(expected.values, shape.n, shape.k, shape.plane());
        allowed_ = channels_last(expected.magnitude, shape.n, shape.k, shape.plane());
        // Sums in FP32. TF32 rounds each operand to 11 bits; BF16 rounds the result to 8.
        const double of_products =
            2 * std::sqrt(shape.filter()) * 0x1p-23 + (std::is_same_v<T, float> ? 0x1p-10 : 0);
        const double of_result = std::is_same_v<T, float> ? 0 : 0x1p-8;
        for (std::size_t i = 0; i < allowed_.size(); ++i)
            allowed_[i] = (of_products * allowed_[i] + of_result * std::abs(values_[i])) /
                          course::FloatTraits<T>::kEpsilon;
    }

    course::VerifyResult verify(const std::vector<T>& got) const {
        return course::verify(got, values_, {.terms = 1, .factor = 1.01}, allowed_);
    }

    std::vector<T> x;  // NHWC
    std::vector<T> w;  // KRSC

  private:
    std::vector<double> values_;
    std::vector<double> allowed_;
};

}  // namespace day28
