// Every version of every pass against the sums in double, on shapes that can fail differently.
#include "conv_layers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/test/device_test.hpp"
#include "conv_verify.hpp"

namespace {

using course::DataPattern;
using course::DeviceBuffer;
using course::GuardedBuffer;
using day28::Pass;
using day28::Shape;

constexpr std::uint64_t kSeed = 28;

// What can go wrong: one channel or filter, a filter of 1 x 1, as large as the image, larger than
// the image without its padding, wide or high; a stride that does not divide; extents that are no
// multiple of a tile of 16, 32, 64 or 128; planes whose size is no multiple of 4.
const std::vector<Shape>& shapes() {
    static const std::vector<Shape> list = {
        {.n = 1, .c = 1, .h = 1, .w = 1, .k = 1, .r = 1, .s = 1},
        {.n = 2, .c = 1, .h = 5, .w = 7, .k = 1, .r = 3, .s = 3},
        {.n = 2, .c = 3, .h = 9, .w = 10, .k = 5, .r = 1, .s = 1},
        {.n = 1, .c = 9, .h = 8, .w = 8, .k = 65, .r = 3, .s = 3, .padding = 1},
        {.n = 3, .c = 5, .h = 7, .w = 7, .k = 9, .r = 3, .s = 3, .padding = 1},
        {.n = 1, .c = 2, .h = 2, .w = 1, .k = 3, .r = 3, .s = 3, .padding = 1},
        {.n = 1, .c = 2, .h = 6, .w = 5, .k = 4, .r = 3, .s = 3, .padding = 2},
        {.n = 4, .c = 3, .h = 23, .w = 21, .k = 8, .r = 7, .s = 7, .padding = 3, .stride = 2},
        {.n = 2, .c = 4, .h = 12, .w = 11, .k = 3, .r = 3, .s = 3, .padding = 1, .stride = 2},
        {.n = 1, .c = 2, .h = 13, .w = 16, .k = 2, .r = 5, .s = 5, .padding = 0, .stride = 3},
        {.n = 1, .c = 2, .h = 6, .w = 40, .k = 2, .r = 2, .s = 5, .padding = 1},
        {.n = 3, .c = 6, .h = 4, .w = 4, .k = 7, .r = 4, .s = 4},
        {.n = 1, .c = 3, .h = 5, .w = 5, .k = 2, .r = 1, .s = 1, .padding = 1, .stride = 2},
        {.n = 1, .c = 4, .h = 33, .w = 35, .k = 3, .r = 3, .s = 3, .padding = 1},
        // Phases of a stride: none without a row of the filter, and some; the last one with fewer
        // rows; rows of the image under no filter, and those beyond the last output's; filters of
        // 225 elements, which is no multiple of 4.
        {.n = 2, .c = 3, .h = 14, .w = 16, .k = 4, .r = 6, .s = 6, .padding = 3, .stride = 3},
        {.n = 2, .c = 3, .h = 11, .w = 14, .k = 3, .r = 2, .s = 2, .padding = 1, .stride = 4},
        {.n = 1, .c = 4, .h = 8, .w = 7, .k = 3, .r = 1, .s = 1, .stride = 2},
        {.n = 1, .c = 3, .h = 10, .w = 11, .k = 3, .r = 5, .s = 5, .padding = 4, .stride = 2},
        // The depth of the gradient of the filters is split, for winograd_4x4 too, into parts that
        // are not equal: the last one is shorter.
        {.n = 4, .c = 2, .h = 35, .w = 36, .k = 3, .r = 3, .s = 3, .padding = 1},
        // few_channels: as many taps as a phase may have, with a stride too; several of its tiles
        // down and across, and images after the first.
        {.n = 1, .c = 2, .h = 67, .w = 35, .k = 5, .r = 8, .s = 8, .padding = 3},
        {.n = 2, .c = 1, .h = 69, .w = 131, .k = 2, .r = 15, .s = 16, .padding = 2, .stride = 2},
    };
    return list;
}

struct PassAndVersion {
    Pass pass;
    const day28::Version* version;
};
void PrintTo(const PassAndVersion& p, std::ostream* out) {
    *out << day28::name(p.pass) << " " << p.version->name;
}
std::vector<PassAndVersion> all_versions() {
    std::vector<PassAndVersion> all;
    for (const Pass pass : day28::kPasses)
        for (const day28::Version& version : day28::versions(pass))
            all.push_back({pass, &version});
    return all;
}
// forward_direct, backward_weights_split_k, ...
std::string test_name(const testing::TestParamInfo<PassAndVersion>& info) {
    return std::string(day28::name(info.param.pass)) + "_" + info.param.version->name;
}

// The operands, the result and the scratch memory of a version; each tensor `misaligned` floats
// after an aligned address.
struct Tensors {
    Tensors(const PassAndVersion& p, const Shape& s, DataPattern pattern = DataPattern::kSignedUniform,
            std::size_t misaligned = 0)
        : shape(s),
          a_host(course::make_data<float>(lengths(p.pass, s).a, pattern, kSeed)),
          b_host(course::make_data<float>(lengths(p.pass, s).b, pattern, kSeed + 1)),
          a(a_host.size(), misaligned),
          b(b_host.size(), misaligned),
          out(lengths(p.pass, s).out, misaligned),
          scratch(p.version->launcher.scratch_floats(s)) {
        a.copy_from(a_host);
        b.copy_from(b_host);
    }
    void run(const PassAndVersion& p, cudaStream_t stream = nullptr) {
        p.version->launcher.run(shape, a.span(), b.span(), out.span(), scratch.span(), stream);
    }
    course::VerifyResult verify(const PassAndVersion& p) const {
        return day28::Reference(p.pass, shape, a_host, b_host)
            .verify(out.to_host(), p.version->launcher.winograd);
    }

