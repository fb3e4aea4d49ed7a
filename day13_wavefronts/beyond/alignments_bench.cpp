#include "alignments_bench.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "alignments.hpp"
#include "common/bench/machine.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/check.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"

namespace day13 {
namespace {

using course::DeviceBuffer;

constexpr std::uint64_t kSeed = 1313;
constexpr double kMostChecked = 4e9;  // cells that a plain loop computes in some seconds

bool is_too_long(const Sequences& lengths) {
    return lengths.cells() > kMostChecked;
}

std::vector<Symbol> random_symbols(std::size_t n, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<Symbol> symbols(n);
    for (Symbol& symbol : symbols)
        symbol = static_cast<Symbol>(random.below(4));
    return symbols;
}

// a with one symbol in ten replaced, inserted or left out.
std::vector<Symbol> edited(const std::vector<Symbol>& a, std::size_t n) {
    course::Random random(kSeed + 1);
    std::vector<Symbol> b;
    std::size_t i = 0;
    while (b.size() < n) {
        const std::uint32_t what = random.below(30);
        const auto other = static_cast<Symbol>(random.below(4));
        b.push_back(what <= 1 || i >= a.size() ? other : a[i]);
        i += what == 1 ? 0 : what == 2 ? 2 : 1;
    }
    return b;
}

void add_rate(std::span<course::Record> records, double cells) {
    for (course::Record& record : records)
        if (record.measurement)
            record.figures.push_back({"GCUPS", cells / record.measurement->ms.median * 1e-6});
}

std::string named(const std::string& what, const Sequences& lengths) {
    return what + " " + std::to_string(lengths.m) + "x" + std::to_string(lengths.n);
}

constexpr Scoring kScoring{};

// --- Traceback -----------------------------------------------------------------------------------

struct Traced {
    Traced(const Sequences& lengths, bool local)
        : is_local(local),
          a(random_symbols(lengths.m, kSeed)),
          b(edited(a, lengths.n)),
          a_device(std::span<const Symbol>(a)),
          b_device(std::span<const Symbol>(b)),
          script(lengths.m + lengths.n),
          alignment(1),
          workspace(lengths.m, lengths.n) {
        expected = is_local ? local_score_on_cpu(a, b, kScoring) : edit_distances_on_cpu(a, b).back();
    }

    // The score that is reported, what the steps add up to, and where they start and end. Adds the
    // steps up from the alignment's beginning.
    course::VerifyResult verify(const Alignment& got) const {
        const std::vector<Step> all = script.to_host();
        int cost = 0;
        auto i = static_cast<std::size_t>(got.a_begin);
        auto j = static_cast<std::size_t>(got.b_begin);
        const bool is_inside = got.steps >= 0 && static_cast<std::size_t>(got.steps) <= all.size();
        for (std::size_t s = all.size() - (is_inside ? static_cast<std::size_t>(got.steps) : 0);
             s < all.size() && i <= a.size() && j <= b.size(); ++s) {
            const bool takes_a = all[s] != Step::kOnlyB;
            const bool takes_b = all[s] != Step::kOnlyA;
            if (takes_a && takes_b) {
                const bool is_equal = i < a.size() && j < b.size() && a[i] == b[j];
                cost += is_local ? (is_equal ? kScoring.match : kScoring.mismatch) : (is_equal ? 0 : 1);
            } else {
                cost += is_local ? kScoring.gap : 1;
            }
            i += takes_a ? 1 : 0;
            j += takes_b ? 1 : 0;
        }
        const auto m = static_cast<int>(a.size());
        const auto n = static_cast<int>(b.size());
        course::VerifyResult result = course::verify_exact(
            std::vector<int>{got.score, cost, static_cast<int>(i), static_cast<int>(j),
                             is_local ? 0 : got.a_begin, is_local ? 0 : got.b_begin},
            std::vector<int>{expected, expected, is_local ? got.a_end : m, is_local ? got.b_end : n, 0, 0});
        result.damage = script.damage();
        return result;
    }

