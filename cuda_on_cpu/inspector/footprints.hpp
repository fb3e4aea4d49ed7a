// Races between launches: compares the memory that a launch or a copy has accessed with that of
// launches and copies that no stream, event or wait of the host orders with it. They may be on
// several devices.
//
// The order that the streams guarantee is known only where streams run late or in a random order
// (CUDA_ON_CPU_STREAMS): Task::beside. Kernels with an atomic access to the same address count as
// ordered by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "findings.hpp"
#include "shadow.hpp"
#include "trace.hpp"

namespace cuda_on_cpu::inspector {

// The memory that one launch, or one copy, has accessed.
class Footprint {
  public:
    Footprint(std::uint64_t task, std::vector<std::uint64_t> beside, std::string who)
        : who_(std::move(who)), task_(task), beside_(std::move(beside)) {}

    void touch(AccessKind kind, Address byte, unsigned bytes, const Party& party);
    // Records the write of a copy, which has no place in the program.
    void copied(Address begin, std::size_t bytes) { copied_ = {begin, bytes}; }
    // Adds the accesses of another block of the launch.
    void merge(Footprint&& other);

    // True if neither is ordered before the other.
    bool is_beside(const Footprint& other) const;
    bool shares_atomics(const Footprint& other) const;

    struct Conflict {
        Address where = 0;
        Party self;
        Party other;
        bool self_writes = false;
        bool other_writes = false;
    };
    // Returns one conflict for each pair of places. This footprint must be a kernel's.
    std::vector<Conflict> conflicts(const Footprint& other) const;

    const std::string& who() const { return who_; }

  private:
    // The first thread that has read a word, and the first one that has written it.
    struct Word {
        std::optional<Party> reader;
        std::optional<Party> writer;
    };
    static constexpr unsigned kWordBytes = 4;

    std::string who_;  // "kernel sweep on device 0"
    std::uint64_t task_;
    std::vector<std::uint64_t> beside_;
    std::unordered_map<Address, Word> words_;  // by word number
    std::pair<Address, std::size_t> copied_{};
    std::unordered_set<Address> atomics_;
};

// The footprints of an inspection.
class Footprints {
  public:
    static Footprints& of_inspection();

    // Adds findings where a footprint of the inspection conflicts with this one. For a copy
    // `findings` is null: they are then added to those of the conflicting kernel.
    void add(std::shared_ptr<const Footprint> footprint, Findings* findings);
    void clear();

  private:
    struct Known {
        std::shared_ptr<const Footprint> footprint;
        Findings* findings;
    };
    // The number of most recent footprints that are kept.
    static constexpr std::size_t kMost = 512;

    std::mutex mutex_;
    std::vector<Known> known_;
};

}  // namespace cuda_on_cpu::inspector
