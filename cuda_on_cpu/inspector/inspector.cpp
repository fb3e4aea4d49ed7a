#include "inspector.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "cuda_on_cpu/launch.h"
#include "environment.hpp"
#include "launch_state.hpp"
#include "memory.hpp"
#include "source_places.hpp"

namespace cuda_on_cpu::inspector {
namespace {

constexpr std::uint64_t kGpuAlignment = 256;

// "in", or "in and out", after the parameters that point into the allocation. If there are none, or
// if one of them points into other allocations, too, the size of the allocation.
std::string name_of(const Allocation& allocation, const std::vector<Allocation>& all,
                    const std::vector<NamedAddress>& addresses) {
    const auto is_in = [](const NamedAddress& named, const Allocation& in) {
        return named.address - reinterpret_cast<std::uintptr_t>(in.begin) < in.size;
    };
    const std::string size = "allocation of " + std::to_string(allocation.size) + " bytes";
    std::vector<std::string> names;
    bool ambiguous = false;
    for (const NamedAddress& named : addresses) {
        if (!is_in(named, allocation) || std::ranges::find(names, named.parameter) != names.end()) continue;
        names.push_back(named.parameter);
        ambiguous = ambiguous || std::ranges::any_of(addresses, [&](const NamedAddress& other) {
                        return other.parameter == named.parameter && !is_in(other, allocation) &&
                               std::ranges::any_of(all, [&](const Allocation& a) { return is_in(other, a); });
                    });
    }
    if (names.empty()) return size;
    std::string text = names.front();
    for (std::size_t i = 1; i < names.size(); ++i)
        text += (i + 1 < names.size() ? ", " : " and ") + names[i];
    return ambiguous ? text + ", " + size : text;
}

// Where in the allocation its parameter points; 0 if there are none or several, or if sectors would
// begin elsewhere when counted from there.
std::uint64_t named_at(const Allocation& allocation, const std::vector<NamedAddress>& addresses) {
    std::vector<std::uint64_t> offsets;
    for (const NamedAddress& named : addresses) {
        const std::uint64_t offset = named.address - reinterpret_cast<std::uintptr_t>(allocation.begin);
        if (offset < allocation.size) offsets.push_back(offset);
    }
    std::ranges::sort(offsets);
    const bool one = !offsets.empty() && offsets.front() == offsets.back();
    return one && offsets.front() % kSectorBytes == 0 ? offsets.front() : 0;
}

// The memory that all blocks share, with its pieces at the distances that a GPU would give them.
void add_global_memory(LaunchRecord& record, const std::vector<NamedAddress>& addresses) {
    struct Piece {
        std::unique_ptr<Region> region;
        std::string name;
        std::uint64_t named_at;
    };
    std::vector<Piece> pieces;
    std::uint64_t gpu = kGpuAlignment;
    const std::vector<Allocation> allocations = live_allocations();
    for (const Allocation& allocation : allocations) {
        const auto begin = reinterpret_cast<std::uint64_t>(allocation.begin);
        pieces.push_back({std::make_unique<Region>(begin, begin + allocation.size, gpu, 0),
                          name_of(allocation, allocations, addresses), named_at(allocation, addresses)});
        gpu += (allocation.size / kGpuAlignment + 2) * kGpuAlignment;
    }
    const ImageRange variables = writable_image();
    pieces.push_back(
        {std::make_unique<Region>(variables.begin, variables.end, gpu + variables.begin % kGpuAlignment, 0),
         "__device__ variables", 0});
    std::ranges::sort(pieces, {}, [](const Piece& piece) { return piece.region->begin; });
    for (Piece& piece : pieces) {
        piece.region->array = static_cast<unsigned>(record.global.size());
        if (piece.region->begin == variables.begin) record.variables = piece.region->array;
        record.global.push_back(std::move(piece.region));
        record.arrays.push_back(std::move(piece.name));
        record.named_at.push_back(piece.named_at);
    }
}

// File, line, space, operation, bytes, array; the last number distinguishes several arrays of that
// name.
using Line = std::tuple<std::string, int, Space, Operation, unsigned, std::string, unsigned>;

bool reads(const Action action) {
    return action.space() == Space::kGlobal && reads(action.operation());
}
bool writes(const Action action) {
    return action.space() == Space::kGlobal && writes(action.operation());
}

// Adds everything except the lines.
void add(const LaunchRecord& launch, KernelInspection& kernel) {
    kernel.name = launch.kernel;
    kernel.launches += 1;
    kernel.blocks += launch.blocks;
    kernel.inspected_blocks += launch.inspected_blocks;
    kernel.threads_per_block = launch.threads_per_block;
    kernel.static_shared = std::max(kernel.static_shared, launch.static_shared);
    kernel.dynamic_shared = launch.dynamic_shared;
    kernel.barriers += launch.barriers;
    kernel.dropped_accesses += launch.dropped_accesses;
    kernel.all_memory_watched = kernel.all_memory_watched && launch.all_memory_watched;
    kernel.unique_read_bytes += launch.unique_read_bytes;
    kernel.unique_written_bytes += launch.unique_written_bytes;
    for (const auto& [key, count] : launch.lines) {
        const Action action = Action::of_word(key.action);
        if (reads(action)) kernel.global_read_bytes += count.transactions * kSectorBytes;
        if (writes(action)) kernel.global_written_bytes += count.transactions * kSectorBytes;
    }
}

// Adds the lines of a launch. Two arrays of one name in one line are distinguished by the order in
// which the line accesses them, so that launches that swap their buffers add up.
void add(const LaunchRecord& launch, const std::unordered_map<Place, SourceLine>& sources,
         std::map<Line, LineCount>& lines) {
    // The arrays of each line, with the first place that accesses them.
    std::map<Line, std::map<unsigned, Place>> arrays;
    const auto line_of = [&](const LineKey& key) {
        const Action action = Action::of_word(key.action);
        const auto source = sources.find(action.place());
        const SourceLine at = source == sources.end() ? SourceLine{} : source->second;
        return Line{
            at.file, at.line, action.space(), action.operation(), action.bytes(), launch.arrays[key.array],
            0};
    };
    for (const auto& [key, count] : launch.lines) {
        const Place place = Action::of_word(key.action).place();
        const auto [first, is_new] = arrays[line_of(key)].try_emplace(key.array, place);
        if (!is_new) first->second = std::min(first->second, place);
    }
    for (const auto& [key, count] : launch.lines) {
        Line line = line_of(key);
        const auto& of_line = arrays[line];
        const std::pair own(of_line.at(key.array), key.array);
        std::get<6>(line) = static_cast<unsigned>(std::ranges::count_if(
            of_line, [&](const auto& other) { return std::pair(other.second, other.first) < own; }));
        lines[line].add(count);
    }
}

Shape shape_of(const LaunchRecord& launch) {
    return {launch.kernel, launch.threads_per_block, launch.dynamic_shared};
}

// "load", ...
std::string_view name(Operation operation) {
    return kOperationNames[static_cast<std::size_t>(operation)];
}

std::string_view name(RawStep::Kind kind) {
    constexpr std::array<std::string_view, 8> kNames = {
        "request", "barrier", "collective", "arrival", "wait", "blocks_barrier", "bulk_load", "bulk_store"};
    return kNames[static_cast<std::size_t>(kind)];
}

// For each array, the byte from which a trace counts: never behind one that the warp accesses.
std::vector<std::uint64_t> first_bytes(const LaunchRecord& launch) {
    std::vector<std::uint64_t> first(launch.arrays.size());
    std::ranges::copy(launch.named_at, first.begin());
    for (const RawStep& step : launch.trace.trace.recorded) {
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            if ((step.lanes >> lane & 1) != 0 && step.kind == RawStep::Kind::kRequest &&
                step.addresses[lane] - step.array_begin < first[step.array])
                first[step.array] = 0;
        }
    }
    return first;
}

template <class Resolve>
WarpTrace trace_of(const LaunchRecord& launch, const Resolve& resolve) {
    const LaunchTrace& kept = launch.trace;
    const std::vector<std::uint64_t> first = first_bytes(launch);
    WarpTrace trace{.block = kept.block, .warp = kept.warp, .steps = kept.trace.steps, .recorded = {}};
    for (const RawStep& raw : kept.trace.recorded) {
        TraceStep& step = trace.recorded.emplace_back();
        step.source = resolve(raw.action.place());
        step.lanes = raw.lanes;
        step.repeats = raw.repeats;
        if (raw.kind != RawStep::Kind::kRequest) {
            step.kind = name(raw.kind);
            step.bytes = raw.bulk_bytes;
            continue;
        }
        step.kind = name(raw.action.operation());
        step.space = raw.action.space();
        step.bytes = raw.action.bytes();
        step.transactions = raw.transactions;
        step.ideal = raw.ideal;
        step.array = launch.arrays[raw.array];
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            const bool active = (raw.lanes >> lane & 1) != 0;
            step.offsets.push_back(
                active ? static_cast<std::int64_t>(raw.addresses[lane] - raw.array_begin - first[raw.array])
                       : -1);
        }
    }
    return trace;
}

