#include "serving_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/bench/usual_case.hpp"
#include "common/check/data_pattern.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/verify.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/half_traits.hpp"
#include "common/device/random.hpp"
#include "latent.hpp"
#include "paged.hpp"
#include "speculative.hpp"

namespace day29 {
namespace {

using T = __nv_bfloat16;

constexpr std::size_t kRowsToVerify = 32;  // the CPU would take too long for all of them

std::size_t sum_of(const std::vector<int>& lengths) {
    return static_cast<std::size_t>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
}

// The first rows, random ones and the last of `all`, which has `cols` columns; all others must not
// have a NaN. expected(row): as of reference_row().
template <class Expected>
course::VerifyResult verify_rows(const std::vector<T>& all, std::size_t cols, Expected expected) {
    const std::size_t rows = all.size() / cols;
    const std::size_t checked = std::min(rows, kRowsToVerify);
    std::vector<T> got(checked * cols);
    std::vector<double> values(got.size());
    std::vector<double> magnitude(got.size());
    const auto count = static_cast<std::ptrdiff_t>(checked);
#pragma omp parallel for
    for (std::ptrdiff_t n = 0; n < count; ++n) {
        const auto number = static_cast<std::size_t>(n);
        course::Random random(7, number);
        std::size_t row = random.below(static_cast<std::uint32_t>(rows));
        if (number < checked / 4) row = number;
        if (number >= checked - checked / 4) row = rows - (checked - number);
        const ReferenceRow reference = expected(row);
        for (std::size_t c = 0; c < cols; ++c) {
            got[number * cols + c] = all[row * cols + c];
            values[number * cols + c] = reference.value[c];
            magnitude[number * cols + c] = reference.bound[c] / course::FloatTraits<T>::kEpsilon;
        }
    }
    course::VerifyResult result = course::verify(got, values, {.factor = 1}, magnitude, cols);
    if (std::ranges::any_of(all, [](T x) { return std::isnan(static_cast<float>(x)); }))
        result.damage += " there are NaN in the result";
    return result;
}

struct PagedData {
    PagedData(const PagedShape& given, bool ragged)
        : shape(given),
          lengths_host(lengths_of(given.batch, given.capacity(), ragged)),
          table_host(make_table()),
          q_host(course::make_data<T>(shape.q_elements(), course::DataPattern::kNormal, 1)),
          k_host(course::make_data<T>(shape.pool_elements(), course::DataPattern::kNormal, 2)),
          v_host(course::make_data<T>(shape.pool_elements(), course::DataPattern::kNormal, 3)),
          q(std::span<const T>(q_host)),
          k(std::span<const T>(k_host)),
          v(std::span<const T>(v_host)),
          table(std::span<const int>(table_host)),
          lengths(std::span<const int>(lengths_host)),
          copy(k_host.size()),
          out(shape.q_elements()),
          workspace(shape) {}

    std::vector<int> make_table() const {
        std::vector<int> pages(shape.pages);
        std::iota(pages.begin(), pages.end(), 0);
        course::Random random(30);
        for (std::size_t i = pages.size(); i > 1; --i)
            std::swap(pages[i - 1], pages[random.below(static_cast<std::uint32_t>(i))]);
        return pages;
    }

    float scale() const { return 1 / std::sqrt(static_cast<float>(shape.dim)); }

    void launch(const PagedVersion& version, cudaStream_t stream) {
        const PagedData& inputs = *this;
        version.launcher({shape, inputs.q.span(), inputs.k.span(), inputs.v.span(), inputs.table.span(),
                          inputs.lengths.span(), out.span(), scale()},
                         workspace, stream);
    }

    // The keys or values of a head of K, without gaps.
    std::vector<T> gathered(const std::vector<T>& pool, std::size_t sequence, std::size_t head) const {
        std::vector<T> rows;
        const auto length = static_cast<std::size_t>(lengths_host[sequence]);
        for (std::size_t token = 0; token < length; ++token) {
            const auto page =
                static_cast<std::size_t>(table_host[sequence * shape.table_pages + token / kPage]);
            const std::size_t at = ((page * shape.heads_kv + head) * kPage + token % kPage) * shape.dim;
            rows.insert(rows.end(), pool.begin() + static_cast<std::ptrdiff_t>(at),
                        pool.begin() + static_cast<std::ptrdiff_t>(at + shape.dim));
        }
        return rows;
    }

