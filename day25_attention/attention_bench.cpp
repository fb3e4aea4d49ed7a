// Day 25's program: the scoring functions, self-attention from parts and the layer, every version
// verified and timed. A size is batch x heads x tokens x head dimension; the scoring functions
// take batch x tokens states of heads x columns.
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "attention_layer.hpp"
#include "attention_plain_loop.hpp"
#include "attention_reference.hpp"
#include "common/bench/program.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "scores.hpp"

namespace {

using course::DeviceBuffer;
using day25::Bounded;
using day25::Scoring;

// The data are random, so errors are independent. The bound that always holds would let a wrong
// layer pass (attention_reference.hpp).
constexpr course::Growth kGrowth = course::Growth::kSquareRoot;

struct Size {
    std::size_t batch, heads, tokens, head;  // head: columns of one
    std::size_t width() const { return heads * head; }
    std::size_t rows() const { return batch * tokens; }
};

Size parse(const course::Dims& size) {
    if (size.size() != 4)
        throw std::invalid_argument("--size has " + std::to_string(size.size()) +
                                    " extents; expected 4: batch x heads x tokens x columns of a head, for "
                                    "example 1x1x2048x512");
    return {size[0], size[1], size[2], size[3]};
}

std::string text(const Size& s) {
    return std::to_string(s.batch) + "x" + std::to_string(s.heads) + "x" + std::to_string(s.tokens) + "x" +
           std::to_string(s.head);
}

// With more scores, the CPU reference takes minutes. Day 26 runs longer sequences.
bool too_long(const Size& size) {
    constexpr std::size_t kMostScores = std::size_t{1} << 28;
    return size.batch * size.heads * size.tokens * size.tokens > kMostScores;
}

// The same numbers on the host and on the device.
struct Values {
    Values(std::size_t size, std::uint64_t seed, float scale = 1)
        : host(course::make_data<float>(size, course::DataPattern::kNormal, seed)) {
        for (float& x : host)
            x *= scale;
        device = DeviceBuffer<float>(std::span<const float>(host));
    }

