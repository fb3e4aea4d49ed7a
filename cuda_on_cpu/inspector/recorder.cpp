#include "recorder.hpp"

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>
#include <vector>

#include "block.hpp"
#include "cuda_on_cpu/ptx.h"
#include "source_places.hpp"

namespace cuda_on_cpu::inspector {
namespace {

constexpr LaneMask kAllLanes = ~LaneMask{0};
// Assumed alignment of each separate object in shared memory, which thus starts in bank 0.
constexpr std::uint64_t kSharedAlignment = 128;

struct Recorders {
    std::mutex mutex;
    std::vector<Recorder*> all;
};

// Never destroyed: OS threads of the worker pool outlive static objects.
Recorders& recorders() {
    static auto& all = *new Recorders;
    return all;
}

std::uint64_t address_of(const volatile void* pointer) {
    return reinterpret_cast<std::uint64_t>(pointer);
}

LaneMask bit(unsigned lane) {
    return LaneMask{1} << lane;
}

// The set of a region, created when it is first needed.
SectorSet& made(std::atomic<SectorSet*>& set, const Region& region) {
    if (SectorSet* found = set.load(std::memory_order_acquire); found != nullptr) return *found;
    auto fresh = std::make_unique<SectorSet>((region.end - region.begin) / kSectorBytes + 2);
    SectorSet* expected = nullptr;
    if (set.compare_exchange_strong(expected, fresh.get(), std::memory_order_acq_rel))
        return *fresh.release();
    return *expected;
}

// The number of a shared array, the same for all blocks.
unsigned shared_array(LaunchRecord& record, const char* name) {
    const std::scoped_lock lock(record.arrays_mutex);
    const auto first = record.arrays.begin() + static_cast<std::ptrdiff_t>(record.global.size());
    const auto found = std::find(first, record.arrays.end(), name);
    const auto number = static_cast<unsigned>(found - record.arrays.begin());
    if (found == record.arrays.end()) record.arrays.emplace_back(name);
    return number;
}

}  // namespace

constinit thread_local Recorder* recording = nullptr;

// --- Regions and counts --------------------------------------------------------------------------

void SectorSet::insert(std::span<const std::uint64_t> sectors, std::uint64_t first) {
    for (const std::uint64_t absolute : sectors) {
        const std::uint64_t sector = absolute - first;
        // Beyond the end: reported as a finding, not counted as traffic.
        if (sector / 64 >= words_.size()) continue;
        std::atomic<std::uint64_t>& word = words_[sector / 64];
        const std::uint64_t wanted = std::uint64_t{1} << sector % 64;
        if ((word.load(std::memory_order_relaxed) & wanted) == 0)
            word.fetch_or(wanted, std::memory_order_relaxed);
    }
}

std::uint64_t SectorSet::count() const {
    std::uint64_t sum = 0;
    for (const auto& word : words_)
        sum += static_cast<std::uint64_t>(std::popcount(word.load(std::memory_order_relaxed)));
    return sum;
}

Region::~Region() {
    delete read.load();
    delete written.load();
}

void LineCount::add(const LineCount& other) {
    requests += other.requests;
    transactions += other.transactions;
    ideal += other.ideal;
    active_lanes += other.active_lanes;
    bytes_used += other.bytes_used;
    // Among equally bad requests, keep that of the first block, so that the result does not depend
    // on the order in which OS threads deliver.
    if (std::pair(other.worst.transactions, worst_block) > std::pair(worst.transactions, other.worst_block)) {
        worst = other.worst;
        worst_block = other.worst_block;
    }
}

// --- The block's life ----------------------------------------------------------------------------

Recorder::Recorder() {
    const std::scoped_lock lock(recorders().mutex);
    recorders().all.push_back(this);
}

Recorder::~Recorder() {
    const std::scoped_lock lock(recorders().mutex);
    std::erase(recorders().all, this);
}

void Recorder::deliver_all(LaunchRecord& record) {
    const std::scoped_lock lock(recorders().mutex);
    for (Recorder* recorder : recorders().all)
        recorder->deliver(record);
}

Recorder& Recorder::of_this_thread() {
    return only_of_this_thread<Recorder>();
}

void Recorder::begin_block(LaunchState& launch, uint3 block, void* dynamic_shared, std::size_t size) {
    auto* record = static_cast<LaunchRecord*>(launch.observed);
    if (launch_ != record) {
        launch_ = record;
        static_shared_.clear();
        static_begin_ = ~std::uint64_t{0};
        static_end_ = 0;
        pages_.fill(Page{});
        pieces_.clear();
        recent_.clear();
        dynamic_shared_.begin = address_of(dynamic_shared);
        dynamic_shared_.end = dynamic_shared_.begin + size;
        dynamic_shared_.array = shared_array(*record, "dynamic shared memory");
    }
    const BlockRunner& runner = block_runner();
    stacks_begin_ = address_of(runner.stacks().begin());
    stacks_size_ = address_of(runner.stacks().end()) - stacks_begin_;
    const dim3 grid = launch.configuration.grid;
    block_ = block;
    block_number_ = (std::uint64_t{block.z} * grid.y + block.y) * grid.x + block.x;
    const unsigned threads = record->threads_per_block;
    warps_ = (threads + kLanes - 1) / kLanes;
    for (unsigned w = 0; w < warps_; ++w) {
        const unsigned lanes = std::min(kLanes, threads - w * kLanes);
        warp_[w].live = warp_[w].began = lanes == kLanes ? ~LaneMask{0} : bit(lanes) - 1;
        warp_[w].waiting = 0;
    }
    ++blocks_;
    traced_.clear();
    if (record->trace_steps > 0) {
        const std::scoped_lock lock(record->trace.mutex);
        const LaunchTrace& kept = record->trace;
        if (block_number_ < kept.block_number || kept.trace.requests < record->trace_steps)
            traced_.resize(warps_);
    }
    recording = this;
    checks_.begin_watched_block(dynamic_shared, size, *this);
}

void Recorder::end_block() {
    recording = nullptr;
    checks_.end_block();
    for (unsigned w = 0; w < warps_; ++w)
        finish_warp(w);  // events are left over if the block failed
    if (!traced_.empty()) keep_trace();
}

// Later blocks may have ended earlier, on other OS threads.
void Recorder::keep_trace() {
    const auto most =
        std::ranges::max_element(traced_, {}, [](const TracedWarp& warp) { return warp.trace.requests; });
    LaunchTrace& kept = launch_->trace;
    const std::scoped_lock lock(kept.mutex);
    const unsigned requests = most->trace.requests;
    if (requests < kept.trace.requests || requests == 0) return;
    if (requests == kept.trace.requests && block_number_ >= kept.block_number) return;
    kept.block_number = block_number_;
    kept.block = {block_.x, block_.y, block_.z};
    kept.warp = static_cast<unsigned>(most - traced_.begin());
    kept.trace = std::move(most->trace);
}

void Recorder::trace_step(unsigned warp, const RawStep& step) {
    RawTrace& trace = traced_[warp].trace;
    ++trace.steps;
    if (trace.recorded.size() >= launch_->trace_steps) return;
    if (launch_->trace_alike > 0) {
        unsigned& alike =
            trace.alike[{step.kind, step.action.word(), step.lanes, step.transactions, step.array}];
        if (alike == launch_->trace_alike) {
            ++trace.recorded.back().repeats;
            return;
        }
        ++alike;
    }
    trace.recorded.push_back(step);
    trace.requests += step.kind == RawStep::Kind::kRequest ? 1 : 0;
}

void Recorder::note_wait(unsigned thread, Site site) {
    if (!traced_.empty()) traced_[thread / kLanes].waits_at[thread % kLanes] = place_of(site);
}

void Recorder::trace_wait(unsigned warp, RawStep::Kind kind, LaneMask lanes) {
    if (traced_.empty()) return;
    const Place place = traced_[warp].waits_at[static_cast<unsigned>(std::countr_zero(lanes))];
    trace_step(warp, {.kind = kind, .action = Action::sync_point(place), .lanes = lanes});
}

namespace {

// The address of a sync point whose step is traced where the lanes of a warp come to it: the kind
// of the step and its place, or the bytes of a bulk copy.
constexpr std::uint64_t kIsStep = std::uint64_t{1} << 63;
constexpr unsigned kKindShift = 56;
constexpr std::uint64_t kValue = (std::uint64_t{1} << kKindShift) - 1;

bool is_bulk(RawStep::Kind kind) {
    return kind == RawStep::Kind::kBulkLoad || kind == RawStep::Kind::kBulkStore;
}

}  // namespace

// Some lanes of a warp have met. What they did before is traced when the warp finishes, and then
// their sync points lead back to this step.
void Recorder::postpone(unsigned warp, LaneMask lanes) {
    if (traced_.empty()) return;
    TracedWarp& traced = traced_[warp];
    const Place place = traced.waits_at[static_cast<unsigned>(std::countr_zero(lanes))];
    traced.pending.push_back(
        {.step = {.kind = RawStep::Kind::kCollective, .action = Action::sync_point(place), .lanes = lanes}});
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        LaneTrace& trace = (*warp_[warp].traces)[lane];
        // Else there were too many events.
        if (trace.empty() || !trace.last().action.is_sync_point()) continue;
        trace.last().address = traced.pending.size();
        traced.pending.back().missing |= bit(lane);
    }
}