    bool is_local;
    std::vector<Symbol> a, b;
    int expected = 0;
    DeviceBuffer<Symbol> a_device, b_device;
    course::GuardedBuffer<Step> script;
    course::GuardedBuffer<Alignment> alignment;
    TraceWorkspace workspace;
};

course::UsualCase<Traced> traced(const Sequences& lengths, bool is_local) {
    course::UsualCase<Traced> usual(named(is_local ? "local traceback" : "traceback", lengths), "uint8",
                                    std::make_shared<Traced>(lengths, is_local));
    usual.output(&Traced::alignment,
                 [](const Traced& data, const auto& got) { return data.verify(got.front()); });
    usual.also_spoil([](Traced& data) { data.script.spoil(); });
    usual.result.derive_figures = [cells = lengths.cells()](std::span<course::Record> records) {
        add_rate(records, cells);
    };
    return usual;
}

// --- Scores --------------------------------------------------------------------------------------

struct AffinePair {
    explicit AffinePair(const Sequences& lengths)
        : a(random_symbols(lengths.m, kSeed)),
          b(edited(a, lengths.n)),
          score(1),
          workspace(lengths.m, lengths.n) {
        expected = {affine_score_on_cpu(a, b, {})};
        a_device = DeviceBuffer<Symbol>(std::span<const Symbol>(a));
        b_device = DeviceBuffer<Symbol>(std::span<const Symbol>(b));
    }

    std::vector<Symbol> a, b;
    std::vector<int> expected;
    DeviceBuffer<Symbol> a_device{0}, b_device{0};
    course::GuardedBuffer<int> score;
    AffineWorkspace workspace;
};

// Whole coordinates, so that squares are exact and roots are rounded once.
std::vector<float2> curve(std::size_t n, std::uint64_t seed) {
    course::Random random(seed);
    std::vector<float2> points(n);
    int x = 0;
    int y = 0;
    for (float2& point : points) {
        x += random.integer(-3, 5);
        y += random.integer(-4, 4);
        x = std::min(x, 2000);
        y = std::clamp(y, -2000, 2000);
        point = float2{static_cast<float>(x), static_cast<float>(y)};
    }
    return points;
}

struct Curves {
    explicit Curves(const Sequences& lengths)
        : a(curve(lengths.m, kSeed)),
          b(curve(lengths.n, kSeed + 1)),
          expected(frechet_distances_on_cpu(a, b)),
          a_device(std::span<const float2>(a)),
          b_device(std::span<const float2>(b)),
          distances(lengths.n + 1),
          workspace(lengths.m, lengths.n) {
        for (double& distance : expected)  // rounded once, as sqrtf() does
            distance = static_cast<float>(distance);
    }

    std::vector<float2> a, b;
    std::vector<double> expected;
    DeviceBuffer<float2> a_device, b_device;
    course::GuardedBuffer<float> distances;
    Workspace workspace;
};

// --- A database ----------------------------------------------------------------------------------

std::vector<std::int64_t> random_begins(std::size_t count, std::size_t longest) {
    course::Random random(kSeed + 2);
    std::vector<std::int64_t> begins{0};
    for (std::size_t k = 0; k < count; ++k)
        begins.push_back(begins.back() + 1 + random.below(static_cast<std::uint32_t>(longest)));
    return begins;
}

struct Searched {
    explicit Searched(std::size_t n)
        : query(random_symbols(std::min<std::size_t>(n / 4, 512), kSeed)),
          begins(random_begins(std::max(n / 4, n * n / 4096), std::min<std::size_t>(n, 700))),
          symbols(random_symbols(static_cast<std::size_t>(begins.back()), kSeed + 3)),
          query_device(std::span<const Symbol>(query)),
          database(symbols, begins),
          scores(begins.size() - 1) {}

    Search size() const {
        return {.query = query.size(),
                .sequences = database.count(),
                .symbols = database.symbols(),
                .most = kScoring.match * static_cast<int>(std::min(query.size(), database.longest()))};
    }

    std::vector<Symbol> query;
    std::vector<std::int64_t> begins;
    std::vector<Symbol> symbols;
    std::vector<int> expected;  // empty before the first result is verified: it can take a minute
    DeviceBuffer<Symbol> query_device;
    Database database;
    course::GuardedBuffer<int> scores;
};

}  // namespace

void add_rates(std::span<course::Record> records, double cells, double instructions) {
    constexpr double kIntegerLanes = 64;
    int device = 0;
    int kilohertz = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, device));
    const double most = course::multiprocessors() * kIntegerLanes * kilohertz * 1e3 / instructions;
    add_rate(records, cells);
    if (course::is_cpu_stand_in()) return;
    for (course::Record& record : records)
        if (record.measurement)
            record.figures.push_back(
                {"% of integer issue", 100 * cells / record.measurement->ms.median * 1e3 / most});
}