// Leaves out what repeats others, by the lines of the source, and then what is too much.
void shorten(WarpTrace& trace, const InspectionOptions& options) {
    std::map<std::tuple<std::string, unsigned, std::string, std::uint32_t, unsigned, std::string>, unsigned>
        alike;
    std::vector<TraceStep> kept;
    for (TraceStep& step : trace.recorded) {
        unsigned& seen =
            alike[{step.source.file, step.source.line, step.kind, step.lanes, step.transactions, step.array}];
        if (options.trace_alike > 0 && seen == options.trace_alike) {
            kept.back().repeats += 1 + step.repeats;
            continue;
        }
        if (kept.size() == options.trace_steps) break;
        ++seen;
        kept.push_back(std::move(step));
    }
    trace.recorded = std::move(kept);
}

}  // namespace

void Inspector::begin_launch(LaunchState& launch) {
    auto record = std::make_unique<LaunchRecord>();
    record->kernel = launch.name;
    record->threads_per_block = static_cast<unsigned>(volume(launch.configuration.block));
    record->dynamic_shared = launch.configuration.dynamic_shared;
    record->blocks = volume(launch.configuration.grid);
    add_global_memory(*record, launch.addresses);
    record->checks = std::make_unique<LaunchChecks>(launch);
    launch.observed = record.get();
    // Of an unrolled loop, each copy of an instruction has another place, but the same line.
    constexpr unsigned kCopies = 8;
    record->trace_steps = options_.trace_steps * (options_.trace_alike > 0 ? kCopies : 1);
    record->trace_alike = options_.trace_alike;
    const std::scoped_lock lock(mutex_);
    record->number = launches_.size();
    launches_.push_back(std::move(record));
}

