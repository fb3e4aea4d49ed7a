// Day 4's program: the latency of lists from L1 to DRAM, and the bandwidth of L2 and DRAM with few
// and with many bytes in flight. Beyond: the bandwidth of L1 and of shared memory, and
// a table that stays in L2, lists with a page for each line, and blocks that note where they ran.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "beyond/near_and_far.hpp"
#include "common/bench/machine.hpp"
#include "common/bench/usual_case.hpp"
#include "common/check/guarded_buffer.hpp"
#include "common/check/require.hpp"
#include "common/device/device_buffer.hpp"
#include "common/device/grid.hpp"
#include "common/device/random.hpp"
#include "memory_hierarchy.hpp"

namespace {

using course::DeviceBuffer;
using course::GuardedBuffer;

constexpr std::size_t kLineBytes = 128;
constexpr unsigned kSteps = 1 << 15;

std::string bytes_text(std::size_t bytes) {
    if (bytes >> 30 != 0 && bytes % (1 << 30) == 0) return fmt::format("{} GB", bytes >> 30);
    if (bytes >> 20 != 0 && bytes % (1 << 20) == 0) return fmt::format("{} MB", bytes >> 20);
    if (bytes >> 10 != 0 && bytes % (1 << 10) == 0) return fmt::format("{} KB", bytes >> 10);
    return fmt::format("{} bytes", bytes);
}

// Each launch continues where the one before ended: a launch that followed the same steps again
// would find their lines in L2.
struct ChaseData {
    explicit ChaseData(std::size_t lines)
        : ring(day04::random_ring(lines, 4)), next(lines * kLineBytes / sizeof(unsigned)), last(1) {
        CUDA_CHECK(cudaMemset(next.data(), 0, next.bytes()));
        CUDA_CHECK(cudaMemcpy2D(next.data(), kLineBytes, ring.next.data(), sizeof(unsigned), sizeof(unsigned),
                                lines, cudaMemcpyHostToDevice));
    }
    void launch(const day04::ChaseVersion& version, cudaStream_t stream) {
        version.launcher(next.span(), ring.after(rank, 0), kSteps, last.span(), stream);
        rank = (rank + kSteps) % ring.order.size();
    }

    day04::Ring ring;
    DeviceBuffer<unsigned> next;
    GuardedBuffer<unsigned> last;
    std::size_t rank = 0;  // where the next launch starts, and so where the last one ended
};

void ns_per_load(std::span<course::Record> records) {
    for (course::Record& record : records)
        if (record.measurement)
            record.figures.push_back({"ns per load", record.measurement->ms.median * 1e6 / kSteps});
}

course::Case chase_case(const course::Dims& size) {
    const std::size_t bytes = course::only_extent(size, "bytes");
    course::require(bytes % kLineBytes == 0 && bytes > 0, "size is ", bytes,
                    " bytes; expected a multiple of ", kLineBytes);
    const day04::Chase problem{bytes / kLineBytes, kSteps};
    course::UsualCase<ChaseData> usual("chase " + bytes_text(bytes), "uint32",
                                       std::make_shared<ChaseData>(problem.lines));
    usual.output(&ChaseData::last, [](const ChaseData& data, const auto& got) {
        const std::vector<unsigned> expected = {data.ring.after(data.rank, 0)};
        return course::verify_exact(got, expected);
    });
    usual.versions(
        day04::chase_versions(), problem,
        [](const auto& version, ChaseData& data, cudaStream_t stream) { data.launch(version, stream); });
    usual.result.derive_figures = ns_per_load;
    return usual.result;
}

// --- Bandwidth -----------------------------------------------------------------------------------

struct ReadData {
    explicit ReadData(const day04::Read& problem)
        : x(problem.elements), copy(problem.elements), sums(day04::read_threads(problem.blocks_per_sm)) {
        std::vector<unsigned> values(problem.elements);
        course::Random random(4);
        for (unsigned& value : values)
            value = static_cast<unsigned>(random.next());
        expected = day04::sum_on_cpu(values);
        CUDA_CHECK(cudaMemcpy(x.data(), values.data(), x.bytes(), cudaMemcpyHostToDevice));
    }

