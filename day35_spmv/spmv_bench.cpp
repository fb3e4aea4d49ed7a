// Day 35's program: every version verified and timed on five kinds of matrices, or on the user's,
// beside cuSPARSE and the CPU; then which format wins, and why. Last, products with a sparse
// vector.
//
//     day35_spmv --sweep       about 200 random matrices of nine kinds, for `auto` and all of cuSPARSE
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "beyond/spmspv.hpp"
#include "common/bench/draw.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/check.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/random.hpp"
#include "host/matrices.hpp"
#include "spmv.hpp"
#include "spmv_peer.hpp"
#include "spmv_plain_loop.hpp"

namespace {

using day35::CsrMatrix;
using day35::Index;
using day35::Offset;

struct Data {
    explicit Data(const CsrMatrix& matrix)
        : csr(matrix),
          x(day35::whole_numbers(matrix.shape().cols, 35)),
          expected(multiply_on_cpu(matrix, x)),
          x_device(std::span<const float>(x)),
          y_device(matrix.shape().rows) {}

    course::VerifyResult verify(std::span<const float> y) const {
        return course::verify(y, expected.y, {}, expected.magnitude);
    }

    CsrMatrix csr;
    std::vector<float> x;
    day35::Reference expected;
    course::DeviceBuffer<float> x_device;
    course::GuardedBuffer<float> y_device;
};

// What there is to say about a version beside its times.
struct Format {
    std::string version;
    std::string choice;
    double stored_bytes = 0;
    double conversion_ms = 0;  // from CSR on the host to ready on the device
};

// Bytes of x that must be read: of no more elements than there are entries.
double vector_bytes(const CsrMatrix& csr) {
    const auto read = std::min<double>(csr.shape().cols, static_cast<double>(csr.entries()));
    return sizeof(float) * (read + csr.shape().rows);
}

bool is_timed_warm(const course::Record& record) {
    return record.measurement && record.measurement->l2 == course::L2State::kWarm && !record.failed() &&
           record.device != "host CPU";
}

// The fastest of the records with this role; nothing if none was timed.
const course::Record* fastest(std::span<const course::Record> records, course::Role role) {
    const course::Record* best = nullptr;
    for (const course::Record& record : records) {
        if (record.role != role || !is_timed_warm(record)) continue;
        if (best == nullptr || record.measurement->ms.median < best->measurement->ms.median) best = &record;
    }
    return best;
}

// What speaks for the winner: for those that share out entries how unlike the rows are, for slices
// how little they fill up.
std::string why(const day35::RowStatistics& rows, const Format& winner, double csr_bytes) {
    const std::string kernel =
        winner.version == "auto" ? winner.choice.substr(0, winner.choice.find(',')) : winner.version;
    std::string text = fmt::format("rows of {:.1f} entries on average, {} at most, {} empty", rows.mean,
                                   rows.longest, rows.empty);
    if (kernel == "sell") text += fmt::format("; {:.0f} % of filling", 100 * (rows.sorted_filling - 1));
    if (kernel == "packed_sell") {
        const bool sorted = winner.choice.find("sigma 1,") == std::string::npos;
        const double filling = sorted ? rows.sorted_filling : rows.sell_filling;
        text += fmt::format("; {:.0f} % of filling", 100 * (filling - 1));
    }
    if (kernel == "ell") text += fmt::format("; {:.0f} % of filling", 100 * (rows.ell_filling - 1));
    const double saved = 1 - winner.stored_bytes / csr_bytes;
    if (saved > 0.03) text += fmt::format("; it stores {:.0f} % less than CSR", 100 * saved);
    return text;
}

// Names of the versions, but for the best, that are as fast within the spread of both; "" if there
// are none.
std::string as_fast(std::span<const course::Record> records, const course::Record& best) {
    std::string text;
    for (const course::Record& record : records) {
        if (&record == &best || record.role != course::Role::kOurs || !is_timed_warm(record)) continue;
        const course::Statistics& ms = record.measurement->ms;
        const course::Statistics& best_ms = best.measurement->ms;
        if (ms.median - best_ms.median <= ms.spread + best_ms.spread)
            text += (text.empty() ? "" : ", ") + record.version;
    }
    return text;
}

std::string comment(const Data& data, const std::vector<Format>& formats,
                    std::span<const course::Record> records) {
    const auto entries = std::max(1.0, static_cast<double>(data.csr.entries()));
    std::string text = fmt::format("  {:<16}{:>10}{:>14}{:>12}{:>12}  {}\n", "format of", "MB", "bytes/entry",
                                   "conversion", "products", "chosen");
    for (const Format& format : formats) {
        double ms = 0;
        for (const course::Record& record : records) {
            if (record.version == format.version && record.measurement && ms == 0)
                ms = record.measurement->ms.median;
        }
        text += fmt::format("  {:<16}{:>10.3f}{:>14.2f}{:>9.1f} ms{:>12}  {}\n", format.version,
                            format.stored_bytes * 1e-6, format.stored_bytes / entries, format.conversion_ms,
                            ms > 0 ? fmt::format("{:.0f}", format.conversion_ms / ms) : "-", format.choice);
    }
    text +=
        "  (conversion: on the host, from CSR, with the way to the device; products: how many take as "
        "long)\n";
    const course::Record* const best = fastest(records, course::Role::kOurs);
    if (best == nullptr) return text;
    const auto format = std::find_if(formats.begin(), formats.end(),
                                     [&](const Format& one) { return one.version == best->version; });
    const double csr_bytes = 8 * entries + 4.0 * data.csr.shape().rows;
    const course::Statistics& ms = best->measurement->ms;
    text += fmt::format("  {} {}, with its data in L2 where that has room ({:.1f} us +- {:.1f} us)",
                        best->version, formats.size() > 1 ? "wins" : "ran alone", 1e3 * ms.median,
                        1e3 * ms.spread);
    if (data.csr.entries() > 0) text += ": " + why(row_statistics(data.csr), *format, csr_bytes);
    const std::string others = as_fast(records, *best);
    text += others.empty() ? "\n" : "\n  as fast, within the spread: " + others + "\n";
    if (const course::Record* const peer = fastest(records, course::Role::kPeer)) {
        text += fmt::format("  the best of cuSPARSE is {}, which takes {:.2f} times as long as {}\n",
                            peer->version, peer->measurement->ms.median / best->measurement->ms.median,
                            best->version);
    }
    return text;
}

course::Case make_case(const std::string& name, const CsrMatrix& csr) {
    const auto data = std::make_shared<Data>(csr);
    const auto formats = std::make_shared<std::vector<Format>>();
    const day35::RowStatistics statistics = row_statistics(csr);
    course::UsualCase<Data> usual(
        fmt::format("{} {}x{}, {} entries", name, csr.shape().rows, csr.shape().cols, csr.entries()), "float",
        data);
    usual.output(&Data::y_device, [](const Data& d, const auto& y) { return d.verify(y); });
    usual.result.comment = [data, formats](std::span<const course::Record> records) {
        return comment(*data, *formats, records);
    };

    const double flops = 2 * static_cast<double>(csr.entries());
    const double written = sizeof(float) * static_cast<double>(csr.shape().rows);
    const auto work = [vectors = vector_bytes(csr), written, flops](double matrix_bytes) {
        return course::Work{.bytes = matrix_bytes + vectors, .written = written, .flops = flops};
    };
    usual.plain_loop(
        work(8.0 * static_cast<double>(csr.entries() + csr.shape().rows + 1)),
        static_cast<double>(csr.entries()) * 5e-9,
        [rows = csr.shape().rows] { return course::unwritten<float>(rows); },
        [](const Data& d, std::span<float> y, int threads) { multiply_plainly(d.csr, d.x, y, threads); },
        [](const Data& d, const auto& y) { return d.verify(y); });
    for (const day35::Spmv& version : day35::versions()) {
        const auto prepare = [data, formats, work, &version](course::Contestant& contestant) {
            const auto begin = std::chrono::steady_clock::now();
            const std::shared_ptr<day35::Operator> made =
                version.launcher(data->csr, day35::OffsetRule::kAsNeeded);
            CUDA_CHECK(cudaDeviceSynchronize());
            const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
            formats->push_back(
                {version.name, made->choice(), static_cast<double>(made->stored_bytes()), took.count()});
            contestant.work = work(static_cast<double>(made->least_bytes()));
            contestant.launch = [data, made](cudaStream_t stream) {
                made->multiply(data->x_device.span(), data->y_device.span(), stream);
            };
        };
        usual.add({.name = version.name, .cannot_run = version.cannot_run(statistics), .prepare = prepare});
    }
    for (course::Contestant& peer :
         cusparse_products(csr, std::as_const(*data).x_device.span(), data->y_device.span(), work))
        usual.add(std::move(peer));
    return usual.result;
}

// --- The five matrices: with whole values, so that a single entry too few or too many shows ------

Index rows_of(const course::Dims& size) {
    if (size.size() != 1 || size[0] > (1u << 28))
        throw std::invalid_argument("expected one number of rows up to 2^28, for example 1048576");
    return static_cast<Index>(size[0]);
}

Index root(double number, double exponent) {
    return static_cast<Index>(std::floor(std::pow(number, exponent) + 1e-6));
}

course::Case band_case(const course::Dims& size) {
    return make_case("27-band", with_whole_values(day35::banded(rows_of(size), 27)));
}
course::Case random_case(const course::Dims& size) {
    const Index rows = rows_of(size);
    return make_case("16 random", with_whole_values(day35::uniform_random({rows, rows}, 16)));
}
course::Case power_law_case(const course::Dims& size) {
    const Index rows = rows_of(size);
    return make_case("power law", with_whole_values(day35::power_law({rows, rows}, 9.56)));
}
course::Case laplacian_case(const course::Dims& size) {
    return make_case("laplacian", day35::laplacian_2d(root(4.0 * rows_of(size), 0.5)));
}
course::Case blocks_case(const course::Dims& size) {
    return make_case("3x3 blocks",
                     with_whole_values(day35::node_blocks(root(rows_of(size) / 4.0, 1 / 3.0), 3)));
}

// --- A sparse x, of 0.01 to 10 % of its columns, and 16 random entries in each row ---------------

struct SparseData {
    SparseData(const CsrMatrix& matrix, const day35::SparseVector& a_x)
        : csr(matrix),
          x(a_x),
          expected(multiply_on_cpu(matrix, a_x)),
          x_cols(std::span<const Index>(x.cols)),
          x_values(std::span<const float>(x.values)),
          dense(std::span<const float>(in_all_columns())),
          y(matrix.shape().rows),
          y_rows(matrix.shape().rows),
          y_count(1) {}

