// Day 43's program: every version of attention on Hopper, verified and timed. A size is batch x
// heads x tokens x head dimension.
#include <fmt/format.h>

#include <memory>

#include "common/bench/attention_case.hpp"
#include "common/bench/draw.hpp"
#include "common/bench/program.hpp"
#include "common/check/require.hpp"
#include "hopper_attention.hpp"

namespace {

using course::attention::kMaxDim;
using day43::Shape;
using day43::Version;

template <class T, bool kCausal>
course::Case make_case(const course::Dims& size) {
    course::require(
        size.size() == 4, "--size has ", size.size(),
        " extents; expected 4: batch x heads x tokens x columns of a head, for example 4x8x2048x64");
    course::require(size[3] <= kMaxDim, "--size has heads of ", size[3], " columns; expected at most ",
                    kMaxDim);
    const Shape shape{size[0], size[1], size[1], size[2], size[2], size[3], kCausal};
    const auto data = std::make_shared<course::attention::Data<T>>(shape);
    course::Case result{
        .problem = fmt::format("hopper_attention {} {}", course::attention::kTypeName<T>, name(shape)),
        .dtype = course::attention::kTypeName<T>};
    result.spoil = [data] { data->out.spoil(); };
    for (const Version<T>& version : day43::versions<T>()) {
        result.contestants.push_back(
            {.name = version.name,
             .launch = [data, &version](cudaStream_t stream) { data->launch(version, stream); },
             .work = version.work(shape),
             .cannot_run = version.cannot_run(shape),
             .verify = [data] { return data->verify(course::attention::tensor_core_precision<T>()); }});
    }
    return result;
}

course::RandomProblem random_attention(course::Draw& draw) {
    const auto [kind, size] = course::draw_attention(draw);
    const auto make = draw.one_of<course::Case (*)(const course::Dims&)>(
        {make_case<__nv_bfloat16, false>, make_case<__nv_bfloat16, true>, make_case<__half, false>,
         make_case<__half, true>});
    return {kind, size, [size = size, make] { return make(size); }};
}

}  // namespace

int main(int argc, char** argv) {
    course::Program program{
        .day = "day43_hopper_attention",
        .title = "attention on Hopper: softmax(scale Q K^T) V by TMA and wgmma",
        .default_size = {1, 2, 200, 64},
        .bench_sizes = {{4, 16, 4096, 128}, {2, 16, 8192, 128}, {1, 16, 16384, 128}, {4, 32, 4096, 64},
                        {1, 32, 16384, 64}, {1, 8, 512, 128},   {4, 16, 512, 128},   {1, 32, 1000, 128},
                        {2, 16, 1777, 128}, {8, 16, 128, 128},  {1, 16, 2048, 128},  {32, 16, 256, 128},
                        {4, 32, 513, 128},  {1, 8, 512, 64},    {4, 16, 512, 64},    {1, 32, 1000, 64},
                        {2, 16, 1777, 64},  {8, 16, 128, 64},   {1, 16, 2048, 64},   {32, 16, 256, 64},
                        {4, 32, 513, 64}},
        .make_cases = {make_case<__nv_bfloat16, false>, make_case<__nv_bfloat16, true>,
                       make_case<__half, false>, make_case<__half, true>},
        .distributions = {{.name = "attention",
                           .text = course::kAttentionText,
                           .most = std::size_t{1} << 39,
                           .most_on_cpu = 1 << 22,
                           .ours = {"dispatcher"},
                           .draw = random_attention}},
        .stand_in_limit = 1 << 17};
    return course::run_program(program, argc, argv);
}