    course::VerifyResult verify(const PagedVersion& version) const {
        course::VerifyResult result = verify_rows(out.to_host(), shape.dim, [&](std::size_t row) {
            const std::size_t sequence = row / shape.heads;
            const std::size_t head = row % shape.heads / shape.group();
            return reference_row<T>(std::span(q_host).subspan(row * shape.dim, shape.dim),
                                    gathered(k_host, sequence, head), gathered(v_host, sequence, head),
                                    static_cast<std::size_t>(lengths_host[sequence]),
                                    static_cast<double>(scale()), paged_precision(version));
        });
        result.damage += out.damage();
        return result;
    }

    PagedShape shape;
    std::vector<int> lengths_host, table_host;
    std::vector<T> q_host, k_host, v_host;
    course::DeviceBuffer<T> q, k, v;
    course::DeviceBuffer<int> table, lengths;
    course::DeviceBuffer<T> copy;
    course::GuardedBuffer<T> out;
    PagedWorkspace workspace;
};

struct LatentData {
    explicit LatentData(const LatentShape& given)
        : shape(given),
          lengths_host(lengths_of(given.batch, given.capacity, false)),
          q_host(course::make_data<T>(shape.q_elements(), course::DataPattern::kNormal, 1)),
          cache_host(course::make_data<T>(shape.cache_elements(), course::DataPattern::kNormal, 2)),
          q(std::span<const T>(q_host)),
          cache(std::span<const T>(cache_host)),
          lengths(std::span<const int>(lengths_host)),
          copy(cache_host.size()),
          out(shape.out_elements()),
          workspace(shape) {}

    float scale() const { return 1 / std::sqrt(static_cast<float>(shape.width())); }

    void launch(const LatentVersion& version, cudaStream_t stream) {
        const LatentData& inputs = *this;
        version.launcher(
            {shape, inputs.q.span(), inputs.cache.span(), inputs.lengths.span(), out.span(), scale()},
            workspace, stream);
    }

    course::VerifyResult verify(const LatentVersion& version) const {
        course::VerifyResult result = verify_rows(out.to_host(), shape.rank, [&](std::size_t row) {
            const std::size_t sequence = row / shape.heads;
            const auto length = static_cast<std::size_t>(lengths_host[sequence]);
            const auto keys = std::span(cache_host)
                                  .subspan(sequence * shape.capacity * shape.width(), length * shape.width());
            return reference_row<T>(std::span(q_host).subspan(row * shape.width(), shape.width()), keys, keys,
                                    length, static_cast<double>(scale()), latent_precision(version));
        });
        result.damage += out.damage();
        return result;
    }

    LatentShape shape;
    std::vector<int> lengths_host;
    std::vector<T> q_host, cache_host;
    course::DeviceBuffer<T> q, cache;
    course::DeviceBuffer<int> lengths;
    course::DeviceBuffer<T> copy;
    course::GuardedBuffer<T> out;
    LatentWorkspace workspace;
};

// A draft that resembles the target: the target's logits are the draft's and a little noise.
struct SpeculationData {
    SpeculationData(std::size_t of_batch, std::size_t of_drafted, std::size_t of_vocabulary)
        : batch(of_batch),
          drafted(of_drafted),
          rows(drafted + 1),
          vocabulary(of_vocabulary),
          draft_host(course::make_data<float>(batch * drafted * vocabulary, course::DataPattern::kNormal, 1)),
          target_host(course::make_data<float>(batch * rows * vocabulary, course::DataPattern::kNormal, 2)),
          uniform_host(batch * rows),
          proposed_host(batch * drafted),
          accepted(batch),
          token(batch) {
        course::Random random(3);
        for (float& number : uniform_host)
            number = uniform_number(random);
        for (std::size_t row = 0; row < batch * drafted; ++row) {
            const auto logits = std::span(draft_host).subspan(row * vocabulary, vocabulary);
            const std::size_t target_row = row / drafted * rows + row % drafted;
            for (std::size_t x = 0; x < vocabulary; ++x) {
                logits[x] *= 3;  // a few tokens are likely
                float& target_logit = target_host[target_row * vocabulary + x];
                target_logit = logits[x] + 0.5f * target_logit;
            }
            proposed_host[row] = drawn_from(logits, uniform_number(random));
        }
        draft = course::DeviceBuffer<float>(std::span<const float>(draft_host));
        target = course::DeviceBuffer<float>(std::span<const float>(target_host));
        uniform = course::DeviceBuffer<float>(std::span<const float>(uniform_host));
        proposed = course::DeviceBuffer<int>(std::span<const int>(proposed_host));
        copy = course::DeviceBuffer<float>(target_host.size());
        for (std::size_t b = 0; b < batch; ++b)
            on_cpu.push_back(accept_on_cpu(
                drafted, vocabulary, std::span(draft_host).subspan(b * drafted * vocabulary),
                std::span(target_host).subspan(b * rows * vocabulary),
                std::span(proposed_host).subspan(b * drafted), std::span(uniform_host).subspan(b * rows)));
    }

