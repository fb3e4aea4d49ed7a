#include "findings.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace cuda_on_cpu::inspector {

void Findings::add(std::string kind, const Party& party, const std::optional<Party>& other,
                   const std::function<void(RawFinding&)>& complete) {
    Key key{std::move(kind), party.place, other ? other->place : 0};
    const std::scoped_lock lock(mutex_);
    const auto [found, is_new] = found_.try_emplace(std::move(key));
    RawFinding& finding = found->second;
    if (!is_new) ++finding.count;
    const auto block_of = [](const Party& of) { return std::tie(of.block[2], of.block[1], of.block[0]); };
    if (!is_new && block_of(party) >= block_of(finding.party)) return;
    finding.kind = found->first.kind;
    finding.party = party;
    finding.other = other;
    complete(finding);
    if (finding.why.empty()) finding.why = why_of(finding.kind);
}

std::vector<Place> Findings::places() const {
    const std::scoped_lock lock(mutex_);
    std::vector<Place> places;
    for (const auto& [key, finding] : found_) {
        for (const Place place : {key.place, key.other}) {
            if (place != 0) places.push_back(place);
        }
    }
    return places;
}

std::vector<Finding> Findings::take(const Resolve& resolve) {
    const std::scoped_lock lock(mutex_);
    std::vector<Finding> more;
    for (auto& [key, raw] : found_) {
        Finding finding;
        finding.kind = raw.kind;
        finding.source = resolve(raw.party.place);
        finding.message = std::move(raw.message);
        finding.why = std::move(raw.why);
        finding.block = raw.party.block;
        finding.thread = raw.party.thread;
        if (raw.other) {
            finding.other = resolve(raw.other->place);
            finding.other_block = raw.other->block;
            finding.other_thread = raw.other->thread;
        }
        finding.count = raw.count;
        more.push_back(std::move(finding));
    }
    found_.clear();
    // An uninitialised read at a line that also races is a consequence of the race: the write came
    // later.
    const auto races = [&](const SourceLine& line) {
        return std::any_of(more.begin(), more.end(), [&](const Finding& finding) {
            return finding.other && (finding.source == line || *finding.other == line);
        });
    };
    const auto others = std::stable_partition(
        more.begin(), more.end(), [](const Finding& finding) { return finding.other.has_value(); });
    const auto explained = std::partition(others, more.end(), [&](const Finding& finding) {
        return finding.kind != "uninitialised_read" || !races(finding.source);
    });
    more.erase(explained, more.end());
    std::vector<Finding> result;
    add_findings(result, std::move(more));
    return result;
}

// One source line may be several places in the code: an unrolled loop, or the instances of a
// template. Which of two racing threads comes first is chance, so both directions are one finding.
void add_findings(std::vector<Finding>& all, std::vector<Finding> more) {
    for (Finding& finding : more) {
        const auto same = std::find_if(all.begin(), all.end(), [&](const Finding& known) {
            if (known.kind != finding.kind || known.other.has_value() != finding.other.has_value())
                return false;
            if (known.source == finding.source && known.other == finding.other) return true;
            return finding.other && known.source == *finding.other && *known.other == finding.source;
        });
        if (same != all.end()) {
            same->count += finding.count;
        } else {
            all.push_back(std::move(finding));
        }
    }
    std::stable_sort(all.begin(), all.end(), [](const Finding& a, const Finding& b) {
        return std::tie(a.source.file, a.source.line, a.kind) <
               std::tie(b.source.file, b.source.line, b.kind);
    });
}

bool Findings::has_bad_access() const {
    const std::scoped_lock lock(mutex_);
    return std::any_of(found_.begin(), found_.end(), [](const auto& entry) {
        const std::string& kind = entry.first.kind;
        return kind == "out_of_bounds" || kind == "use_after_free" || kind == "misaligned" ||
               kind == "host_memory";
    });
}

bool Findings::empty() const {
    const std::scoped_lock lock(mutex_);
    return found_.empty();
}

std::string why_of(const std::string& kind) {
    static const auto& kWhy = *new std::map<std::string, std::string, std::less<>>{
        {"race",
         "Nothing orders the two: no __syncthreads() of the block, and no __syncwarp() or collective of "
         "lanes of one warp, lies "
         "between them. A GPU may do either first."},
        {"race_between_blocks",
         "Blocks of one launch run in any order, also at the same time. Only atomic accesses order them: a "
         "release store behind the write, which an acquire load before the read sees; or write, "
         "__threadfence(), then an atomic; a thread that sees the atomic, and then calls __threadfence() "
         "itself, may read. Other threads of its block may, behind a barrier. Nothing of it may have the "
         "scope of a block. Or use two launches."},
        {"race_between_launches",
         "No stream, event or wait of the host orders the two: they may run at the same time, or either "
         "first. Record an event "
         "behind the one that comes first, and let the stream of the other one wait for it."},
        {"out_of_bounds",
         "The access lies outside of every array. A GPU reads something else there, or destroys it."},
        {"misaligned", "An access of 2, 4, 8 or 16 bytes needs an address that is a multiple of its size."},
        {"host_memory",
         "A pointer of the host means nothing to a GPU. Where an array, a list or a structure in device "
         "memory "
         "holds pointers, what they point to needs memory of cudaMalloc(), too, and these addresses are "
         "what is copied."},
        {"use_after_free", "The memory was given back with cudaFree() before the kernel ran."},
        {"uninitialised_read",
         "Nothing has written these bytes: neither a copy from the host, nor cudaMemset(), nor a kernel. On "
         "a GPU they hold what was "
         "left there."},
        {"missing_wait",
         "The asynchronous copy may still be under way. The thread that issued it waits for it first "
         "(cp_async_wait); other threads "
         "need a barrier after that."},
        {"missing_fence",
         "A bulk copy sees what a thread has written only if that thread has called fence.proxy.async "
         "afterwards. Each thread that writes calls it, then comes the barrier, then the copy: a fence by "
         "the "
         "thread that issues the copy covers its own writes only."},
        {"cluster_exit",
         "The shared memory of a block is given away when the block ends. After the last access to it, and "
         "before the end, all blocks of the cluster need to meet: cluster.sync()."},
        {"divergent_barrier",
         "__syncthreads() must be reached by all threads of the block: take it out of the branch, and let no "
         "thread return before it."},
        {"deadlock", "Threads wait for each other and none can go on."},
        {"wrong_mask",
         "All lanes that the mask names, and no others, must call the function with that same mask."},
        {"timeout", "A thread waited for a value that never came."},
        {"assertion", "An assert() in the kernel has failed."},
    };
    const auto found = kWhy.find(kind);
    return found == kWhy.end() ? std::string() : found->second;
}

}  // namespace cuda_on_cpu::inspector