void Recorder::pass_sync_point(unsigned warp, unsigned lane, const TraceEntry& event) {
    if (event.address == 0 || (event.address & kIsStep) != 0 || traced_.empty()) return;
    PendingStep& pending = traced_[warp].pending[event.address - 1];
    pending.missing &= ~bit(lane);
    if (pending.missing == 0) trace_step(warp, pending.step);
}

// `action` tells which lanes come to it together.
void Recorder::note_step(unsigned thread, RawStep::Kind kind, Action action, Site site,
                         std::size_t bulk_bytes) {
    const std::uint64_t value = is_bulk(kind) ? bulk_bytes : place_of(site);
    note(thread, action, kIsStep | static_cast<std::uint64_t>(kind) << kKindShift | value);
}

void Recorder::trace_noted(unsigned warp, LaneMask lanes, const TraceEntry& event) {
    if ((event.address & kIsStep) == 0 || traced_.empty()) return;
    const auto kind = static_cast<RawStep::Kind>((event.address & ~kIsStep) >> kKindShift);
    const std::uint64_t value = event.address & kValue;
    const bool bulk = is_bulk(kind);
    trace_step(warp, {.kind = kind,
                      .action = bulk ? event.action : Action::sync_point(value),
                      .lanes = lanes,
                      .bulk_bytes = bulk ? static_cast<unsigned>(value) : 0});
}