// Chooses as many blocks as are allowed, in pairs of neighbours, evenly spread and including the
// first and the last. All blocks of a cluster are chosen or none, because they synchronise with
// each other; then clusters count as blocks.
bool Inspector::chosen(uint3 block, const LaunchConfiguration& launch) const {
    const std::uint64_t number = cluster_of(block, launch);
    const std::uint64_t clusters = volume(launch.grid) / blocks_together(launch);
    const std::uint64_t wanted =
        std::max<std::uint64_t>(options_.blocks_per_launch / blocks_together(launch), 2);
    if (clusters <= wanted || number == 0) return true;
    const bool pairs = wanted >= 4;
    // Where a pair, or a single block, begins.
    const std::uint64_t starts = pairs ? wanted / 2 : wanted;
    const std::uint64_t last = clusters - (pairs ? 2 : 1);
    const long double apart = static_cast<long double>(last) / static_cast<long double>(starts - 1);
    const auto step = [&](std::uint64_t n) {
        return static_cast<std::uint64_t>(static_cast<long double>(n) / apart);
    };
    const auto begins = [&](std::uint64_t n) {
        return n == 0 || n == last || (n < last && step(n) != step(n - 1));
    };
    return begins(number) || (pairs && begins(number - 1));
}

BlockObserver* Inspector::watch(LaunchState& launch, uint3 block) {
    const bool watched = chosen(block, launch.configuration);
    auto& record = *static_cast<LaunchRecord*>(launch.observed);
    if (options_.look_for_mistakes)
        BlockChecks::of_this_thread().begin_block(*record.checks, launch, block, watched);
    return watched ? &Recorder::of_this_thread() : nullptr;
}

void Inspector::end_launch(LaunchState& launch) {
    auto& record = *static_cast<LaunchRecord*>(launch.observed);
    record.checks->end();
    if (options_.look_for_mistakes) {
        BlockChecks::forget_everywhere(*record.checks);
        record.all_memory_watched = record.checks->all_memory_watched();
    } else {
        memory_observer->unwatched_launch();
    }
    record.static_shared = launch.kernel->static_shared;
    Recorder::deliver_all(record);
    for (const auto& region : record.global) {
        if (const SectorSet* set = region->read) record.unique_read_bytes += set->count() * kSectorBytes;
        if (const SectorSet* set = region->written)
            record.unique_written_bytes += set->count() * kSectorBytes;
    }
    record.global.clear();
    if (options_.trace_steps > 0) keep_longest_trace(record);
}

// Of the launches of one shape, only the trace with the most requests is kept.
void Inspector::keep_longest_trace(LaunchRecord& record) {
    const std::scoped_lock lock(mutex_);
    const auto [found, is_first] = longest_traces_.try_emplace(shape_of(record), &record);
    if (is_first) return;
    LaunchRecord*& longest = found->second;
    const unsigned before = longest->trace.trace.requests;
    const unsigned now = record.trace.trace.requests;
    // Launches may end in another order than they began.
    const bool is_longer = now > before || (now == before && record.number < longest->number);
    (is_longer ? *longest : record).trace.trace = {};
    if (is_longer) longest = &record;
}