    Shape shape;
    std::vector<float> a_host;
    std::vector<float> b_host;
    GuardedBuffer<float> a;
    GuardedBuffer<float> b;
    GuardedBuffer<float> out;
    GuardedBuffer<float> scratch;
};

class VersionTest : public course::DeviceTestWithParam<PassAndVersion> {
  protected:
    static void expect_right(const Shape& shape, DataPattern pattern = DataPattern::kSignedUniform,
                             std::size_t misaligned = 0) {
        SCOPED_TRACE(to_text(shape) + ", " + std::string(course::name(pattern)) + ", misaligned by " +
                     std::to_string(misaligned));
        Tensors tensors(GetParam(), shape, pattern, misaligned);
        tensors.run(GetParam());
        const course::VerifyResult result = tensors.verify(GetParam());
        EXPECT_TRUE(result.ok()) << result.message();
        for (const auto* buffer : {&tensors.a, &tensors.b, &tensors.out, &tensors.scratch})
            EXPECT_EQ(buffer->damage(), "");
    }
    static bool runs(const Shape& shape) { return GetParam().version->cannot_run(shape).empty(); }
};

INSTANTIATE_TEST_SUITE_P(ConvLayers, VersionTest, testing::ValuesIn(all_versions()), test_name);

TEST_P(VersionTest, AwkwardShapesAreRight) {
    int ran = 0;
    for (const Shape& shape : shapes())
        if (runs(shape)) {
            expect_right(shape);
            ++ran;
        }
    EXPECT_GE(ran, 6);
}

TEST_P(VersionTest, AnyAlignment) {
    for (const std::size_t misaligned : {1, 2})
        expect_right({.n = 2, .c = 3, .h = 8, .w = 8, .k = 5, .r = 3, .s = 3, .padding = 1},
                     DataPattern::kSignedUniform, misaligned);
}

TEST_P(VersionTest, NastyValuesAreRight) {
    for (const DataPattern pattern : {DataPattern::kAllEqual, DataPattern::kHugeNextToTiny})
        expect_right({.n = 2, .c = 3, .h = 9, .w = 8, .k = 5, .r = 3, .s = 3, .padding = 1}, pattern);
}

// What fills up the last tiles is multiplied by zero, and zero times NaN or Inf is NaN, so it must
// be zero, too. A NaN or an Inf reaches the results that it is an operand of, no others. Here it is
// the first and the last element of an operand, and the first one of its second channel or filter,
// which is read with a zero if the one before it is read too far. Winograd's sums mix the elements
// of a tile and of a filter, so there the NaN may reach more: of x and dy, results of the same
// image only, and of w those of the same filter.
void expect_spread(const PassAndVersion& p, const Shape& shape, bool in_a, std::size_t index, float special) {
    SCOPED_TRACE(to_text(shape) + ", " + std::to_string(special) + " in element " + std::to_string(index) +
                 " of the " + (in_a ? "first operand" : "second operand"));
    Tensors tensors(p, shape);
    std::vector<float>& host = in_a ? tensors.a_host : tensors.b_host;
    host[index] = special;
    (in_a ? tensors.a : tensors.b).copy_from(host);
    tensors.run(p);
    const std::vector<float> got = tensors.out.to_host();
    const std::vector<double> expected = pass_on_cpu(p.pass, shape, tensors.a_host, tensors.b_host).values;
    // Neighbours that Winograd's sums mix, in memory.
    const int plane = p.pass == Pass::kForward ? shape.plane() : shape.h * shape.w;
    const std::size_t together = p.version->launcher.winograd == 0  ? 1
                                 : p.pass == Pass::kBackwardWeights ? 9
                                                                    : static_cast<std::size_t>(plane);
    for (std::size_t i = 0; i < got.size(); ++i) {
        const auto group = expected.begin() + static_cast<std::ptrdiff_t>(i / together * together);
        const bool may = std::any_of(group, group + static_cast<std::ptrdiff_t>(together),
                                     [](double value) { return std::isnan(value); });
        ASSERT_TRUE(std::isnan(got[i]) ? may : !std::isnan(expected[i])) << "element " << i;
        if (!std::isinf(special)) continue;
        ASSERT_EQ(std::isinf(got[i]), std::isinf(expected[i])) << "element " << i;
    }
}

TEST_P(VersionTest, ANanReachesItsOwnResultsOnly) {
    const Pass pass = GetParam().pass;
    std::vector<float> specials = {std::numeric_limits<float>::quiet_NaN()};
    if (GetParam().version->launcher.winograd == 0)
        specials.push_back(std::numeric_limits<float>::infinity());
    // Depths of 18, 27, 36 and 45 are no multiple of 8, nor are 2, 3 and 5 channels and filters.
    for (const Shape& shape : {Shape{.n = 2, .c = 3, .h = 5, .w = 6, .k = 5, .r = 3, .s = 3, .padding = 1},
                               Shape{.n = 3, .c = 2, .h = 7, .w = 5, .k = 4, .r = 3, .s = 3}})
        for (const bool in_a : {true, false}) {
            // In the padding the other operand is multiplied by zero, legally.
            if (!in_a && (shape.padding > 0 || pass == Pass::kBackwardInput)) continue;
            const bool in_dy = pass == (in_a ? Pass::kBackwardInput : Pass::kBackwardWeights);
            const int row = in_dy ? shape.plane() : in_a ? shape.h * shape.w : shape.filter();
            const std::size_t size = in_a ? lengths(pass, shape).a : lengths(pass, shape).b;
            for (const std::size_t index : {std::size_t{0}, static_cast<std::size_t>(row), size - 1})
                for (const float special : specials)
                    expect_spread(GetParam(), shape, in_a, index, special);
        }
}

TEST_P(VersionTest, NoImagesAreLegal) {
    const Shape shape{.n = 0, .c = 2, .h = 4, .w = 4, .k = 3, .r = 3, .s = 3, .padding = 1};
    Tensors tensors(GetParam(), shape);
    tensors.run(GetParam());
    for (const float value : tensors.out.to_host())  // dw has elements: sums of nothing
        EXPECT_EQ(value, 0.0f);
}

TEST_P(VersionTest, SameDataGiveTheSameBits) {
    const Shape shape{.n = 3, .c = 2, .h = 17, .w = 16, .k = 3, .r = 3, .s = 3, .padding = 1};
    Tensors tensors(GetParam(), shape);
    tensors.run(GetParam());
    const std::vector<float> first = tensors.out.to_host();
    tensors.out.spoil();
    tensors.run(GetParam());
    EXPECT_EQ(tensors.out.to_host(), first);
}

TEST_P(VersionTest, RunsOnTheGivenStream) {
    for (const Shape& shape :
         {Shape{.n = 1, .c = 2, .h = 6, .w = 6, .k = 3, .r = 3, .s = 3, .padding = 1},
          Shape{.n = 1, .c = 2, .h = 9, .w = 8, .k = 3, .r = 3, .s = 3, .padding = 1, .stride = 4}}) {
        if (!runs(shape)) continue;
        SCOPED_TRACE(to_text(shape));
        Tensors tensors(GetParam(), shape);
        const course::CapturedWork work([&](cudaStream_t stream) { tensors.run(GetParam(), stream); });
        EXPECT_GE(work.nodes(), 1u);
        // Nothing may have run while it was captured, on another stream.
        CUDA_CHECK(cudaDeviceSynchronize());
        tensors.scratch.spoil();
        tensors.out.spoil();
        work.run();
        EXPECT_TRUE(tensors.verify(GetParam()).ok());
    }
}

TEST_P(VersionTest, RefusesBadArguments) {
    const Shape shape{.n = 1, .c = 2, .h = 6, .w = 6, .k = 3, .r = 3, .s = 3, .padding = 1};
    Tensors t(GetParam(), shape);
    const auto& launcher = GetParam().version->launcher;
    const auto message = [&](const Shape& s, course::DeviceSpan<float> a, course::DeviceSpan<float> b,
                             course::DeviceSpan<float> out, course::DeviceSpan<float> scratch) {
        return course::refusal([&] { launcher.run(s, a, b, out, scratch, nullptr); });
    };
    const auto with = [&](auto change) {
        Shape s = shape;
        change(s);
        return message(s, t.a.span(), t.b.span(), t.out.span(), t.scratch.span());
    };
    EXPECT_NE(with([](Shape& s) {
                  s.h = 1;
                  s.padding = 0;
              }).find("expected a filter that fits into it"),
              std::string::npos);
    for (const auto& [name, extent] :
         {std::pair{"c", &Shape::c}, std::pair{"h", &Shape::h}, std::pair{"w", &Shape::w},
          std::pair{"k", &Shape::k}, std::pair{"r", &Shape::r}, std::pair{"s", &Shape::s}}) {
        const std::string refused = with([&](Shape& s) { s.*extent = 0; });
        EXPECT_NE(refused.find(std::string(name) + " is 0; expected at least 1"), std::string::npos)
            << refused;
    }
    EXPECT_NE(with([](Shape& s) { s.stride = 0; }).find("stride is 0"), std::string::npos);
    EXPECT_NE(with([](Shape& s) { s.padding = -1; }).find("padding is -1"), std::string::npos);
    EXPECT_NE(with([](Shape& s) { s.n = 2; }).find("operand has"), std::string::npos);
    EXPECT_NE(with([](Shape& s) { s.n = s.c = s.h = s.w = 32768; }).find("expected at most 1073741824"),
              std::string::npos);
    EXPECT_NE(
        message(shape, t.a.span(), t.b.span(), t.out.span().subspan(1, t.out.size() - 1), t.scratch.span())
            .find("the result has"),
        std::string::npos);
    // dx and x have the length of the first operand somewhere, the others that of the second.
    GuardedBuffer<float> large(std::max({t.a.size(), t.b.size(), t.out.size()}));
    EXPECT_NE(message(shape, large.span().subspan(0, t.a.size()), t.b.span(),
                      large.span().subspan(0, t.out.size()), t.scratch.span())
                  .find("overlaps an operand"),
              std::string::npos);
    EXPECT_NE(message(shape, t.a.span(), large.span().subspan(0, t.b.size()),
                      large.span().subspan(0, t.out.size()), t.scratch.span())
                  .find("overlaps an operand"),
              std::string::npos);
    if (t.scratch.size() == 0) return;
    GuardedBuffer<float> more(t.scratch.size() + std::max({t.a.size(), t.b.size(), t.out.size()}));
    const auto tensor = [&](std::size_t size) { return more.span().subspan(t.scratch.size() - 1, size); };
    const auto scratch = more.span().subspan(0, t.scratch.size());
    for (const std::string& refused : {message(shape, tensor(t.a.size()), t.b.span(), t.out.span(), scratch),
                                       message(shape, t.a.span(), tensor(t.b.size()), t.out.span(), scratch),
                                       message(shape, t.a.span(), t.b.span(), tensor(t.out.size()), scratch)})
        EXPECT_NE(refused.find("scratch overlaps a tensor"), std::string::npos) << refused;
    EXPECT_NE(message(shape, t.a.span(), t.b.span(), t.out.span(), more.span().subspan(1, t.scratch.size()))
                  .find("scratch is not 16-byte aligned"),
              std::string::npos);
    EXPECT_NE(message(shape, t.a.span(), t.b.span(), t.out.span(),
                      t.scratch.span().subspan(0, t.scratch.size() - 1))
                  .find("scratch has"),
              std::string::npos);
}

TEST(Constraints, SayWhyAVersionCannotRun) {
    const auto reason = [](Pass pass, const char* version, const Shape& shape) {
        return course::find_version(day28::versions(pass), version).cannot_run(shape);
    };
    EXPECT_EQ(reason(Pass::kForward, "winograd_4x4", {.h = 9, .w = 9, .r = 5, .s = 5}),
              "needs filters of 3 x 3 and stride 1; these are 5 x 5 with stride 1");
    EXPECT_EQ(reason(Pass::kForward, "winograd_2x2", {.h = 9, .w = 9, .r = 3, .s = 3, .stride = 2}),
              "needs filters of 3 x 3 and stride 1; these are 3 x 3 with stride 2");
    EXPECT_EQ(reason(Pass::kBackwardInput, "implicit_gemm", {.h = 9, .w = 9, .r = 3, .s = 5}),
              "needs square filters; these are 3 x 5");
    EXPECT_EQ(reason(Pass::kBackwardInput, "implicit_gemm", {.h = 9, .w = 9, .padding = 1}),
              "needs a padding below the filter's 1 rows; it is 1");
    EXPECT_EQ(
        reason(Pass::kBackwardInput, "implicit_gemm", {.h = 99, .w = 99, .r = 33, .s = 33, .stride = 33}),
        "is a convolution for each of 1089 phases of a stride of 33; expected at most 1024");
    EXPECT_EQ(reason(Pass::kBackwardInput, "implicit_gemm", {.stride = 0}),
              "needs a stride of at least 1; it is 0");
    EXPECT_EQ(reason(Pass::kBackwardInput, "implicit_gemm", {.h = 99, .w = 99, .r = 8, .s = 8, .stride = 8}),
              "");
    EXPECT_EQ(reason(Pass::kBackwardInput, "implicit_gemm",
                     {.n = 32768, .c = 1024, .r = 9, .s = 9, .padding = 8, .stride = 2}),
              "makes a phase of 3355443200 elements; expected at most 1073741824");
    EXPECT_EQ(reason(Pass::kBackwardInput, "implicit_gemm",
                     {.h = 45, .w = 45, .k = 32768, .r = 45, .s = 45, .stride = 2}),
              "packs the filters into 1109393408 floats; expected at most 1073741824");
    EXPECT_EQ(reason(Pass::kBackwardInput, "few_channels", {.c = 5}),
              "is for at most 4 channels; these are 5");
    EXPECT_EQ(reason(Pass::kBackwardInput, "few_channels", {.stride = 0}),
              "needs a stride of at least 1; it is 0");
    EXPECT_EQ(reason(Pass::kBackwardInput, "few_channels", {.stride = 17}),
              "needs a stride of at most 16; it is 17");
    EXPECT_EQ(reason(Pass::kBackwardInput, "few_channels", {.h = 99, .w = 99, .r = 3, .s = 17, .stride = 2}),
              "needs filters of at most 16 x 16 with a stride of 2; these are 3 x 17");
    EXPECT_NE(
        reason(Pass::kForward, "direct_tiled", {.h = 99, .w = 99, .r = 99, .s = 99}).find("shared memory"),
        std::string::npos);
    EXPECT_EQ(day28::tensor_core_versions<float>()[0].cannot_run({.c = 6}),
              "copies 4 channels at a time; these are 6");
    const auto& tma_wgmma = course::find_version(day28::tensor_core_versions<__nv_bfloat16>(), "tma_wgmma");
    EXPECT_EQ(tma_wgmma.cannot_run({.c = 12}), "loads 8 channels at a time; these are 12");
    EXPECT_EQ(tma_wgmma.cannot_run({.c = 8, .h = 9, .w = 9, .stride = 9}),
              "moves filters by at most 8 pixels; the stride is 9");
    EXPECT_NE(tma_wgmma.cannot_run({.c = 8, .padding = 128}).find("padding of at most 127"),
              std::string::npos);
    EXPECT_NE(tma_wgmma.cannot_run({.c = 8, .h = 130, .w = 9, .r = 130}).find("these are 130 x 1"),
              std::string::npos);
}

// --- Tensor cores --------------------------------------------------------------------------------

template <class T>
class TensorCores : public course::DeviceTest {
  protected:
    void SetUp() override {
        course::DeviceTest::SetUp();
        const std::string reason = day28::tensor_core_versions<T>()[0].cannot_run({.c = 8});
        if (!reason.empty()) GTEST_SKIP() << reason;
    }