void Recorder::notify(const Event& event) {
    checks_.notify(event);
    std::visit([this](const auto& one) { on(one); }, event);
}

void Recorder::on(const event::ThreadEnded& event) {
    Warp& warp = warp_[event.thread / kLanes];
    warp.live &= ~bit(event.thread % kLanes);
    if (warp.live == warp.waiting) finish_warp(event.thread / kLanes);
}

void Recorder::on(const event::SharedEntered& event) {
    const std::uint64_t begin = address_of(event.object);
    std::uint64_t next = 0;
    for (const auto& known : static_shared_) {
        if (known->begin == begin) return;  // from the block before
        next = known->gpu_begin + (known->end - known->begin);
    }
    next = (next + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
    static_shared_.push_back(
        std::make_unique<Region>(begin, begin + event.size, next, shared_array(*launch_, event.name)));
    static_begin_ = std::min(static_begin_, begin);
    static_end_ = std::max(static_end_, begin + event.size);
    pages_.fill(Page{});
}

// --- Waiting -------------------------------------------------------------------------------------

void Recorder::on(const event::BarrierArrived& event) {
    Warp& warp = warp_[event.thread / kLanes];
    warp.waiting |= bit(event.thread % kLanes);
    note_wait(event.thread, event.site);
    if (warp.waiting == warp.live) finish_warp(event.thread / kLanes);
}

void Recorder::on(const event::SplitBarrierArrived& event) {
    note_step(event.thread, RawStep::Kind::kArrival, Action::sync_point(place_of(event.site)), event.site);
}

void Recorder::on(const event::BarrierReleased&) {
    ++barriers_;
    for (unsigned w = 0; w < warps_; ++w) {
        if (warp_[w].waiting != 0) trace_wait(w, RawStep::Kind::kBarrier, warp_[w].waiting);
        warp_[w].waiting = 0;
    }
}

// If all lanes of a warp wait together, its traces start anew afterwards. If only some do, they may
// still reconverge with the others later.
void Recorder::on(const event::CollectiveArrived& event) {
    note_wait(event.thread, event.site);
    if ((warp_[event.thread / kLanes].began & ~event.mask) != 0)
        note(event.thread, Action::sync_point(place_of(event.site)), 0);
}

void Recorder::on(const event::CollectiveCompleted& event) {
    if ((warp_[event.warp].began & ~event.mask) != 0) {
        postpone(event.warp, event.lanes);
        return;
    }
    finish_warp(event.warp);
    if (traced_.empty()) return;
    // A matrix load is the collective itself.
    std::vector<RawStep>& of_matrices = traced_[event.warp].of_matrices;
    if (of_matrices.empty()) trace_wait(event.warp, RawStep::Kind::kCollective, event.lanes);
    for (const RawStep& step : of_matrices)
        trace_step(event.warp, step);
    of_matrices.clear();
}

void Recorder::on(const event::BlocksBarrierArrived& event) {
    note_step(event.thread, RawStep::Kind::kBlocksBarrier, Action::sync_point(address_of(event.barrier)),
              event.site);
}

void Recorder::on(const event::ArrivalBarrierArrived& event) {
    note_step(event.thread, RawStep::Kind::kArrival, Action::sync_point(place_of(event.site)), event.site);
}

void Recorder::on(const event::ArrivalBarrierLeft& event) {
    note_step(event.thread, RawStep::Kind::kWait, Action::sync_point(place_of(event.site)), event.site);
}

void Recorder::on(const event::MbarrierLeft& event) {
    note_step(event.thread, RawStep::Kind::kWait, Action::sync_point(place_of(event.site)), event.site);
}

// --- Events --------------------------------------------------------------------------------------

void Recorder::access_range(Operation operation, const volatile void* address, std::size_t bytes,
                            Place place) {
    // Up to 16 bytes with an alignment smaller than their size; more than 16 bytes are a structure,
    // with whatever alignment it has.
    const std::uint64_t alignment = address_of(address) | bytes | (bytes <= 16 ? 4 : 16);
    const std::size_t step = std::size_t{1} << std::countr_zero(alignment);
    for (std::size_t i = 0; i < bytes; i += step) {
        access(operation, static_cast<const volatile char*>(address) + i, static_cast<unsigned>(step), place);
    }
}

// The slow path: the address is not in the region of the instruction's previous access.
void Recorder::access_anywhere(Action action, std::uint64_t byte) {
    Space space;
    const Region* region = find(byte, space);
    if (region == nullptr) return;
    // The variables include constants, which are not counted.
    if (region->holds(byte) && (space == Space::kShared || region->array != launch_->variables))
        pieces_[action.place()] = piece_of(*region, space, action.place());
    note(running_thread(), action.in(space), byte);
}

Recorder::Piece Recorder::piece_of(const Region& region, Space space, Place place) const {
    constexpr std::uint64_t kMostBytes = 16;  // of a load
    const std::uint64_t size = region.end - region.begin;
    const bool can_only_race =
        space == Space::kGlobal && size >= kMostBytes && checks_.can_only_race(place, region.begin, size);
    return {region.begin, size, space, can_only_race};
}

void Recorder::take_back_atomic_load(const volatile void* address) {
    const auto& traces = warp_[running_thread() / kLanes].traces;
    if (traces == nullptr) return;
    LaneTrace& trace = (*traces)[running_thread() % kLanes];
    if (!trace.empty() && trace.last().address == address_of(address) &&
        trace.last().action.operation() == Operation::kAtomicLoad) {
        trace.forget_last();
    }
}

void Recorder::on(const event::CopyIssued& event) {
    const Place place = place_of(event.site);
    Space space;
    if (event.valid_bytes > 0 && find(address_of(event.global), space) != nullptr) {
        note(event.thread, Action(place, Space::kGlobal, Operation::kAsyncCopy, event.bytes),
             address_of(event.global));
    }
    if (find(address_of(event.shared), space) != nullptr) {
        note(event.thread, Action(place, Space::kShared, Operation::kAsyncCopy, event.bytes),
             address_of(event.shared));
    }
}

// A bulk copy is no request of a warp, so it is traced, but not counted.
void Recorder::on(const event::BoxLoadIssued& event) {
    note_step(event.thread, RawStep::Kind::kBulkLoad, Action::sync_point(place_of(event.site)), event.site,
              event.map.box_bytes());
}

void Recorder::on(const event::BoxStoreIssued& event) {
    note_step(event.thread, RawStep::Kind::kBulkStore, Action::sync_point(place_of(event.site)), event.site,
              event.map.box_bytes());
}

void Recorder::on(const event::MatricesLoaded& event) {
    add_matrices(event.warp, event.rows, event.matrices, Operation::kMatrixLoad, event.site);
}

// Counts as a store of 16 bytes by each lane that passes a row.
void Recorder::on(const event::MatricesStored& event) {
    add_matrices(event.warp, event.rows, event.matrices, Operation::kStore, event.site);
}

void Recorder::add_matrices(unsigned warp, const void* const* rows, unsigned matrices, Operation operation,
                            Site site) {
    Space space;
    const Region* region = find(address_of(rows[0]), space);
    if (region == nullptr) return;
    Addresses gpu{};
    for (unsigned lane = 0; lane < 8 * matrices; ++lane)
        gpu[lane] = address_of(rows[lane]) - region->begin + region->gpu_begin;
    const LaneMask named = ~LaneMask{0} >> (kLanes - 8 * matrices);
    add(warp, Action(place_of(site), Space::kShared, operation, 16), named, count_matrices(gpu, matrices),
        *region, gpu, true);
}

// --- Where a byte is -----------------------------------------------------------------------------

const Region* Recorder::find_static(std::uint64_t byte) const {
    if (byte < static_begin_ || byte >= static_end_) return nullptr;
    for (const auto& region : static_shared_) {
        if (region->holds(byte)) return region.get();
    }
    return nullptr;
}

bool Recorder::is_constant(std::uint64_t byte) {
    return ptx::isa::is_constant(reinterpret_cast<const void*>(byte));
}

Recorder::Page Recorder::look_up(std::uint64_t byte) {
    const std::uint64_t number = byte / kPageBytes;
    const Region* recent = recent_.find([&](const Region* region) {
        return number >= region->begin / kPageBytes && number <= (region->end - 1) / kPageBytes;
    });
    if (recent != nullptr) return {number, recent, Kind::kGlobal};
    const BlockRunner& runner = block_runner();
    stacks_begin_ = address_of(runner.stacks().begin());  // they are laid out when the first is needed
    stacks_size_ = address_of(runner.stacks().end()) - stacks_begin_;
    if (static_end_ > 0 && number >= static_begin_ / kPageBytes && number <= (static_end_ - 1) / kPageBytes)
        return {number, nullptr, Kind::kStaticShared};
    if (runner.in_dynamic_shared(reinterpret_cast<const void*>(byte)))
        return {number, &dynamic_shared_, Kind::kDynamicShared};
    const auto& regions = launch_->global;
    const auto after = std::upper_bound(
        regions.begin(), regions.end(), number,
        [](std::uint64_t page, const auto& region) { return page < region->begin / kPageBytes; });
    if (after == regions.begin()) return {number, nullptr, Kind::kNothing};
    const Region* region = std::prev(after)->get();
    if (number > (region->end - 1) / kPageBytes) return {number, nullptr, Kind::kNothing};
    if (region->array == launch_->variables) return {number, region, Kind::kVariables};
    recent_.add(region);
    return {number, region, Kind::kGlobal};
}

// --- From events to counts -----------------------------------------------------------------------

void Recorder::give_traces(Warp& warp) {
    if (idle_traces_.empty()) {
        warp.traces = std::make_unique<WarpTraces>();
    } else {
        warp.traces = std::move(idle_traces_.back());
        idle_traces_.pop_back();
    }
}

bool Recorder::LaneTrace::grow() {
    const auto size = static_cast<std::size_t>(end_ - events_.get());
    if (size >= kMaxEvents) return false;
    const std::size_t room = std::max<std::size_t>(2 * size, 64);
    auto larger = std::make_unique_for_overwrite<TraceEntry[]>(room);
    std::copy(events_.get(), end_, larger.get());
    events_ = std::move(larger);
    end_ = events_.get() + size;
    limit_ = events_.get() + room;
    return true;
}

void Recorder::hand_over() {
    for (unsigned w = 0; w < warps_; ++w)
        hand_over(w);
}

void Recorder::hand_over(unsigned number) {
    Warp& warp = warp_[number];
    if (!std::exchange(warp.unchecked, false)) return;
    Traces traces;
    for (unsigned lane = 0; lane < kLanes; ++lane)
        traces[lane] = (*warp.traces)[lane].not_handed_over();
    if (lanes_alike(traces) == kAllLanes && checks_.have_one_epoch(number)) {
        for (std::size_t e = 0; e < traces[0].size(); ++e)
            hand_over(number, AtOnce(traces, e));
        return;
    }
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        for (const TraceEntry& event : traces[lane]) {
            if (!event.action.is_sync_point() && (event.address & kUnchecked) != 0)
                checks_.note_load(number * kLanes + lane, event.action, event.address & ~kUnchecked);
        }
    }
}