void Inspector::launch_failed(LaunchState& launch, cudaError_t error, const std::string& message, Site site) {
    static_cast<LaunchRecord*>(launch.observed)->checks->failed(error, message, site);
}

void Inspector::host_awaits_copy(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    awaited_copies_ += 1;
    awaited_copy_bytes_ += bytes;
}

Inspection Inspector::result() {
    const std::scoped_lock lock(mutex_);  // an interrupted program may still launch kernels
    std::vector<Place> places;
    for (const auto& launch : launches_) {
        for (const auto& [key, count] : launch->lines)
            places.push_back(Action::of_word(key.action).place());
        const std::vector<Place> found = launch->checks->findings().places();
        places.insert(places.end(), found.begin(), found.end());
        for (const RawStep& step : launch->trace.trace.recorded)
            places.push_back(step.action.place());
    }
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    const std::unordered_map<Place, SourceLine> sources = source_lines(places);
    const auto resolve = [&](Place place) {
        const auto source = sources.find(place);
        return source == sources.end() ? SourceLine{} : source->second;
    };

    // One entry for each kernel and block shape.
    Inspection inspection{
        .kernels = {}, .awaited_copies = awaited_copies_, .awaited_copy_bytes = awaited_copy_bytes_};
    std::map<Shape, std::size_t> kernels;
    std::vector<std::map<Line, LineCount>> lines;
    for (const auto& launch : launches_) {
        const auto [found, is_new] = kernels.try_emplace(shape_of(*launch), kernels.size());
        if (is_new) {
            inspection.kernels.emplace_back();
            lines.emplace_back();
        }
        add(*launch, inspection.kernels[found->second]);
        add_findings(inspection.kernels[found->second].findings, launch->checks->findings().take(resolve));
        add(*launch, sources, lines[found->second]);
        if (const auto longest = longest_traces_.find(shape_of(*launch));
            longest != longest_traces_.end() && longest->second == launch.get()) {
            inspection.kernels[found->second].trace = trace_of(*launch, resolve);
            shorten(*inspection.kernels[found->second].trace, options_);
        }
    }
    for (std::size_t k = 0; k < lines.size(); ++k) {
        for (const auto& [line, count] : lines[k]) {
            AccessLine& out = inspection.kernels[k].lines.emplace_back();
            std::string array;
            std::tie(out.source.file, out.source.line, out.space, out.operation, out.bytes, array,
                     std::ignore) = line;
            out.requests = count.requests;
            out.transactions = count.transactions;
            out.ideal = count.ideal;
            out.active_lanes = count.active_lanes;
            out.bytes_used = count.bytes_used;
            out.worst = count.worst;
            out.worst.array = std::move(array);
        }
    }
    return inspection;
}

namespace {
// Not destroyed when the program ends: a whole program is watched until after its static objects
// have been destroyed.
constinit Inspector* inspector = nullptr;
}  // namespace

Inspection result_so_far() {
    return inspector->result();
}

}  // namespace cuda_on_cpu::inspector

void cuda_on_cpu::begin_inspection(const InspectionOptions& options) {
    if (launch_observer != nullptr) throw std::logic_error("an inspection is under way already");
    constexpr std::uint64_t kMost = inspector::GlobalShadow::kMostBlocks;
    if (options.blocks_per_launch < 2 || options.blocks_per_launch > kMost) {
        throw std::invalid_argument("blocks_per_launch = " + std::to_string(options.blocks_per_launch) +
                                    "; expected 2, the first and the last, to " + std::to_string(kMost));
    }
    InspectionOptions used = options;
    if (options.blocks_per_launch == InspectionOptions::kBlocksPerLaunch)
        used.blocks_per_launch = std::max(environment().inspect_blocks, 2U);
    used.look_for_mistakes = options.look_for_mistakes && environment().findings;
    inspector::Footprints::of_inspection().clear();
    inspector::inspector = new inspector::Inspector(used);
    launch_observer = inspector::inspector;
}

cuda_on_cpu::Inspection cuda_on_cpu::end_inspection() {
    if (launch_observer == nullptr) throw std::logic_error("no inspection is under way");
    launch_observer = nullptr;
    inspector::Footprints::of_inspection().clear();
    const std::unique_ptr<inspector::Inspector> ended(std::exchange(inspector::inspector, nullptr));
    return ended->result();
}