    static std::vector<day28::TensorCoreVersion<T>> all_versions() {
        const auto versions = day28::tensor_core_versions<T>();
        std::vector<day28::TensorCoreVersion<T>> all(versions.begin(), versions.end());
        if constexpr (std::is_same_v<T, __nv_bfloat16>) {
            const auto tiles = day28::tma_wgmma_tiles();
            all.insert(all.end(), tiles.begin(), tiles.end());
        }
        return all;
    }

    // Of all versions. misaligned: y, by so many elements.
    static void expect_right(const Shape& shape, std::size_t misaligned = 0) {
        SCOPED_TRACE(to_text(shape));
        const day28::TensorCoreReference<T> reference(
            shape, course::make_data<float>(inputs(shape), DataPattern::kSignedUniform, kSeed),
            course::make_data<float>(weights(shape), DataPattern::kSignedUniform, kSeed + 1));
        GuardedBuffer<T> x(reference.x.size());
        GuardedBuffer<T> w(reference.w.size());
        x.copy_from(reference.x);
        w.copy_from(reference.w);
        for (const auto& version : all_versions()) {
            if (!version.cannot_run(shape).empty()) continue;
            SCOPED_TRACE(version.name);
            GuardedBuffer<T> y(outputs(shape), misaligned);
            version.launcher.run(shape, x.span(), w.span(), y.span(), {}, nullptr);
            const course::VerifyResult result = reference.verify(y.to_host());
            EXPECT_TRUE(result.ok()) << result.message();
            EXPECT_EQ(y.damage(), "");
        }
    }
};
using Types = testing::Types<float, __nv_bfloat16>;
TYPED_TEST_SUITE(TensorCores, Types);

TYPED_TEST(TensorCores, AwkwardShapesAreRight) {
    for (const Shape& shape : std::vector<Shape>{
             {.n = 1, .c = 8, .h = 1, .w = 1, .k = 1, .r = 1, .s = 1},
             {.n = 2, .c = 8, .h = 9, .w = 8, .k = 3, .r = 3, .s = 3, .padding = 1},
             {.n = 1, .c = 24, .h = 7, .w = 7, .k = 66, .r = 3, .s = 3, .padding = 1},
             {.n = 3, .c = 64, .h = 7, .w = 7, .k = 64, .r = 1, .s = 1},
             {.n = 1, .c = 8, .h = 23, .w = 21, .k = 130, .r = 7, .s = 7, .padding = 3, .stride = 2},
             {.n = 1, .c = 40, .h = 4, .w = 6, .k = 17, .r = 2, .s = 5, .padding = 2},
             {.n = 5, .c = 72, .h = 9, .w = 6, .k = 136, .r = 5, .s = 2, .padding = 1, .stride = 3},
             {.n = 1, .c = 8, .h = 40, .w = 33, .k = 8, .r = 3, .s = 3, .padding = 1},
         })
        this->expect_right(shape);
}

TYPED_TEST(TensorCores, AnyAlignmentOfTheOutput) {
    for (const int filters : {4, 8})
        this->expect_right({.n = 1, .c = 8, .h = 5, .w = 5, .k = filters, .r = 3, .s = 3, .padding = 1}, 1);
}

TYPED_TEST(TensorCores, RefuseOperandsThatAreNotAligned) {
    const Shape shape{.n = 1, .c = 8, .h = 3, .w = 3, .k = 2, .r = 3, .s = 3};
    for (const auto& version : this->all_versions()) {
        if (!version.cannot_run(shape).empty()) continue;
        SCOPED_TRACE(version.name);
        for (const bool of_x : {true, false}) {
            GuardedBuffer<TypeParam> x(inputs(shape), of_x ? 1 : 0);
            GuardedBuffer<TypeParam> w(weights(shape), of_x ? 0 : 1);
            GuardedBuffer<TypeParam> y(outputs(shape));
            EXPECT_EQ(course::refusal(
                          [&] { version.launcher.run(shape, x.span(), w.span(), y.span(), {}, nullptr); }),
                      "conv_layers: an operand is not 16-byte aligned; expected what cudaMalloc returns");
        }
    }
}

// A depth of 24 or 72 does not fill the last stage. What fills it up is zero in both operands: a
// NaN that is multiplied by zero would be NaN.
TYPED_TEST(TensorCores, ANanReachesItsOwnResultsOnly) {
    for (const Shape& shape : {Shape{.n = 2, .c = 24, .h = 3, .w = 2, .k = 3, .r = 1, .s = 1},
                               Shape{.n = 2, .c = 8, .h = 4, .w = 5, .k = 3, .r = 3, .s = 3, .padding = 1}})
        for (const bool in_x : {true, false})
            for (const bool at_end : {false, true}) {
                if (!in_x && shape.padding > 0) continue;
                SCOPED_TRACE(to_text(shape) + (at_end ? ", at the end of " : ", at the beginning of ") +
                             (in_x ? "x" : "w"));
                std::vector<TypeParam> x_host(inputs(shape), static_cast<TypeParam>(1.0f));
                std::vector<TypeParam> w_host(weights(shape), static_cast<TypeParam>(1.0f));
                std::vector<TypeParam>& host = in_x ? x_host : w_host;
                (at_end ? host.back() : host.front()) =
                    static_cast<TypeParam>(std::numeric_limits<float>::quiet_NaN());
                // The first and the last element have the same place in every layout.
                std::vector<float> x_nchw(x_host.size(), 1.0f), w_kcrs(w_host.size(), 1.0f);
                std::vector<float>& plain = in_x ? x_nchw : w_kcrs;
                (at_end ? plain.back() : plain.front()) = std::numeric_limits<float>::quiet_NaN();
                const std::vector<double> expected =
                    pass_on_cpu(Pass::kForward, shape, x_nchw, w_kcrs).values;
                GuardedBuffer<TypeParam> x(x_host.size()), w(w_host.size());
                x.copy_from(x_host);
                w.copy_from(w_host);
                for (const auto& version : this->all_versions()) {
                    if (!version.cannot_run(shape).empty()) continue;
                    SCOPED_TRACE(version.name);
                    GuardedBuffer<TypeParam> y(outputs(shape));
                    version.launcher.run(shape, x.span(), w.span(), y.span(), {}, nullptr);
                    const std::vector<TypeParam> got = y.to_host();
                    const auto plane = static_cast<std::size_t>(shape.plane());
                    const auto filters = static_cast<std::size_t>(shape.k);
                    for (std::size_t i = 0; i < got.size(); ++i) {
                        const std::size_t pixel = i / filters;
                        const std::size_t nchw =
                            (pixel / plane * filters + i % filters) * plane + pixel % plane;
                        ASSERT_EQ(std::isnan(static_cast<float>(got[i])), std::isnan(expected[nchw]))
                            << "element " << i;
                    }
                }
            }
}

// --- References ----------------------------------------------------------------------------------

// The gradients by finite differences: <dy, y(x + h) - y(x - h)> / 2h for a step of one element is
// exact but for rounding, since y is linear in x, and in w.
TEST(Reference, GradientsAgreeWithDifferences) {
    const Shape shape{.n = 2, .c = 2, .h = 5, .w = 4, .k = 3, .r = 3, .s = 2, .padding = 1, .stride = 2};
    std::vector<float> x = course::make_data<float>(inputs(shape), DataPattern::kSignedUniform, 1);
    std::vector<float> w = course::make_data<float>(weights(shape), DataPattern::kSignedUniform, 2);
    const std::vector<float> dy = course::make_data<float>(outputs(shape), DataPattern::kSignedUniform, 3);
    const auto loss = [&] {
        const std::vector<double> y = day28::pass_on_cpu(Pass::kForward, shape, x, w).values;
        double sum = 0;
        for (std::size_t i = 0; i < y.size(); ++i)
            sum += y[i] * static_cast<double>(dy[i]);
        return sum;
    };
    const auto check = [&](std::vector<float>& operand, const std::vector<double>& gradient) {
        ASSERT_EQ(operand.size(), gradient.size());
        for (std::size_t i = 0; i < operand.size(); ++i) {
            const float value = operand[i];
            operand[i] = value + 1;
            const double above = loss();
            const double step_up = static_cast<double>(operand[i]) - static_cast<double>(value);
            operand[i] = value;
            EXPECT_NEAR((above - loss()) / step_up, gradient[i], 1e-9) << i;
        }
    };
    check(x, day28::pass_on_cpu(Pass::kBackwardInput, shape, dy, w).values);
    check(w, day28::pass_on_cpu(Pass::kBackwardWeights, shape, x, dy).values);
}

TEST(Reference, OnePixelSpreadsTheFilter) {
    const Shape shape{.h = 3, .w = 3, .r = 3, .s = 3, .padding = 1};
    std::vector<float> x(9);
    x[4] = 1;
    const std::vector<float> w = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    EXPECT_EQ(day28::pass_on_cpu(Pass::kForward, shape, x, w).values,
              (std::vector<double>{9, 8, 7, 6, 5, 4, 3, 2, 1}));
}

}  // namespace