    DeviceBuffer<unsigned> x, copy;
    GuardedBuffer<unsigned> sums;
    unsigned expected = 0;
};

course::Case read_case(const course::Dims& size, const std::string& what, unsigned blocks_per_sm,
                       std::span<const day04::ReadVersion> versions) {
    const std::size_t bytes = course::only_extent(size, "bytes");
    const day04::Read problem{bytes / sizeof(unsigned), blocks_per_sm};
    course::UsualCase<ReadData> usual(
        fmt::format("{} {}, {} warps per SM", what, bytes_text(bytes), 8 * blocks_per_sm), "uint32",
        std::make_shared<ReadData>(problem));
    usual.output(&ReadData::sums, [](const ReadData& data, const auto& got) {
        const std::vector<unsigned> sum = {day04::sum_on_cpu(got)};
        const std::vector<unsigned> expected = {data.expected};
        return course::verify_exact(sum, expected);
    });
    usual.versions(versions, problem,
                   [blocks_per_sm](const auto& version, ReadData& data, cudaStream_t stream) {
                       version.launcher(data.x.span(), blocks_per_sm, data.sums.span(), stream);
                   });
    usual.limit_copy(&ReadData::x, &ReadData::copy);
    usual.result.derive_figures = [blocks_per_sm, versions](std::span<course::Record> records) {
        for (course::Record& record : records) {
            if (record.role != course::Role::kOurs) continue;
            const unsigned bytes_of_thread = course::find_version(versions, record.version).bytes_in_flight;
            record.figures.push_back({"KB in flight per SM", blocks_per_sm * 256 * bytes_of_thread / 1024.0});
        }
    };
    return usual.result;
}

// A smaller array is read before all SMs have started. (The stand-in has no caches to compare.)
template <unsigned kBlocksPerSm>
course::Case read_if_large(const course::Dims& size) {
    const bool large = course::only_extent(size, "bytes") >= std::size_t{16} << 20;
    if (!large && !course::is_cpu_stand_in()) return {};
    return read_case(size, "read", kBlocksPerSm, day04::read_versions());
}

// --- Beyond: how much L2 fetches ------------------------------------------------------------------

// From DRAM: all of it is larger than L2.
course::Case stretch_case(const course::Dims& size) {
    const bool large = course::only_extent(size, "bytes") >= std::size_t{1} << 30;
    if (!large && !course::is_cpu_stand_in()) return {};
    return read_case(size, "stretches of", 1, day04::stretch_versions());
}

// --- Beyond: a piece for each SM ------------------------------------------------------------------

struct AgainData {
    explicit AgainData(const day04::Again& problem)
        : rounds(problem.rounds),
          x(problem.piece_bytes / sizeof(unsigned) * course::multiprocessors()),
          sums(day04::again_threads()) {
        std::vector<unsigned> values(x.size());
        course::Random random(4);
        for (unsigned& value : values)
            value = static_cast<unsigned>(random.next());
        expected = rounds * day04::sum_on_cpu(values);
        CUDA_CHECK(cudaMemcpy(x.data(), values.data(), x.bytes(), cudaMemcpyHostToDevice));
    }