    std::vector<float> in_all_columns() const {
        std::vector<float> all(csr.shape().cols, 0.0f);
        for (std::size_t i = 0; i < x.cols.size(); ++i)
            all[x.cols[i]] = x.values[i];
        return all;
    }

    day35::SparseX sparse_x() const { return {x_cols.span(), x_values.span()}; }
    day35::SparseY sparse_y() { return {y_rows.span(), y.span(), y_count.span()}; }

    // A sparse y: its rows, and then their values.
    course::VerifyResult verify_sparse() const {
        course::VerifyResult result =
            course::verify_exact(y_count.to_host(), std::vector{static_cast<Index>(expected.work.met_rows)});
        if (result.ok()) {
            std::vector<Index> rows = y_rows.to_host();
            rows.resize(expected.met_rows.size());
            result = course::verify_exact(rows, expected.met_rows);
        }
        if (result.ok()) {
            std::vector<float> values = y.to_host();
            values.resize(expected.met_rows.size());
            std::vector<double> in_these_rows;
            for (const Index row : expected.met_rows)
                in_these_rows.push_back(expected.y[row]);
            result = course::verify(values, in_these_rows, {.factor = 0});
        }
        result.damage += y_rows.damage() + y_count.damage();
        return result;
    }

    CsrMatrix csr;
    day35::SparseVector x;
    day35::SparseReference expected;
    course::DeviceBuffer<Index> x_cols;
    course::DeviceBuffer<float> x_values;
    course::DeviceBuffer<float> dense;
    course::GuardedBuffer<float> y;
    course::GuardedBuffer<Index> y_rows;
    course::GuardedBuffer<Index> y_count;
};

// Entries in `count` of the columns, ascending, with whole values.
day35::SparseVector some_columns(Index cols, Index count) {
    course::Random random(35);
    day35::SparseVector x;
    // Of the columns that are left, each is as likely to be taken as the others.
    for (Index col = 0; col < cols; ++col) {
        const Index missing = count - static_cast<Index>(x.cols.size());
        if (static_cast<Index>(random.below(static_cast<std::uint32_t>(cols - col))) < missing)
            x.cols.push_back(col);
    }
    x.values = day35::whole_numbers(x.cols.size(), 35);
    return x;
}

std::string comment_on_sparse(const SparseData& data) {
    const day35::SparseWork& work = data.expected.work;
    return fmt::format("  x has {} of {} columns; {} of {} entries of A meet it, in {} of {} rows\n",
                       work.x_entries, data.csr.shape().cols, work.met_entries, data.csr.entries(),
                       work.met_rows, work.rows);
}

course::Case sparse_case(const course::Dims& size, double percent) {
    const Index rows = rows_of(size);
    const CsrMatrix csr = with_whole_values(day35::uniform_random({rows, rows}, 16));
    const auto count = static_cast<Index>(std::max(1.0, std::round(0.01 * percent * rows)));
    const auto data = std::make_shared<SparseData>(csr, some_columns(rows, count));
    course::UsualCase<SparseData> usual(fmt::format("16 random {}x{}, x {} %", rows, rows, percent), "float",
                                        data);
    usual.output(&SparseData::y, [](const SparseData& d, const auto& y) {
        return course::verify(y, d.expected.y, {.factor = 1}, d.expected.magnitude);
    });
    usual.also_spoil([](SparseData& d) {
        d.y_rows.spoil();
        d.y_count.spoil();
    });
    usual.result.comment = [data](std::span<const course::Record>) { return comment_on_sparse(*data); };
    for (const day35::Spmspv& version : day35::sparse_vector_versions()) {
        const auto prepare = [data, &version](course::Contestant& contestant) {
            const std::shared_ptr<day35::SparseProduct> made = version.launcher(data->csr);
            CUDA_CHECK(cudaDeviceSynchronize());
            if (made->has_sparse_y()) {
                contestant.verify = [data] { return data->verify_sparse(); };
                contestant.launch = [data, made](cudaStream_t stream) {
                    made->multiply(data->sparse_x(), data->sparse_y(), stream);
                };
            } else {
                contestant.launch = [data, made](cudaStream_t stream) {
                    made->multiply(data->sparse_x(), data->y.span(), stream);
                };
            }
        };
        usual.add({.name = version.name, .work = version.work(data->expected.work), .prepare = prepare});
    }
    // cuSPARSE has no product with a sparse x: its x is dense before the clock starts.
    const course::Work of_columns =
        course::find_version(day35::sparse_vector_versions(), "columns").work(data->expected.work);
    for (course::Contestant& peer : cusparse_products(csr, std::as_const(*data).dense.span(), data->y.span(),
                                                      [of_columns](double) { return of_columns; })) {
        const bool other_format =
            peer.name.find("coo") != std::string::npos || peer.name.find("sell") != std::string::npos;
        if (!other_format) usual.add(std::move(peer));
    }
    return usual.result;
}

course::Case sparse_case_of_a_hundredth_percent(const course::Dims& size) {
    return sparse_case(size, 0.01);
}
course::Case sparse_case_of_a_tenth_percent(const course::Dims& size) {
    return sparse_case(size, 0.1);
}
course::Case sparse_case_of_one_percent(const course::Dims& size) {
    return sparse_case(size, 1);
}
course::Case sparse_case_of_ten_percent(const course::Dims& size) {
    return sparse_case(size, 10);
}

// --- The sweep: kind x rows x mean of the entries per row, drawn at random ------------------------

std::vector<course::Dims> sweep_of_matrices() {
    constexpr std::size_t kCount = 200;
    constexpr std::size_t kMostEntries = std::size_t{1} << 23;
    course::Random random(35);
    const auto draw = [&](double least, double most) {  // 2^least to 2^most, the logarithm uniform
        return static_cast<std::size_t>(std::lround(std::exp2(random.uniform(least, most))));
    };
    std::vector<course::Dims> sizes;
    while (sizes.size() < kCount) {
        const std::size_t rows = draw(10, 21);
        const std::size_t mean = draw(0, 6.5);
        if (rows * mean <= kMostEntries)
            sizes.push_back({1 + sizes.size() % day35::families().size(), rows, mean});
    }
    return sizes;
}

course::Case make_sweep_case(const course::Dims& size) {
    const std::span<const day35::Family> families = day35::families();
    if (size.size() != 3 || size[0] < 1 || size[0] > families.size() || size[1] > (1u << 28) ||
        size[2] > 4096)
        throw std::invalid_argument(
            "expected kind x rows x mean of a row's entries, for example 2x1000000x8");
    const day35::Family& family = families[size[0] - 1];
    const CsrMatrix csr = family.make(static_cast<Index>(size[1]), static_cast<Index>(size[2]));
    // More entries than places: cuSPARSE takes such a matrix in one format only.
    if (csr.entries() > Offset{csr.shape().rows} * csr.shape().cols) return {};
    course::Case result = make_case(family.name, with_whole_values(csr));
    result.comment = {};
    std::erase_if(result.contestants, [](const course::Contestant& one) {
        return one.name != "auto" && !one.name.starts_with("cusparse");
    });
    return result;
}

course::RandomProblem random_sparse(course::Draw& draw) {
    const std::size_t number = draw.uniform(1, day35::families().size());
    const std::size_t most = std::max<std::size_t>(draw.limit(), 64);
    const std::size_t rows = draw.log_uniform(64, most);
    // "wide" has 64 times as many entries in each row, and "tall" a 64th of the columns: no matrix
    // has more entries than places.
    const std::size_t mean =
        draw.log_uniform(1, std::clamp<std::size_t>(std::min(most / rows, rows / 64), 1, 90));
    return {day35::families()[number - 1].name, {number, rows, mean}, [=] {
                return make_sweep_case({number, rows, mean});
            }};
}

void add_options(CLI::App& app, course::Program& program, std::string& file) {
    app.add_option("--matrix", file, "a Matrix Market file (.mtx), instead of the five matrices")
        ->excludes(app.get_option("--size"))
        ->excludes(app.get_option("--bench"));
    app.footer("Example: " + program.day + " --size 100000; " + program.day + " --matrix my.mtx");
    app.callback([&] {
        if (file.empty()) return;
        program.make_cases = {[&file](const course::Dims&) {
            try {
                return make_case(std::filesystem::path(file).filename().string(),
                                 day35::read_matrix_market(file));
            } catch (const day35::MatrixMarketError& error) {
                throw std::invalid_argument(error.what());
            }
        }};
    });
}

}  // namespace

int main(int argc, char** argv) {
    std::string file;
    const course::Program program{
        .day = "day35_spmv",
        .title = "y = A x, A sparse, FP32; size: rows (the Laplacian has four times as many)",
        .default_size = {1 << 12},
        .bench_sizes = {{1 << 20}},
        .sweep_sizes = sweep_of_matrices(),
        .make_cases = {band_case, random_case, power_law_case, laplacian_case, blocks_case,
                       sparse_case_of_a_hundredth_percent, sparse_case_of_a_tenth_percent,
                       sparse_case_of_one_percent, sparse_case_of_ten_percent},
        .sweep_cases = {make_sweep_case},
        .sweep_repeats = course::kSweepRepeats,
        .distributions = {{.name = "matrices",
                           .text = "rows and the mean of a row's entries, of nine kinds; most: of entries",
                           .most = std::size_t{1} << 24,
                           .most_on_cpu = 1 << 17,
                           .ours = {"auto"},
                           .draw = random_sparse}},
        .add_options = [&file](CLI::App& app, course::Program& own) { add_options(app, own, file); }};
    return course::run_program(program, argc, argv);
}