Recorder::AtOnce::AtOnce(const Traces& traces, std::size_t event) : action(traces[0][event].action) {
    std::uint64_t marks = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const std::uint64_t address = traces[lane][event].address;
        addresses[lane] = address & ~kUnchecked;
        marks |= (address & kUnchecked) >> kUncheckedBit << lane;
    }
    if (!action.is_sync_point()) unchecked = static_cast<LaneMask>(marks);
}

const Pattern& Recorder::pattern(const AtOnce& all, const Region& region) {
    return patterns_.of(all.action, all.addresses, region.gpu_begin - region.begin);
}

void Recorder::hand_over(unsigned warp, const AtOnce& all) {
    if (all.unchecked == 0) return;
    Space space;
    const Region* region = find(all.addresses[0], space);
    if (all.unchecked == kAllLanes && region != nullptr) {
        checks_.note_loads(warp, all.action, all.addresses, pattern(all, *region).groups());
        return;
    }
    for (LaneMask left = all.unchecked; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        checks_.note_load(warp * kLanes + lane, all.action, all.addresses[lane]);
    }
}

void Recorder::finish_warp(unsigned number) {
    Warp& warp = warp_[number];
    warp.began = warp.live;
    if (warp.traces == nullptr) return;
    Traces traces;
    for (unsigned lane = 0; lane < kLanes; ++lane)
        traces[lane] = (*warp.traces)[lane].events();
    const LaneMask alike = lanes_alike(traces);
    const bool hand_over_meanwhile = warp.unchecked && alike == kAllLanes &&
                                     std::ranges::all_of(*warp.traces, &LaneTrace::none_handed_over) &&
                                     checks_.have_one_epoch(number);
    if (hand_over_meanwhile) {
        warp.unchecked = false;
    } else {
        hand_over(number);
    }
    Addresses bytes;
    if (alike == kAllLanes) {
        for (std::size_t e = 0; e < traces[0].size(); ++e) {
            AtOnce all(traces, e);
            if (hand_over_meanwhile) hand_over(number, all);
            if (!all.action.is_sync_point()) {
                count(number, all);
                continue;
            }
            trace_noted(number, kAllLanes, traces[0][e]);
            for (unsigned lane = 0; lane < kLanes; ++lane)
                pass_sync_point(number, lane, traces[lane][e]);
        }
    } else {
        converge(traces, [&](const Instruction& instruction) {
            Action action;
            const TraceEntry* first = nullptr;
            for (LaneMask left = instruction.mask; left != 0; left &= left - 1) {
                const auto lane = static_cast<unsigned>(std::countr_zero(left));
                const TraceEntry& event = traces[lane][instruction.event[lane]];
                if (first == nullptr) first = &event;
                action = event.action;
                bytes[lane] = event.address & ~kUnchecked;
                if (action.is_sync_point()) pass_sync_point(number, lane, event);
            }
            if (action.is_sync_point())
                trace_noted(number, instruction.mask, *first);
            else
                count(number, action, instruction.mask, bytes);
        });
    }
    for (LaneTrace& trace : *warp.traces)
        trace.clear();
    idle_traces_.push_back(std::move(warp.traces));
    if (!traced_.empty()) traced_[number].pending.clear();
}

