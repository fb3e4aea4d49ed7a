#include "inspect_explain.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "inspect_request.hpp"
#include "inspect_view.hpp"

namespace course::tool {
namespace {

constexpr std::int64_t kBankRowBytes = std::int64_t{kBanks} * kWordBytes;

struct Explanation {
    std::string text;
    bool fine = true;  // nothing to improve
};

// `rows` rows of `lanes` lanes each: an address every `step` bytes along a row, a row every
// `row_step` bytes.
struct Rows {
    unsigned lanes = 0;
    std::int64_t step = 0;
    unsigned rows = 1;
    std::int64_t row_step = 0;
};

// A row of different addresses, each accessed by `copies` lanes.
struct Row {
    unsigned count = 0;
    std::int64_t stride = 0;  // in bytes, positive; 0 for one address
    unsigned copies = 1;
};

std::string plural(std::uint64_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// "an 8-wide tile", "a 32-wide tile"
std::string_view article(std::size_t number) {
    const std::string digits = std::to_string(number);
    return digits.front() == '8' || number == 11 || number == 18 ? "an" : "a";
}

// The verb for the lanes' access. The lanes of an asynchronous copy read global memory and write
// shared memory.
std::string_view verb(const AccessLine& line) {
    switch (line.operation) {
        case Operation::kStore:
        case Operation::kAtomicStore:
            return "write";
        case Operation::kAtomic:
            return "update";
        case Operation::kAsyncCopy:
            return line.space == Space::kShared ? "write" : "read";
        case Operation::kLoad:
        case Operation::kAtomicLoad:
        case Operation::kMatrixLoad:
            break;
    }
    return "read";
}

bool is_write(const AccessLine& line) {
    return verb(line) == "write";
}

// --- The shape of a request ----------------------------------------------------------------------

bool fits(const std::vector<ActiveLane>& active, const Rows& rows) {
    const unsigned first = active.front().lane;
    return std::ranges::all_of(active, [&](const ActiveLane& each) {
        const unsigned place = each.lane - first;
        return each.offset == active.front().offset + rows.step * (place % rows.lanes) +
                                  rows.row_step * (place / rows.lanes);
    });
}

// Is the distance from each active lane to the next one the same, however many inactive lanes are
// between them?
bool is_compact(const std::vector<ActiveLane>& active, std::int64_t step) {
    for (std::size_t i = 1; i < active.size(); ++i) {
        if (active[i].offset != active[i - 1].offset + step) return false;
    }
    return true;
}

bool has_holes(const std::vector<ActiveLane>& active) {
    return active.back().lane - active.front().lane + 1 != active.size();
}

// One row with the same step from lane to lane; else rows of 16, 8, 4 or 2 lanes. At least two
// lanes are needed.
std::optional<Rows> find_rows(const std::vector<ActiveLane>& active) {
    if (active.size() < 2) return std::nullopt;
    const auto [first_lane, first_offset] = active.front();
    const auto count = static_cast<unsigned>(active.size());
    const std::int64_t distance = active[1].offset - first_offset;
    const std::int64_t step = distance / (active[1].lane - first_lane);
    if (fits(active, {.lanes = kLanes, .step = step})) return Rows{.lanes = count, .step = step};
    if (is_compact(active, distance)) return Rows{.lanes = count, .step = distance};

    if (has_holes(active)) return std::nullopt;
    for (const unsigned lanes : {16U, 8U, 4U, 2U}) {
        if (first_lane % lanes != 0 || count % lanes != 0 || count <= lanes) continue;
        const Rows rows{.lanes = lanes,
                        .step = active[1].offset - first_offset,
                        .rows = count / lanes,
                        .row_step = active[lanes].offset - first_offset};
        if (fits(active, rows)) return rows;
    }
    return std::nullopt;
}

// The same addresses, with adjacent elements as rows, because lanes may run along columns first.
Rows along_rows(const Rows& rows, unsigned bytes) {
    if (rows.rows == 1 || std::abs(rows.row_step) != bytes) return rows;
    return {.lanes = rows.rows, .step = rows.row_step, .rows = rows.lanes, .row_step = rows.step};
}

// Rows that are equivalent to a single row: there is only one, all are the same, or each has only
// one address.
std::optional<Row> as_one_row(const Rows& rows) {
    const std::int64_t step = std::abs(rows.step);
    const std::int64_t row_step = std::abs(rows.row_step);
    if (rows.rows == 1) return step == 0 ? Row{1, 0, rows.lanes} : Row{rows.lanes, step, 1};
    if (row_step == 0) return Row{rows.lanes, step, rows.rows};
    if (step == 0) return Row{rows.rows, row_step, rows.lanes};
    return std::nullopt;
}

// "", or ", each read by 2 lanes"
std::string copies_of(const Row& row, const AccessLine& line) {
    if (row.copies == 1) return "";
    const std::string_view participle = is_write(line)                         ? "written"
                                        : line.operation == Operation::kAtomic ? "updated"
                                                                               : "read";
    return fmt::format(", each {} by {} lanes", participle, row.copies);
}

unsigned distinct_bytes(const AccessLine& line) {
    unsigned count = 0;
    for (const Sector& sector : sectors(line)) {
        for (const auto& lanes : sector.bytes)
            count += lanes.empty() ? 0 : 1;
    }
    return count;
}

// The largest number of lanes that access the same address.
std::size_t most_lanes_at_one_place(const std::vector<ActiveLane>& active) {
    std::multiset<std::int64_t> offsets;
    std::size_t most = 0;
    for (const ActiveLane& each : active) {
        offsets.insert(each.offset);
        most = std::max(most, offsets.count(each.offset));
    }
    return most;
}

// Explains lanes that access the same address but cannot share it: atomic updates, and
// asynchronous copies to shared memory.
std::optional<Explanation> explain_queue(const AccessLine& line, const std::vector<ActiveLane>& active) {
    const bool shared = line.space == Space::kShared;
    const bool copies = line.operation == Operation::kAsyncCopy && shared;
    if (line.operation != Operation::kAtomic && !copies) return std::nullopt;
    const std::size_t lanes = most_lanes_at_one_place(active);
    if (lanes < 2 || 2 * lanes < line.worst.transactions) return std::nullopt;  // not the main cost
    const std::string lanes_text = fmt::format("{}{} lanes", lanes == active.size() ? "All " : "", lanes);
    const char* const help = copies   ? "Give each a word of its own."
                             : shared ? "Combine within the warp first, or spread them over several copies."
                                      : "Combine within the warp or the block first.";
    return Explanation{fmt::format("{} {} the same {}, one after the other. {}", lanes_text, verb(line),
                                   shared ? "word" : "address", help),
                       false};
}

// --- Shared memory -------------------------------------------------------------------------------

// One lane for each different word of the group's fullest bank: "0, 8, 16, ..."
std::string colliding_lanes(const BankGroup& group) {
    constexpr std::size_t kShown = 8;
    std::vector<std::string> lanes;
    for (const Wanted& word : group.banks[group.fullest_bank()])
        lanes.push_back(std::to_string(word.lanes.front()));
    if (lanes.size() > kShown) {
        lanes.resize(kShown);
        lanes.emplace_back("...");
    }
    return fmt::format("{}", fmt::join(lanes, ", "));
}

const BankGroup& worst_group(const std::vector<BankGroup>& groups) {
    return *std::ranges::max_element(groups, {}, &BankGroup::most_words);
}

std::string explain_free_row(const AccessLine& line, const Row& row) {
    if (row.count == 1) {
        const std::string what =
            line.bytes == kWordBytes ? "word" : fmt::format("{}", plural(line.bytes, "byte"));
        return is_write(line)
                   ? fmt::format("All {} lanes write the same {}: one of them wins.", row.copies, what)
                   : fmt::format("All {} lanes read the same {}: a broadcast, {}.", row.copies, what,
                                 plural(line.worst.transactions, "wavefront"));
    }
    const std::string copies = copies_of(row, line);
    if (row.stride == line.bytes && line.bytes == kWordBytes) {
        return fmt::format("{} adjacent words{}, each in a bank of its own: as good as it gets.", row.count,
                           copies);
    }
    if (row.stride == line.bytes) {
        return fmt::format("{} adjacent elements of {}{}: {}, as good as it gets.", row.count,
                           plural(line.bytes, "byte"), copies, plural(line.worst.transactions, "wavefront"));
    }
    const std::int64_t words = row.stride / kWordBytes;
    if (line.bytes <= kWordBytes && row.stride % kWordBytes == 0 && words % 2 == 1) {
        return fmt::format("{} rows of {} words{}: an odd number, so that each lane has a bank of its own.",
                           words > 16 ? "A column of a tile with" : "A step through", words, copies);
    }
    return fmt::format("{} elements, {} bytes apart{}, in different banks: no conflict.", row.count,
                       row.stride, copies);
}

Explanation explain_free(const AccessLine& line, const std::optional<Rows>& rows) {
    if (line.operation == Operation::kAtomic && (!rows || !as_one_row(*rows)))
        return {"No two lanes meet in a bank: as good as it gets."};
    if (!rows) {
        return {
            "No regular distance, yet no two lanes want different words of a bank: no conflict, as in a "
            "swizzled tile."};
    }
    if (const auto row = as_one_row(*rows)) return {explain_free_row(line, *row)};
    if (std::abs(rows->step) == line.bytes) {
        return {
            fmt::format("{} rows of {} adjacent elements, {} bytes apart, in different banks: no conflict.",
                        rows->rows, rows->lanes, std::abs(rows->row_step))};
    }
    return {"No two lanes want different words of a bank: no conflict."};
}

// Explains a row with bank conflicts: addresses that are a multiple of 128 bytes apart are all in
// one bank, others in a few banks.
std::optional<std::string> explain_conflict_row(const AccessLine& line, const Row& row,
                                                const BankGroup& worst) {
    const auto unit = std::max<std::int64_t>(kWordBytes, line.bytes);
    if (row.stride % unit != 0) return std::nullopt;
    const std::size_t met = worst.most_words();
    const std::int64_t width = row.stride / line.bytes;
    const std::string copies = copies_of(row, line);
    if (row.stride % kBankRowBytes == 0 && line.bytes <= kWordBytes) {
        const std::string padding = line.bytes == kWordBytes
                                        ? "one word"
                                        : fmt::format("one word ({} elements)", kWordBytes / line.bytes);
        return fmt::format("{} lanes hit bank {}: a column of {} {}-wide tile{}. Pad the row by {}.",
                           row.count * row.copies, worst.fullest_bank(),
                           article(static_cast<std::size_t>(width)), width, copies, padding);
    }
    if (row.stride % kBankRowBytes == 0) {
        return fmt::format(
            "{} lanes at a time hit the same banks: a column of {} {}-wide tile of {}-byte elements{}. Pad "
            "the "
            "row by one element.",
            met, article(static_cast<std::size_t>(width)), width, line.bytes, copies);
    }
    const std::int64_t words = row.stride / kWordBytes;
    if (line.bytes > kWordBytes) {
        return fmt::format(
            "Elements of {} bytes, {} bytes apart{}: {} lanes meet in a bank. An odd multiple "
            "of {} bytes would do better.",
            line.bytes, row.stride, copies, met, line.bytes);
    }
    const std::string help = words >= 12
                                 ? fmt::format("Pad the row to an odd number of words, {}.", words + 1)
                                 : "Let adjacent lanes take adjacent words, or make the stride odd.";
    return fmt::format("A stride of {} words{}: {} lanes meet in each bank that is hit. {}", words, copies,
                       met, help);
}

std::string explain_conflict(const AccessLine& line, const std::optional<Rows>& rows,
                             const BankGroup& worst) {
    const auto row = rows ? as_one_row(*rows) : std::nullopt;
    const std::size_t met = worst.most_words();
    if (line.operation == Operation::kMatrixLoad && row) {
        return fmt::format(
            "The rows of a matrix lie {} bytes apart, so that {} of 8 begin in the same bank. "
            "Pad the row by 16 bytes, or swizzle.",
            row->stride, met);
    }
    if (row) {
        if (auto text = explain_conflict_row(line, *row, worst)) return *text;
    }
    if (rows && !row && std::abs(rows->step) == line.bytes && rows->row_step % kBankRowBytes == 0) {
        return fmt::format(
            "{} rows of {} adjacent elements, {} bytes apart, begin in the same bank. Pad the "
            "row by {} bytes, or swizzle.",
            rows->rows, rows->lanes, std::abs(rows->row_step), rows->lanes * line.bytes);
    }
    return fmt::format("{} {}-way conflict: lanes {} want {}words of bank {}.",
                       article(met) == "an" ? "An" : "A", met, colliding_lanes(worst),
                       line.operation == Operation::kAtomic ? "" : "different ", worst.fullest_bank());
}

Explanation explain_shared(const AccessLine& line, std::vector<ActiveLane> active) {
    const auto ideal =
        std::max<std::uint64_t>(1, (active.size() * line.bytes + kBankRowBytes - 1) / kBankRowBytes);
    const bool conflict = line.worst.transactions > ideal;
    if (conflict) {
        if (auto queue = explain_queue(line, active)) return *queue;
    }
    const std::vector<BankGroup> groups = bank_groups(line);
    const BankGroup& worst = worst_group(groups);
    if (line.operation ==
        Operation::kMatrixLoad) {  // a matrix has 8 rows, and the other matrices may be anywhere
        std::erase_if(active, [&](const ActiveLane& each) { return each.lane / 8 != worst.first_lane / 8; });
    }
    const std::optional<Rows> rows = find_rows(active);
    if (!conflict) return explain_free(line, rows);
    if (worst.most_words() > 1) return {explain_conflict(line, rows, worst), false};
    return {fmt::format("{} where {} would do.", plural(line.worst.transactions, "wavefront"), ideal), false};
}

// --- Global memory -------------------------------------------------------------------------------

std::string explain_same_address(const AccessLine& line, unsigned lanes) {
    if (is_write(line)) return fmt::format("All {} lanes write the same address: one of them wins.", lanes);
    return fmt::format("All {} lanes read the same {}: one sector serves them all.", lanes,
                       plural(line.bytes, "byte"));
}

Explanation explain_neighbours(const AccessLine& line, const Row& row, unsigned ideal) {
    const unsigned touched = line.worst.transactions;
    const std::string copies = copies_of(row, line);
    if (touched <= ideal) {
        return {fmt::format("{} adjacent elements of {}{}: {}, as few as possible.", row.count,
                            plural(line.bytes, "byte"), copies, plural(touched, "sector"))};
    }
    const std::vector<ActiveLane> active = active_lanes(line.worst);
    if (has_holes(active) && !is_compact(active, line.bytes)) {
        return {fmt::format("Adjacent elements, less those of the lanes that take no part: {}.",
                            plural(touched, "sector"))};
    }
    const std::int64_t first = std::ranges::min_element(active, {}, &ActiveLane::offset)->offset;
    const std::string where = first % kSectorBytes == 0
                                  ? "begin within a sector"
                                  : fmt::format("begin {} bytes into a sector", first % kSectorBytes);
    return {fmt::format("{} adjacent elements of {}{} {}: {} sectors instead of {}. Let them begin "
                        "at a multiple of 32 bytes.",
                        row.count, plural(line.bytes, "byte"), copies, where, touched, ideal),
            false};
}

// Elements with gaps between them.
std::string explain_gaps(const AccessLine& line, const Row& row) {
    // A larger distance is usually a row of a matrix.
    constexpr std::int64_t kLargestStruct = 64;
    const std::string copies = copies_of(row, line);
    if (row.stride > kLargestStruct) {
        return fmt::format(
            "A column: addresses {} bytes apart{}, a sector each, and {} of its 32 bytes used. Let "
            "adjacent "
            "lanes take neighbours in a row, or go through a tile in shared memory.",
            row.stride, copies, line.bytes);
    }
    return fmt::format(
        "Only {} of every {} bytes are wanted{}, as in an array of structs, or where a thread takes "
        "neighbours "
        "itself. "
        "Give each field an array of its own, or adjacent elements to adjacent lanes.",
        line.bytes, row.stride, copies);
}

Explanation explain_short_rows(const AccessLine& line, const Rows& rows, unsigned ideal) {
    const unsigned touched = line.worst.transactions;
    const unsigned bytes = rows.lanes * line.bytes;
    const std::string what =
        fmt::format("{} rows of {} bytes, {} bytes apart", rows.rows, bytes, std::abs(rows.row_step));
    if (touched <= ideal) return {fmt::format("{}, in {} whole sectors: as few as possible.", what, touched)};
    if (bytes < kSectorBytes) {
        return {fmt::format("{}: each takes a sector of 32. Let at least {} lanes in a row take neighbours.",
                            what, kSectorBytes / line.bytes),
                false};
    }
    return {
        fmt::format("{}, that begin within a sector: {} sectors instead of {}. Let rows begin at a multiple "
                    "of 32 bytes.",
                    what, touched, ideal),
        false};
}

Explanation explain_gather(const AccessLine& line, unsigned ideal, unsigned bytes) {
    const unsigned touched = line.worst.transactions;
    if (4 * touched <= 5 * ideal)
        return {"No regular distance, but the sectors that are touched are used nearly whole."};
    return {fmt::format("{} sectors for {} bytes at no regular distance: a {}. It helps when adjacent lanes "
                        "want neighbours.",
                        touched, bytes, verb(line) == "read" ? "gather" : "scatter"),
            false};
}

Explanation explain_global(const AccessLine& line, const std::vector<ActiveLane>& active) {
    if (auto queue = explain_queue(line, active)) return *queue;
    constexpr unsigned kFew = 4;  // addresses, so nearly all lanes share
    const unsigned bytes = distinct_bytes(line);
    const unsigned ideal = (bytes + kSectorBytes - 1) / kSectorBytes;
    std::optional<Rows> rows = find_rows(active);
    if (rows) rows = along_rows(*rows, line.bytes);
    if (!rows) return explain_gather(line, ideal, bytes);
    if (const auto row = as_one_row(*rows)) {
        if (row->count == 1) return {explain_same_address(line, row->copies)};
        if (row->stride == line.bytes) return explain_neighbours(line, *row, ideal);
        if (row->count <= kFew && row->copies > 1) {
            return {fmt::format("{} addresses{}: {}.", row->count, copies_of(*row, line),
                                plural(line.worst.transactions, "sector"))};
        }
        if (row->stride > line.bytes && line.worst.transactions > ideal)
            return {explain_gaps(line, *row), false};
    } else if (std::abs(rows->step) == line.bytes) {
        return explain_short_rows(line, *rows, ideal);
    }
    return explain_gather(line, ideal, bytes);
}

// --- The whole line ------------------------------------------------------------------------------

double per_request(std::uint64_t count, const AccessLine& line) {
    return static_cast<double>(count) / static_cast<double>(line.requests);
}

}  // namespace

std::string explain(const AccessLine& line) {
    constexpr double kMany = 24;  // of 32 lanes
    const std::vector<ActiveLane> active = active_lanes(line.worst);
    if (line.requests == 0 || active.empty()) return "";
    const double lanes = per_request(line.active_lanes, line);
    if (active.size() == 1 && lanes == 1) return "One lane of 32 takes part.";
    const std::string few =
        lanes > kMany ? "" : fmt::format("On average {:.3g} of 32 lanes take part", lanes);

    Explanation explanation;
    if (active.size() > 1)
        explanation =
            line.space == Space::kShared ? explain_shared(line, active) : explain_global(line, active);
    if (explanation.fine && !few.empty()) return few + ": a branch, or nothing to do for the others.";
    const bool mostly_better = 3 * per_request(line.transactions, line) < 2 * line.worst.transactions;
    if (!explanation.fine && mostly_better) {
        explanation.text.front() = static_cast<char>(std::tolower(explanation.text.front()));
        explanation.text.insert(0, "At worst: ");
    }
    return few.empty() ? explanation.text : fmt::format("{} {}.", explanation.text, few);
}

double lanes_per_element(const AccessLine& line) {
    if (line.operation != Operation::kLoad || line.bytes_used == 0) return 0;
    return static_cast<double>(line.active_lanes * line.bytes) / static_cast<double>(line.bytes_used);
}

std::string explain_sharing(const AccessLine& line) {
    const double sharing = lanes_per_element(line);
    if (sharing < 2 || grade(line) == Grade::kPoor) return "";
    const double lanes = per_request(line.active_lanes, line);
    const bool shared = line.space == Space::kShared;
    const std::string one_element =
        is_broadcast(line) ? fmt::format("A broadcast: {:.3g} lanes want the same element", lanes)
                           : fmt::format("Each element goes to {:.3g} lanes", sharing);
    const std::string once = shared ? "The memory reads it once and hands it to each of them, so it costs no "
                                      "more than the load of one lane."
                                    : "It is fetched once and handed to each of them, so it costs no more "
                                      "than the load of one lane.";
    const auto useful = static_cast<std::uint64_t>(per_request(line.bytes_used, line) + 0.5);
    const std::string price = fmt::format(
        "It is not free: the warp issues a load and gets {} different bytes, where {:.3g} adjacent "
        "elements would be {:.0f}. A value that several instructions need belongs in a register.",
        useful, lanes, lanes * line.bytes);
    return fmt::format("{}. {} {}", one_element, once, price);
}

}  // namespace course::tool