    // Of the rows that are needed: up to the first rejection, or all of them.
    std::size_t least_bytes() const {
        std::size_t of_rows = 0;
        for (const Accepted& right : on_cpu) {
            const auto kept = static_cast<std::size_t>(right.accepted);
            of_rows += kept + 1 + std::min(kept + 1, drafted);
        }
        return of_rows * vocabulary * sizeof(float);
    }

    static float uniform_number(course::Random& random) {
        return static_cast<float>(random.below(1u << 24)) * 0x1p-24f;
    }
    // By inverse transform, from the softmax of these logits.
    static int drawn_from(std::span<const float> logits, float uniform) {
        double sum = 0;
        for (const float logit : logits)
            sum += std::exp(static_cast<double>(logit));
        double left = static_cast<double>(uniform) * sum;
        std::size_t x = 0;
        for (; x + 1 < logits.size(); ++x) {
            left -= std::exp(static_cast<double>(logits[x]));
            if (left < 0) break;
        }
        return static_cast<int>(x);
    }

    void launch(cudaStream_t stream) {
        const SpeculationData& inputs = *this;
        accept({batch, drafted, vocabulary, inputs.draft.span(), inputs.target.span(), inputs.proposed.span(),
                inputs.uniform.span(), accepted.span(), token.span()},
               stream);
    }

    // Both numbers of every sequence. Where rounding alone can have led to others than the CPU's,
    // the kernel's own stand for the expected ones.
    course::VerifyResult verify() {
        const std::vector<int> kept = accepted.to_host();
        const std::vector<int> next = token.to_host();
        mean_kept = static_cast<double>(sum_of(kept)) / static_cast<double>(batch);
        std::vector<int> got;
        std::vector<int> expected;
        for (std::size_t b = 0; b < batch; ++b) {
            const Accepted of_device{kept[b], next[b]};
            const bool near = may_be_right(
                of_device, drafted, vocabulary, std::span(draft_host).subspan(b * drafted * vocabulary),
                std::span(target_host).subspan(b * rows * vocabulary),
                std::span(proposed_host).subspan(b * drafted), std::span(uniform_host).subspan(b * rows));
            const Accepted& right = near ? of_device : on_cpu[b];
            got.insert(got.end(), {of_device.accepted, of_device.token});
            expected.insert(expected.end(), {right.accepted, right.token});
        }
        course::VerifyResult result = course::verify_exact(got, std::span<const int>(expected), 2);
        result.damage += accepted.damage() + token.damage();
        return result;
    }