// Counts a request by all lanes.
void Recorder::count(unsigned warp, AtOnce& all) {
    Space space;
    Addresses& bytes = all.addresses;
    const Region* region = find(bytes[0], space);
    if (region == nullptr) return;
    const Pattern& pattern = this->pattern(all, *region);
    if (!region->holds(pattern.lowest(bytes[0])) || !region->holds(pattern.highest(bytes[0]))) {
        count(warp, all.action, kAllLanes, bytes);
        return;
    }
    for (std::uint64_t& byte : bytes)
        byte += region->gpu_begin - region->begin;
    add(warp, all.action, kAllLanes, pattern.count(), *region, bytes);
    if (all.action.space() == Space::kShared) return;
    Sectors sectors;
    pattern.sectors(bytes[0], sectors);
    note_sectors(all.action.operation(), *region, sectors);
}

// Counts one request, after converting its addresses to those of a GPU.
void Recorder::count(unsigned warp, Action action, LaneMask mask, Addresses& bytes) {
    Space space;
    const Region* first = find(bytes[static_cast<unsigned>(std::countr_zero(mask))], space);
    if (first == nullptr) return;
    for (LaneMask left = mask; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        const Region* region = first->holds(bytes[lane]) ? first : find(bytes[lane], space);
        if (region == nullptr) return;
        bytes[lane] += region->gpu_begin - region->begin;
    }
    if (action.space() == Space::kShared) {
        add(warp, action, mask, count_shared(action.operation(), mask, bytes, action.bytes()), *first, bytes);
        return;
    }
    Sectors sectors;
    add(warp, action, mask, count_global(action.operation(), mask, bytes, action.bytes(), sectors), *first,
        bytes);
    note_sectors(action.operation(), *first, sectors);
}