course::Case trace_case(const course::Dims& size) {
    const Sequences lengths{size.front(), size.back()};
    if (is_too_long(lengths)) return {};
    course::UsualCase<Traced> usual = traced(lengths, false);
    usual.versions(trace_versions(), lengths,
                   [](const TraceVersion& version, Traced& data, cudaStream_t stream) {
                       version.launcher(data.a_device.span(), data.b_device.span(), data.script.span(),
                                        data.alignment.span(), data.workspace, stream);
                   });
    return usual.result;
}

course::Case local_trace_case(const course::Dims& size) {
    const Sequences lengths{size.front(), size.back()};
    if (is_too_long(lengths)) return {};
    course::UsualCase<Traced> usual = traced(lengths, true);
    usual.versions(local_trace_versions(), lengths,
                   [](const LocalTraceVersion& version, Traced& data, cudaStream_t stream) {
                       version.launcher(data.a_device.span(), data.b_device.span(), kScoring,
                                        data.script.span(), data.alignment.span(), data.workspace, stream);
                   });
    return usual.result;
}

course::Case affine_case(const course::Dims& size) {
    const Sequences lengths{size.front(), size.back()};
    if (is_too_long(lengths)) return {};
    course::UsualCase<AffinePair> usual(named("affine alignment", lengths), "uint8",
                                        std::make_shared<AffinePair>(lengths));
    usual.output(&AffinePair::score, [](const AffinePair& data, const auto& got) {
        return course::verify_exact(got, data.expected);
    });
    usual.versions(affine_versions(), lengths,
                   [](const AffineVersion& version, AffinePair& data, cudaStream_t stream) {
                       version.launcher(data.a_device.span(), data.b_device.span(), {}, data.score.span(),
                                        data.workspace, stream);
                   });
    usual.result.derive_figures = [cells = lengths.cells()](std::span<course::Record> records) {
        add_rate(records, cells);
    };
    return usual.result;
}

course::Case frechet_case(const course::Dims& size) {
    const Sequences lengths{size.front(), size.back()};
    if (is_too_long(lengths)) return {};
    course::UsualCase<Curves> usual(named("Frechet distance", lengths), "float",
                                    std::make_shared<Curves>(lengths));
    usual.output(&Curves::distances, [](const Curves& data, const auto& got) {
        return course::verify(got, data.expected, {.factor = 0});
    });
    const double read = static_cast<double>((lengths.m + lengths.n) * sizeof(float2));
    const double written = static_cast<double>((lengths.n + 1) * sizeof(float));
    usual.add(
        {.name = "frechet_strips",
         .launch =
             [data = usual.data](cudaStream_t stream) {
                 frechet_distances(data->a_device.span(), data->b_device.span(), data->distances.span(),
                                   data->workspace, stream);
             },
         .work = {.bytes = read + written, .written = written, .arithmetic = course::Arithmetic::kOther}});
    usual.result.derive_figures = [cells = lengths.cells()](std::span<course::Record> records) {
        add_rate(records, cells);
    };
    return usual.result;
}

course::Case search_case(const course::Dims& size) {
    if (size.size() != 1 || size.front() < 4 || size.front() > 20'000) return {};
    const std::size_t n = size.front();
    const auto searched = std::make_shared<Searched>(n);
    course::UsualCase<Searched> usual("search " + std::to_string(searched->size().sequences) + " sequences",
                                      "uint8", searched);
    usual.output(&Searched::scores, [](Searched& data, const auto& got) {
        if (data.expected.empty())
            data.expected = search_on_cpu(data.query, data.symbols, data.begins, kScoring);
        return course::verify_exact(got, data.expected);
    });
    const Search search = searched->size();
    usual.versions(
        search_versions(), search, [](const SearchVersion& version, Searched& data, cudaStream_t stream) {
            version.launcher(data.query_device.span(), data.database, kScoring, data.scores.span(), stream);
        });
    usual.result.derive_figures = [cells = search.cells()](std::span<course::Record> records) {
        for (course::Record& record : records)
            add_rates({&record, 1}, cells,
                      record.version == "pair_halves" ? kLocalInstructions / 2 : kLocalInstructions);
    };
    return usual.result;
}

}  // namespace day13