    unsigned rounds;
    DeviceBuffer<unsigned> x;
    GuardedBuffer<unsigned> sums;
    unsigned expected = 0;
};

// In as many rounds as make 32 MB per SM, so that the first one, from DRAM, hardly counts. (The
// stand-in has no caches to compare.)
course::Case again_case(const course::Dims& size) {
    const std::size_t bytes = course::only_extent(size, "bytes");
    const bool small = bytes < std::size_t{16} << 10;  // too few quads for all threads of a block
    if ((small && !course::is_cpu_stand_in()) || bytes > std::size_t{1} << 20) return {};
    const std::size_t all = std::size_t{course::is_cpu_stand_in() ? 1 : 32} << 20;
    const day04::Again problem{bytes, static_cast<unsigned>(all / bytes)};
    course::UsualCase<AgainData> usual(fmt::format("again, {} per SM", bytes_text(bytes)), "uint32",
                                       std::make_shared<AgainData>(problem));
    usual.output(&AgainData::sums, [](const AgainData& data, const auto& got) {
        const std::vector<unsigned> sum = {day04::sum_on_cpu(got)};
        const std::vector<unsigned> expected = {data.expected};
        return course::verify_exact(sum, expected);
    });
    usual.versions(day04::again_versions(), problem,
                   [](const auto& version, AgainData& data, cudaStream_t stream) {
                       version.launcher(data.x.span(), data.rounds, data.sums.span(), stream);
                   });
    const double loaded = static_cast<double>(problem.rounds * bytes);
    usual.result.derive_figures = [loaded](std::span<course::Record> records) {
        for (course::Record& record : records)
            if (record.measurement)
                record.figures.push_back({"GB/s per SM", loaded / record.measurement->ms.median / 1e6});
    };
    return usual.result;
}

// --- Beyond: records that pass by a table ---------------------------------------------------------

struct LookupData {
    explicit LookupData(const day04::Lookup& problem)
        : records(32 * problem.records), table(problem.table_words), sums(day04::lookup_threads()) {
        std::vector<unsigned> record_words(records.size());
        std::vector<unsigned> table_words(table.size());
        course::Random random(4);
        for (std::vector<unsigned>* words : {&record_words, &table_words})
            for (unsigned& word : *words)
                word = static_cast<unsigned>(random.next());
        expected = day04::lookup_on_cpu(record_words, table_words);
        CUDA_CHECK(cudaMemcpy(records.data(), record_words.data(), records.bytes(), cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaMemcpy(table.data(), table_words.data(), table.bytes(), cudaMemcpyHostToDevice));
    }

    DeviceBuffer<unsigned> records, table;
    GuardedBuffer<unsigned> sums;
    unsigned expected = 0;
};

// The stand-in, which has no caches to compare, takes a table as much smaller as the records are.
template <std::size_t kTableMb>
course::Case lookup_case(const course::Dims& size) {
    const std::size_t bytes = course::only_extent(size, "bytes");
    const bool small = bytes < std::size_t{1} << 30;
    if (small && !course::is_cpu_stand_in()) return {};
    const day04::Lookup problem{bytes / kLineBytes, kTableMb << (small ? 6 : 18)};
    course::UsualCase<LookupData> usual(fmt::format("lookup, {} of records, {} table", bytes_text(bytes),
                                                    bytes_text(4 * problem.table_words)),
                                        "uint32", std::make_shared<LookupData>(problem));
    usual.output(&LookupData::sums, [](const LookupData& data, const auto& got) {
        const std::vector<unsigned> sum = {day04::sum_on_cpu(got)};
        const std::vector<unsigned> expected = {data.expected};
        return course::verify_exact(sum, expected);
    });
    for (const day04::LookupVersion& version : day04::lookup_versions())
        usual.add(
            {.name = version.name,
             .work = version.work(problem),
             .cannot_run = version.cannot_run(problem),
             .prepare = [data = usual.data, version](course::Contestant& contestant) {
                 const auto set_aside =
                     version.persists ? std::make_shared<day04::L2SetAside>(data->table.bytes()) : nullptr;
                 contestant.launch = [data, version, set_aside](cudaStream_t stream) {
                     version.launcher(data->records.span(), data->table.span(), data->sums.span(), stream);
                 };
             }});
    return usual.result;
}

// --- Beyond: a page for each line -----------------------------------------------------------------

struct FarData {
    FarData(std::size_t lines, std::size_t page)
        : words(page / sizeof(unsigned long long)),
          ring(day04::random_ring(lines, 4)),
          next(lines * words),
          last(1) {
        std::vector<unsigned long long> successor(lines);
        for (std::size_t line = 0; line < lines; ++line)
            successor[line] = ring.next[line] / 32 * words;
        CUDA_CHECK(cudaMemcpy2D(next.data(), page, successor.data(), sizeof successor[0], sizeof successor[0],
                                lines, cudaMemcpyHostToDevice));
    }
    unsigned long long position() const { return ring.order[rank] * words; }
    void launch(const day04::FarChaseVersion& version, cudaStream_t stream) {
        version.launcher(next.span(), position(), kSteps, last.span(), stream);
        rank = (rank + kSteps) % ring.order.size();
    }

    std::size_t words;  // of a page
    day04::Ring ring;
    DeviceBuffer<unsigned long long> next;
    GuardedBuffer<unsigned long long> last;
    std::size_t rank = 0;  // as in ChaseData
};

// As many lines as `chase` has in `bytes`, but 2 MB apart, a page of the GPU. (The stand-in's are
// 4 KB apart, a page of the CPU.)
course::Case far_case(const course::Dims& size) {
    const std::size_t bytes = course::only_extent(size, "bytes");
    const std::size_t page = std::size_t{course::is_cpu_stand_in() ? 4 : 2048} << 10;
    const std::size_t lines = bytes / kLineBytes;
    std::size_t free = 0;
    std::size_t total = 0;
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    if (bytes > std::size_t{4} << 20 || lines * page > free / 10 * 9) return {};
    course::UsualCase<FarData> usual(fmt::format("chase, {} lines {} apart", lines, bytes_text(page)),
                                     "uint64", std::make_shared<FarData>(lines, page));
    usual.output(&FarData::last, [](const FarData& data, const auto& got) {
        const std::vector<unsigned long long> expected = {data.position()};
        return course::verify_exact(got, expected);
    });
    usual.versions(
        day04::far_chase_versions(), day04::FarChase{lines * usual.data->words, kSteps},
        [](const auto& version, FarData& data, cudaStream_t stream) { data.launch(version, stream); });
    usual.result.derive_figures = ns_per_load;
    return usual.result;
}

// --- Beyond: which block runs on which SM, and when -----------------------------------------------

constexpr unsigned kThreadsOfSm = 2048;

struct WavesData {
    explicit WavesData(const day04::Waves& waves) : problem(waves), values(problem.threads) {}