    std::size_t batch, drafted;
    std::size_t rows;  // of the target for each sequence
    std::size_t vocabulary;
    double mean_kept = 0;  // of the last launch that was verified
    std::vector<float> draft_host, target_host, uniform_host;
    std::vector<int> proposed_host;
    std::vector<Accepted> on_cpu;
    course::DeviceBuffer<float> draft, target, uniform, copy;
    course::DeviceBuffer<int> proposed;
    course::GuardedBuffer<int> accepted, token;
};

// The versions of a list, each checked by itself, and the limit: a copy of the tokens' bytes.
template <class Data, class Versions, class Load>
course::Case make_case(const std::string& problem, std::shared_ptr<Data> data, const Versions& versions,
                       const Load& load, course::DeviceBuffer<T> Data::*from, std::size_t bytes) {
    course::UsualCase<Data> usual(problem, "bfloat16", std::move(data));
    usual.also_spoil([](Data& d) { d.out.spoil(); });
    usual.versions(
        versions, load, [](const auto& version, Data& d, cudaStream_t stream) { d.launch(version, stream); },
        [](const auto& version, const Data& d) { return d.verify(version); });
    usual.limit_copy(from, &Data::copy, bytes);
    return usual.result;
}

}  // namespace

std::vector<int> lengths_of(std::size_t batch, std::size_t capacity, bool ragged) {
    course::Random random(29);
    std::vector<int> lengths(batch, static_cast<int>(capacity));
    for (std::size_t i = 1; ragged && i < lengths.size(); ++i)
        lengths[i] = 1 + static_cast<int>(random.below(static_cast<std::uint32_t>(capacity)));
    return lengths;
}

bool is_latent(const course::Dims& dims) {
    return dims.size() == 5 && dims[2] == 1 && (dims[4] == 128 + kRope || dims[4] == 512 + kRope);
}

course::Case make_paged_case(const course::Dims& dims, bool ragged) {
    const std::string problem = "paged bfloat16";
    if (dims.size() != 5 || is_latent(dims) || (ragged && dims[0] == 1)) return {problem, "bfloat16"};
    const std::size_t table_pages = (dims[3] + kPage - 1) / kPage;
    const PagedShape shape{dims[0], dims[1], dims[2], dims[0] * table_pages, table_pages, dims[4]};
    const Shape plain{dims[0], dims[1], dims[2], 1, shape.capacity(), dims[4]};
    const auto data = std::make_shared<PagedData>(shape, ragged);
    const std::size_t tokens = sum_of(data->lengths_host);
    return make_case(fmt::format("{} {}{}", problem, name(plain), ragged ? " ragged" : ""), data,
                     paged_versions(), PagedLoad{shape, tokens}, &PagedData::k,
                     tokens * shape.heads_kv * shape.dim * sizeof(T));
}

// Half of the bytes of the cache, which are read and written.
course::Case make_latent_case(const course::Dims& dims) {
    const std::string problem = "latent bfloat16";
    if (!is_latent(dims)) return {problem, "bfloat16"};
    const LatentShape shape{dims[0], dims[1], dims[3], dims[4] - kRope};
    const auto data = std::make_shared<LatentData>(shape);
    const std::size_t tokens = sum_of(data->lengths_host);
    return make_case(problem + " " + name(shape), data, latent_versions(), LatentLoad{shape, tokens},
                     &LatentData::cache, tokens * shape.width() * sizeof(T) / 2);
}

course::Case make_speculation_case(const course::Dims& dims) {
    const std::string problem = "speculation";
    if (dims.size() != 3) return {problem, "float"};
    const auto data = std::make_shared<SpeculationData>(dims[0], dims[1], dims[2]);
    course::UsualCase<SpeculationData> usual(
        fmt::format("{} {}x{}x{}", problem, data->batch, data->drafted, data->vocabulary), "float", data);
    usual.also_spoil([](SpeculationData& d) { d.token.spoil(); });
    usual.output_in_place(&SpeculationData::accepted, [](SpeculationData& d) { return d.verify(); });
    const std::size_t bytes = data->least_bytes();
    usual.add({.name = "accept",
               .launch = [data](cudaStream_t stream) { data->launch(stream); },
               .work = {.bytes = static_cast<double>(bytes)}});
    usual.limit_copy(&SpeculationData::target, &SpeculationData::copy, bytes / 2);
    usual.result.comment = [data](std::span<const course::Record>) {
        return fmt::format("  Of {} proposed tokens of a sequence, {:.2f} are kept on average.\n",
                           data->drafted, data->mean_kept);
    };
    return usual.result;
}

}  // namespace day29