    std::vector<float> host;
    DeviceBuffer<float> device;
};

// A case whose versions all write `data->out`, which must be `data->expected`.
template <class Data>
course::UsualCase<Data> make_case(const std::string& problem, const std::shared_ptr<Data>& data) {
    course::UsualCase<Data> usual(problem, "float", data);
    usual.output(&Data::out, [](const Data& d, const auto& got) { return day25::verify(got, d.expected); });
    return usual;
}

// A contestant for each version of self-attention: prepare(version) makes what it launches.
template <class Data, class Prepare>
void add_versions(course::UsualCase<Data>& usual, const Size& size, const course::Work& work,
                  Prepare prepare) {
    for (const day25::Version& version : day25::versions()) {
        const std::string reason = version.cannot_run({size.head, size.head});
        if (!reason.empty()) {
            usual.add({.name = version.name, .cannot_run = reason});
            continue;
        }
        course::Work own = work;
        own.arithmetic = version.launcher.arithmetic;
        usual.add({.name = version.name, .launch = prepare(version), .work = own});
    }
}

template <Scoring SCORING>
course::Case make_scores(const course::Dims& dims) {
    const Size size = parse(dims);
    if (too_long(size)) return {};
    const day25::ScoreShape shape{size.rows(), size.width(), size.width(),
                                  SCORING == Scoring::kBahdanau ? size.width() : 0};
    struct Data {
        explicit Data(const day25::ScoreShape& s)
            : hidden(s.hidden, 1),
              states(s.states * s.width, 2),
              weight(s.weight_rows(SCORING) * s.weight_cols(SCORING), 3,
                     1 / std::sqrt(static_cast<float>(s.width))),
              v(s.units, 4),
              workspace(day25::score_workspace(SCORING, s)),
              out(s.states),
              expected(day25::score_reference(SCORING, s, hidden.host, states.host, weight.host, v.host,
                                              kGrowth)) {}
        Values hidden, states, weight, v;
        DeviceBuffer<float> workspace;
        course::GuardedBuffer<float> out;
        Bounded expected;
    };
    const auto data = std::make_shared<Data>(shape);
    auto usual = make_case(
        day25::name(SCORING) + " " + std::to_string(shape.states) + "x" + std::to_string(shape.width), data);
    usual.versions(
        day25::score_versions(SCORING), shape, [shape](const auto& scorer, Data& d, cudaStream_t stream) {
            scorer.launcher(
                {.hidden = d.hidden.device.span(),
                 .states = d.states.device.matrix(shape.states, shape.width),
                 .weight = d.weight.device.matrix(shape.weight_rows(SCORING), shape.weight_cols(SCORING)),
                 .v = d.v.device.span()},
                d.out.span(), d.workspace.span(), stream);
        });
    return usual.result;
}

course::Case make_self_attention(const course::Dims& dims) {
    const Size size = parse(dims);
    if (too_long(size)) return {};
    const day25::AttentionShape shape{size.batch, size.heads, size.tokens, size.tokens, size.head, size.head};
    struct Data {
        Data(const day25::AttentionShape& s, std::size_t count)
            : q(count, 1),
              k(count, 2),
              v(count, 3),
              scale(static_cast<float>(1 / std::sqrt(static_cast<double>(s.width)))),
              out(count),
              expected(
                  day25::self_attention_reference(s, q.host, k.host, v.host, scale, false, {}, kGrowth)) {}
        Values q, k, v;
        float scale;
        course::GuardedBuffer<float> out;
        Bounded expected;
    };
    const auto data = std::make_shared<Data>(shape, size.rows() * size.width());
    auto usual = make_case("self_attention " + text(size), data);
    add_versions(usual, size, shape.work(), [&](const day25::Version& version) {
        const auto attention = std::make_shared<day25::SelfAttention>(version, shape);
        return [data, attention, rows = size.rows(), width = size.width()](cudaStream_t stream) {
            (*attention)(data->q.device.matrix(rows, width), data->k.device.matrix(rows, width),
                         data->v.device.matrix(rows, width), data->out.matrix(rows, width), data->scale, {},
                         stream);
        };
    });
    // The loop over a dot product is in order, so each addition waits for the one before.
    constexpr double kSecondsPerFlop = 7e-10;
    usual.plain_loop(
        shape.work(), shape.work().flops * kSecondsPerFlop,
        [count = size.rows() * size.width()] { return course::unwritten<float>(count); },
        [shape](const Data& d, std::span<float> out, int threads) {
            day25::attention_plainly(shape, d.q.host, d.k.host, d.v.host, d.scale, out, threads);
        },
        [](const Data& d, const auto& out) { return day25::verify(out, d.expected); });
    return usual.result;
}

course::Case make_layer(const course::Dims& dims) {
    const Size size = parse(dims);
    if (too_long(size)) return {};
    const day25::AttentionConfig config{.width = size.width(), .heads = size.heads};
    const day25::TokenCounts counts{size.batch, size.tokens, size.tokens};
    constexpr std::uint64_t kSeed = 25;
    struct Data {
        Data(const day25::AttentionConfig& config_, const day25::TokenCounts& counts_, std::size_t count)
            : tokens(count, 1),
              out(count),
              expected(day25::AttentionLayerOnCpu(config_, kSeed)
                           .forward(tokens.host, tokens.host, tokens.host, counts_, false, {}, kGrowth)) {}
        Values tokens;
        course::GuardedBuffer<float> out;
        Bounded expected;
    };
    const auto data = std::make_shared<Data>(config, counts, size.rows() * size.width());
    auto usual = make_case("attention_layer " + text(size), data);
    add_versions(usual, size, day25::layer_work(config, counts), [&](const day25::Version& version) {
        const auto layer = std::make_shared<day25::AttentionLayer>(config, counts, version, kSeed);
        return [data, layer, counts, rows = size.rows(), width = size.width()](cudaStream_t stream) {
            const auto tokens = std::as_const(data->tokens.device).matrix(rows, width);
            layer->forward(tokens, tokens, tokens, data->out.matrix(rows, width), counts, {}, stream);
        };
    });
    return usual.result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day25_attention",
        .title = "attention: scoring functions, self-attention, the layer",
        .default_size = {1, 2, 64, 16},
        .bench_sizes = {{1, 1, 2048, 512}, {4, 8, 2048, 64}},
        .make_cases = {make_scores<Scoring::kDot>, make_scores<Scoring::kLuong>,
                       make_scores<Scoring::kBahdanau>, make_self_attention, make_layer},
        .stand_in_limit = 1 << 15};
    return course::run_program(program, argc, argv);
}