    day04::Waves problem;
    GuardedBuffer<unsigned> values;
    std::map<std::string, std::vector<day04::Stay>> stays;  // of each version's last launch
};

// One line for each version: the SMs of the first blocks, and where and when the last one began.
std::string where_blocks_ran(const WavesData& data) {
    std::string text;
    for (const auto& [version, stays] : data.stays) {
        text += "  " + version + ": blocks 0, 1, 2, ... ran on SMs";
        for (std::size_t block = 0; block < std::min<std::size_t>(stays.size(), 12); ++block)
            text += fmt::format(" {}", stays[block].sm);
        const double later =
            static_cast<double>(stays.back().begin) - static_cast<double>(stays.front().begin);
        text += fmt::format("; the last of {} blocks on SM {}, {:.1f} us after the first\n", stays.size(),
                            stays.back().sm, later / 1e3);
    }
    return text;
}

// One wave that fills every SM, and kMore threads.
template <unsigned kMore>
course::Case waves_case(const course::Dims& size) {
    const std::size_t bytes = course::only_extent(size, "bytes");  // of which this case needs only one
    if (bytes > std::size_t{16} << 10) return {};
    if (bytes != std::size_t{16} << 10 && !course::is_cpu_stand_in()) return {};
    const std::size_t sms = course::multiprocessors();
    const day04::Waves problem{sms * kThreadsOfSm + kMore, course::is_cpu_stand_in() ? 64U : 8192U};
    course::UsualCase<WavesData> usual(
        kMore == 0 ? "one wave" : fmt::format("one wave and {} threads", kMore), "uint32",
        std::make_shared<WavesData>(problem));
    usual.output(&WavesData::values, [](const WavesData& data, const auto& got) {
        std::vector<unsigned> expected(got.size());
        for (std::size_t t = 0; t < expected.size(); ++t)
            expected[t] = day04::value_after(static_cast<unsigned>(t), data.problem.steps);
        return course::verify_exact(got, expected);
    });
    for (const day04::WavesVersion& version : day04::waves_versions()) {
        const auto stays = std::make_shared<DeviceBuffer<day04::Stay>>(problem.threads / version.block);
        usual.add({.name = version.name,
                   .launch =
                       [data = usual.data, version, stays](cudaStream_t stream) {
                           version.launcher(data->problem.steps, data->values.span(), stays->span(), stream);
                       },
                   .work = version.work(problem),
                   .figures = [data = usual.data, version, stays, sms]() -> course::Figures {
                       std::vector<day04::Stay>& noted = data->stays[version.name];
                       noted = stays->to_host();
                       // The stand-in runs one block at a time on each SM.
                       const std::size_t places =
                           course::is_cpu_stand_in() ? 1 : kThreadsOfSm / version.block;
                       const double empty = day04::empty_share(noted, sms, places);
                       return {{"empty places, %", 100 * empty}};
                   }});
    }
    usual.result.comment = [data = usual.data](std::span<const course::Record>) {
        return where_blocks_ran(*data);
    };
    return usual.result;
}

}  // namespace

int main(int argc, char** argv) {
    const course::Program program{
        .day = "day04_memory_hierarchy",
        .title = "lists of n bytes that one thread follows, and sums of n bytes",
        .default_size = {std::size_t{16} << 10},
        .bench_sizes = {{std::size_t{4} << 10},
                        {std::size_t{16} << 10},
                        {std::size_t{64} << 10},
                        {std::size_t{128} << 10},
                        {std::size_t{192} << 10},
                        {std::size_t{256} << 10},
                        {std::size_t{512} << 10},
                        {std::size_t{1} << 20},
                        {std::size_t{2} << 20},
                        {std::size_t{4} << 20},
                        {std::size_t{16} << 20},
                        {std::size_t{32} << 20},
                        {std::size_t{64} << 20},
                        {std::size_t{256} << 20},
                        {std::size_t{1} << 30}},
        .make_cases = {chase_case, read_if_large<1>, read_if_large<2>, read_if_large<4>, read_if_large<8>,
                       again_case, lookup_case<16>, lookup_case<32>, stretch_case, far_case, waves_case<0>,
                       waves_case<1024>}};
    return course::run_program(program, argc, argv);
}
