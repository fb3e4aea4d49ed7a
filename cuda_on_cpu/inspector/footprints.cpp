#include "footprints.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "memory.hpp"

namespace cuda_on_cpu::inspector {
namespace {

std::string place_of_byte(Address byte) {
    const auto allocation = find_allocation(reinterpret_cast<const void*>(byte));
    if (!allocation) return "device memory";
    return "byte " + std::to_string(byte - reinterpret_cast<Address>(allocation->begin)) +
           " of the allocation of " + std::to_string(allocation->size) + " bytes on device " +
           std::to_string(allocation->device);
}

const char* verb(bool writes) {
    return writes ? "write" : "read";
}

}  // namespace

void Footprint::touch(AccessKind kind, Address byte, unsigned bytes, const Party& party) {
    if (kind != AccessKind::load && kind != AccessKind::store) {
        atomics_.insert(byte);
        return;
    }
    for (Address number = byte / kWordBytes; number <= (byte + bytes - 1) / kWordBytes; ++number) {
        Word& word = words_[number];
        std::optional<Party>& first = kind == AccessKind::load ? word.reader : word.writer;
        if (!first) first = party;
    }
}

void Footprint::merge(Footprint&& other) {
    atomics_.merge(other.atomics_);
    if (words_.empty()) {
        words_ = std::move(other.words_);
        return;
    }
    for (const auto& [number, word] : other.words_) {
        Word& mine = words_[number];
        if (!mine.reader) mine.reader = word.reader;
        if (!mine.writer) mine.writer = word.writer;
    }
}

bool Footprint::is_beside(const Footprint& other) const {
    return std::ranges::find(beside_, other.task_) != beside_.end() ||
           std::ranges::find(other.beside_, task_) != other.beside_.end();
}

bool Footprint::shares_atomics(const Footprint& other) const {
    return std::ranges::any_of(atomics_, [&](Address each) { return other.atomics_.contains(each); });
}

std::vector<Footprint::Conflict> Footprint::conflicts(const Footprint& other) const {
    std::vector<Conflict> found;
    std::set<std::pair<Place, Place>> seen;
    for (const auto& [number, mine] : words_) {
        Word its;
        if (number * kWordBytes - other.copied_.first < other.copied_.second)
            its.writer = Party{};
        else if (const auto at = other.words_.find(number); at != other.words_.end())
            its = at->second;
        else
            continue;
        if (!mine.writer && !its.writer) continue;
        Conflict conflict;
        conflict.where = number * kWordBytes;
        conflict.self_writes = mine.writer && (its.reader || !mine.reader || !its.writer);
        conflict.self = conflict.self_writes ? *mine.writer : *mine.reader;
        conflict.other_writes = its.writer && (!conflict.self_writes || !its.reader);
        conflict.other = conflict.other_writes ? *its.writer : *its.reader;
        if (seen.emplace(conflict.self.place, conflict.other.place).second) found.push_back(conflict);
    }
    return found;
}

Footprints& Footprints::of_inspection() {
    static auto& all = *new Footprints;
    return all;
}

void Footprints::add(std::shared_ptr<const Footprint> footprint, Findings* findings) {
    const std::scoped_lock lock(mutex_);
    for (const Known& known : known_) {
        if (!footprint->is_beside(*known.footprint) || footprint->shares_atomics(*known.footprint)) continue;
        // Of two copies neither has a line.
        Findings* const to = findings != nullptr ? findings : known.findings;
        if (to == nullptr) continue;
        const bool swapped = findings == nullptr;
        const Footprint& self = swapped ? *known.footprint : *footprint;
        const Footprint& other = swapped ? *footprint : *known.footprint;
        for (const Footprint::Conflict& conflict : self.conflicts(other)) {
            const std::optional<Party> party =
                conflict.other.place != 0 ? std::optional(conflict.other) : std::nullopt;
            to->add("race_between_launches", conflict.self, party, [&](RawFinding& finding) {
                finding.message = place_of_byte(conflict.where) + ": " + verb(conflict.self_writes) + " by " +
                                  self.who() + ", " + verb(conflict.other_writes) + " by " + other.who() +
                                  ", in no order";
            });
        }
    }
    known_.push_back({std::move(footprint), findings});
    if (known_.size() > kMost) known_.erase(known_.begin());
}

void Footprints::clear() {
    const std::scoped_lock lock(mutex_);
    known_.clear();
}

}  // namespace cuda_on_cpu::inspector