void Recorder::note_sectors(Operation operation, const Region& region, const Sectors& sectors) {
    const std::span<const std::uint64_t> touched(sectors.sector.data(), sectors.count);
    if (reads(operation)) made(region.read, region).insert(touched, region.gpu_begin / kSectorBytes);
    if (writes(operation)) made(region.written, region).insert(touched, region.gpu_begin / kSectorBytes);
}

void Recorder::add(unsigned warp, Action action, LaneMask mask, const Count& count, const Region& region,
                   const Addresses& gpu_addresses, bool of_matrices) {
    LineCount& line = this->line({action.word(), region.array});
    ++line.requests;
    line.transactions += count.transactions;
    line.ideal += count.ideal;
    line.active_lanes += static_cast<unsigned>(std::popcount(mask));
    line.bytes_used += count.bytes_used;
    if (!traced_.empty()) {
        const RawStep step{.action = action,
                           .lanes = mask,
                           .transactions = count.transactions,
                           .ideal = count.ideal,
                           .array_begin = region.gpu_begin,
                           .array = region.array,
                           .addresses = gpu_addresses};
        // What the lanes did before is traced when their collective completes.
        if (of_matrices)
            traced_[warp].of_matrices.push_back(step);
        else
            trace_step(warp, step);
    }
    if (count.transactions <= line.worst.transactions) return;
    line.worst_block = block_number_;
    WorstRequest& worst = line.worst;
    worst.transactions = count.transactions;
    worst.active_lanes = static_cast<unsigned>(std::popcount(mask));
    worst.block = {block_.x, block_.y, block_.z};
    worst.warp = warp;
    worst.offsets.assign(kLanes, -1);
    for (LaneMask left = mask; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        worst.offsets[lane] = static_cast<std::int64_t>(gpu_addresses[lane] - region.gpu_begin);
    }
}

void Recorder::deliver(LaunchRecord& record) {
    if (launch_ != &record) return;
    launch_ = nullptr;
    for (const auto& [key, count] : lines_)
        record.lines[key].add(count);
    recent_lines_ = {};
    record.barriers += std::exchange(barriers_, 0);
    record.inspected_blocks += std::exchange(blocks_, 0);
    record.dropped_accesses += std::exchange(dropped_, 0);
    lines_.clear();
}

}  // namespace cuda_on_cpu::inspector
