#include "inspect_request.hpp"

#include <algorithm>
#include <map>

namespace course::tool {
namespace {

// Do lanes that access the same word share it? Those of atomic updates and of asynchronous copies
// are served one after the other.
bool share_words(const AccessLine& line) {
    return line.operation != Operation::kAtomic && line.operation != Operation::kAsyncCopy;
}

// Does each active lane access the same address as the lane whose number differs in `difference`,
// if that lane is active?
bool paired(const std::vector<std::int64_t>& offsets, std::size_t difference) {
    for (std::size_t lane = 0; lane < offsets.size(); ++lane) {
        const std::size_t partner = lane ^ difference;
        if (partner >= offsets.size() || offsets[lane] < 0 || offsets[partner] < 0) continue;
        if (offsets[lane] != offsets[partner]) return false;
    }
    return true;
}

// How many lanes, starting at a multiple of that number, are served together.
unsigned lanes_at_once(const AccessLine& line) {
    if (line.bytes <= kWordBytes || line.operation == Operation::kAtomic) return kLanes;
    const unsigned group = std::max(1U, kLanes * kWordBytes / line.bytes);
    const bool joined = line.operation == Operation::kLoad &&
                        (paired(line.worst.offsets, 1) || paired(line.worst.offsets, 2));
    return joined ? 2 * group : group;
}

void add_lane(std::vector<Wanted>& words, std::int64_t word, unsigned lane, bool together) {
    const auto known = together ? std::ranges::find(words, word, &Wanted::index) : words.end();
    Wanted& wanted = known == words.end() ? words.emplace_back(Wanted{word, {}}) : *known;
    if (wanted.lanes.empty() || wanted.lanes.back() != lane) wanted.lanes.push_back(lane);
}

}  // namespace

std::vector<ActiveLane> active_lanes(const WorstRequest& request) {
    std::vector<ActiveLane> active;
    for (std::size_t lane = 0; lane < request.offsets.size(); ++lane) {
        if (request.offsets[lane] >= 0)
            active.push_back({static_cast<unsigned>(lane), request.offsets[lane]});
    }
    return active;
}

std::size_t BankGroup::fullest_bank() const {
    const auto size = [](const std::vector<Wanted>& words) { return words.size(); };
    return static_cast<std::size_t>(std::ranges::max_element(banks, {}, size) - banks.begin());
}

std::vector<BankGroup> bank_groups(const AccessLine& line) {
    const unsigned at_once = lanes_at_once(line);
    std::vector<BankGroup> groups;
    for (const auto& [lane, offset] : active_lanes(line.worst)) {
        const unsigned first_lane = lane / at_once * at_once;
        if (groups.empty() || groups.back().first_lane != first_lane)
            groups.push_back({.first_lane = first_lane, .banks = {}});
        const std::int64_t last_word = (offset + std::max(1U, line.bytes) - 1) / kWordBytes;
        for (std::int64_t word = offset / kWordBytes; word <= last_word; ++word)
            add_lane(groups.back().banks[static_cast<std::size_t>(word) % kBanks], word, lane,
                     share_words(line));
    }
    return groups;
}

std::vector<Sector> sectors(const AccessLine& line) {
    std::map<std::int64_t, Sector> found;
    for (const auto& [lane, offset] : active_lanes(line.worst)) {
        for (std::int64_t byte = offset; byte < offset + line.bytes; ++byte) {
            Sector& sector = found[byte / kSectorBytes];
            sector.index = byte / kSectorBytes;
            sector.bytes[static_cast<std::size_t>(byte % kSectorBytes)].push_back(lane);
        }
    }
    std::vector<Sector> list;
    for (auto& [index, sector] : found)
        list.push_back(std::move(sector));
    return list;
}

}  // namespace course::tool
