// The part of a block's runner that belongs to instructions of compute capability 9.0: hopper.h says what they do.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "block.hpp"

namespace cuda_on_cpu {
namespace {

constexpr unsigned kBulkAlignment = 128;  // of boxes in shared memory

bool aligned(const void* pointer, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

}  // namespace

// --- mbarriers -------------------------------------------------------------------------------------------------------

void BlockRunner::mbarrier_init(std::uint64_t* barrier, unsigned arrivals, Site site) {
    if (!aligned(barrier, sizeof *barrier) || !shared_.holds(barrier, sizeof *barrier))
        fail(cudaErrorIllegalAddress,
             "mbarrier_init: the mbarrier must be at a multiple of 8 bytes in the block's shared memory",
             site);
    if (arrivals < 1 || arrivals > kMostArrivals)
        fail(cudaErrorLaunchFailure,
             "mbarrier_init: " + std::to_string(arrivals) + " arrivals; expected 1 to " +
                 std::to_string(kMostArrivals),
             site);
    write_mbarrier(barrier,
                   {.expected = arrivals, .pending = arrivals, .bytes = 0, .parity = 0, .published = false});
    unpublished_.push_back(barrier);
    if (observer_ != nullptr) observer_->barrier_begun(barrier);
}

void BlockRunner::mbarrier_inval(std::uint64_t* barrier, Site site) {
    usable_mbarrier(barrier, site);
    *barrier = 0;
}

void BlockRunner::publish_mbarriers() {
    for (std::uint64_t* barrier : unpublished_) {
        if (std::optional<MbarrierState> state = read_mbarrier(barrier); state) {
            state->published = true;
            write_mbarrier(barrier, *state);
        }
    }
    unpublished_.clear();
}

MbarrierState BlockRunner::usable_mbarrier(const std::uint64_t* barrier, Site site) {
    if (!aligned(barrier, sizeof *barrier) || !shared_.holds(barrier, sizeof *barrier))
        fail(cudaErrorIllegalAddress, "the mbarrier is not in the block's shared memory", site);
    const std::optional<MbarrierState> state = read_mbarrier(barrier);
    if (!state)
        fail(cudaErrorLaunchFailure, "the mbarrier has not been initialised, or has been overwritten", site);
    return *state;
}

void BlockRunner::change_own_mbarrier(std::uint64_t* barrier, unsigned arrivals, int bytes, Site site) {
    const MbarrierChange change = change_mbarrier(barrier, arrivals, bytes);
    if (!change.error.empty()) fail(cudaErrorLaunchFailure, change.error, site);
    if (change.phase_ended) wake_past_mbarriers(barrier);
}

void BlockRunner::mbarrier_arrive(std::uint64_t* barrier, unsigned bytes, Site site) {
    const MbarrierState state = usable_mbarrier(barrier, site);
    if (bytes > static_cast<unsigned>(kMostBytes))
        fail(
            cudaErrorLaunchFailure,
            std::to_string(bytes) + " bytes expected; an mbarrier counts up to " + std::to_string(kMostBytes),
            site);
    if (observer_ != nullptr) observer_->mbarrier_arrived(thread_number(), barrier, state.parity);
    change_own_mbarrier(barrier, 1, static_cast<int>(bytes), site);
    step_back_after_arrival();
}

void BlockRunner::mbarrier_arrive_at(std::uint64_t* barrier, unsigned rank, Site site) {
    auto* const there = static_cast<std::uint64_t*>(map_shared(barrier, rank, site));
    if (there == barrier) return mbarrier_arrive(barrier, 0, site);
    if (cluster().block[rank].runner->loads_.ended())
        fail(
            cudaErrorLaunchFailure,
            "an arrival at an mbarrier of block " + std::to_string(rank) + " of the cluster, which has ended",
            site);
    const std::optional<MbarrierState> state = read_mbarrier(there);
    if (state && !state->published)
        fail(
            cudaErrorLaunchFailure,
            "an arrival at an mbarrier of another block without fence.mbarrier_init after its initialisation",
            site);
    if (state && observer_ != nullptr)
        observer_->mbarrier_of_another_block_arrived(thread_number(), there, state->parity);
    const MbarrierChange change = change_mbarrier(there, 1, 0);
    if (!change.error.empty()) fail(cudaErrorLaunchFailure, change.error, site);
    cluster_->events.happened();
}

void BlockRunner::mbarrier_wait(std::uint64_t* barrier, unsigned parity, Site site) {
    const MbarrierState state = usable_mbarrier(barrier, site);
    if (parity > 1)
        fail(cudaErrorLaunchFailure,
             "an mbarrier's parity of " + std::to_string(parity) + "; expected 0 or 1", site);
    if (state.parity == parity) {
        Thread& self = thread_[thread_number()];
        self.mbarrier = barrier;
        self.phase = parity;
        warps_[current_warp_].at(Wait::mbarrier) |= bit(current_lane_);
        wait_until_woken("mbarrier_wait", site);
    }
    if (observer_ != nullptr) observer_->mbarrier_left(thread_number(), barrier, parity, site);
}

void BlockRunner::mbarrier_expect(std::uint64_t* barrier, int bytes, Site site) {
    usable_mbarrier(barrier, site);
    change_own_mbarrier(barrier, 0, bytes, site);
}

bool BlockRunner::mbarrier_test(std::uint64_t* barrier, unsigned parity, Site site) {
    constexpr unsigned kMostEarlyTests = 32;
    unsigned char& early = early_tests_[thread_number()];
    if (usable_mbarrier(barrier, site).parity == parity && ++early < kMostEarlyTests) {
        yield();
        if (usable_mbarrier(barrier, site).parity == parity) return false;
    }
    early = 0;
    mbarrier_wait(barrier, parity, site);
    return true;
}

// Those who wait for a phase of `barrier` (null: of any) that has ended.
bool BlockRunner::wake_past_mbarriers(const std::uint64_t* barrier) {
    return wake_if(Wait::mbarrier, [barrier](const Thread& thread) {
        if (barrier != nullptr && thread.mbarrier != barrier) return false;
        const auto state = read_mbarrier(thread.mbarrier);
        return !state || state->parity != thread.phase;
    });
}

// --- Bulk copies -----------------------------------------------------------------------------------------------------

const TensorMap& BlockRunner::tensor_map(const CUtensorMap* map, int column, int row, const void* shared,
                                         Site site) {
    const TensorMap* const known = TensorMap::of(map);
    if (known == nullptr)
        fail(cudaErrorLaunchFailure, "a tensor map that cuTensorMapEncodeTiled has not made", site);
    if (known->rank != 2)
        fail(cudaErrorLaunchFailure,
             "a tensor map of " + std::to_string(known->rank) + " extent(s); expected 2", site);
    if (!aligned(shared, kBulkAlignment))
        fail(cudaErrorMisalignedAddress,
             "misaligned access: a box must be at a multiple of 128 bytes of shared memory", site);
    if (!shared_.holds(shared, known->box_bytes()))
        fail(cudaErrorIllegalAddress, "the box is not in the block's shared memory", site);
    if (std::int64_t{column} * static_cast<int>(known->element_size) % 16 != 0)
        fail(cudaErrorIllegalInstruction,
             "a box that begins in column " + std::to_string(column) +
                 ": the first element must be at a multiple of 16 bytes within its row",
             site);
    if (!known->box_accessible(column, row))
        fail(cudaErrorIllegalAddress,
             "the matrix that the tensor map describes is no memory that a kernel may use", site);
    return *known;
}

// To the block `rank` of the cluster (kOwnBlock: to this one), at the same place in its shared memory.
void BlockRunner::load_box(void* shared, const CUtensorMap* map, int column, int row, std::uint64_t* barrier,
                           unsigned rank, Site site) {
    const TensorMap& known = tensor_map(map, column, row, shared, site);
    const bool own = rank == kOwnBlock || rank == cluster_block_rank();
    if (own) usable_mbarrier(barrier, site);
    auto* const there = own ? barrier : static_cast<std::uint64_t*>(map_shared(barrier, rank, site));
    void* const box = own ? shared : map_shared(shared, rank, site);
    BlockRunner& runner = own ? *this : *cluster_->block[rank].runner;
    const std::optional<MbarrierState> state = read_mbarrier(there);
    if (!state)
        fail(cudaErrorLaunchFailure, "the mbarrier has not been initialised, or has been overwritten", site);
    if (!state->published)
        fail(cudaErrorLaunchFailure,
             "a bulk copy with an mbarrier that it need not see: fence.mbarrier_init after its "
             "initialisation is missing",
             site);
    if (observer_ != nullptr) {
        if (own)
            observer_->box_load_issued(thread_number(), box, known, column, row, barrier, state->parity,
                                       site);
        else
            observer_->mbarrier_of_another_block_arrived(thread_number(), there, state->parity);
    }
    if (!runner.loads_.add({known, column, row, box, there, state->parity, site}))
        fail(cudaErrorLaunchFailure,
             "a bulk copy to shared memory of block " + std::to_string(rank) +
                 " of the cluster, which has ended",
             site);
    if (!own) cluster_->events.happened();
}

// As late as may be: nothing in the block goes on without them. False: the launch has failed.
bool BlockRunner::carry_out_awaited_loads() {
    std::vector<std::uint64_t*> barriers;
    for (unsigned w = 0; w < warps_in_block_; ++w) {
        for (const unsigned lane : lanes_of(warps_[w].at(Wait::mbarrier))) {
            std::uint64_t* const barrier = thread_[w * kWarpLanes + lane].mbarrier;
            if (barriers.empty() || barriers.back() != barrier) barriers.push_back(barrier);
        }
    }
    if (barriers.empty()) return true;
    for (const BulkLoads::Load& load : loads_.take(barriers)) {
        load.map.load(load.column, load.row, load.shared);
        if (observer_ != nullptr) observer_->box_loaded(load.shared, load.barrier, load.parity);
        std::string error;
        if (const auto state = read_mbarrier(load.barrier); state && state->parity != load.parity) {
            error = "the mbarrier's phase ended before all bytes had come: it was told to expect too few";
        } else {
            error = change_mbarrier(load.barrier, 0, -static_cast<int>(load.map.box_bytes())).error;
        }
        if (error.empty()) continue;
        launch_->fail(cudaErrorLaunchFailure,
                      "block (" + std::to_string(blockIdx.x) + "," + std::to_string(blockIdx.y) + "," +
                          std::to_string(blockIdx.z) + "), bulk copy of " + load.site.file + ":" +
                          std::to_string(load.site.line) + ": " + error,
                      load.site);
        return false;
    }
    return true;
}

void BlockRunner::store_box(const CUtensorMap* map, int column, int row, const void* shared, Site site) {
    const TensorMap& known = tensor_map(map, column, row, shared, site);
    if (column < 0 || row < 0)
        fail(cudaErrorIllegalInstruction,
             "a bulk store to column " + std::to_string(column) + " and row " + std::to_string(row) +
                 "; expected none below 0",
             site);
    if (observer_ != nullptr) observer_->box_store_issued(thread_number(), shared, known, column, row, site);
    if (observer_ == nullptr && memory_observer != nullptr) {
        for (const TensorMap::Row& part : known.rows_within(column, row))
            memory_observer->memory_written(part.begin, part.bytes);
    }
    if (const std::string error = stores_.add(thread_number(), known, column, row, shared); !error.empty())
        fail(cudaErrorLaunchFailure, error, site);
}

void BlockRunner::wait_for_stores(unsigned pending, bool until_written, Site site) {
    if (const std::string error = stores_.wait(thread_number(), pending, until_written); !error.empty())
        fail(cudaErrorLaunchFailure, error, site);
}

void BlockRunner::fence_proxy_async() {
    publish_mbarriers();
    stores_.fence();
}

// --- Named barriers --------------------------------------------------------------------------------------------------

void BlockRunner::named_barrier(unsigned id, unsigned threads, Site site, bool waits) {
    if (id < 1 || id >= kNamedBarriers || threads < 1 || threads % kWarpLanes != 0 || threads > threads_)
        fail(cudaErrorLaunchFailure,
             "named barrier " + std::to_string(id) + " for " + std::to_string(threads) +
                 " threads; expected a number of 1 to 15 (0 is __syncthreads), and a multiple of 32 threads "
                 "of the " +
                 std::to_string(threads_) + " that the block has",
             site);
    NamedBarrier& barrier = named_barriers_[id];
    if (barrier.arrived > 0 && barrier.expected != threads)
        fail(cudaErrorLaunchFailure,
             "named barrier " + std::to_string(id) + " for " + std::to_string(threads) +
                 " threads; others wait there for " + std::to_string(barrier.expected),
             site);
    barrier.expected = threads;
    if (observer_ != nullptr) observer_->arrival_barrier_arrived(thread_number(), &barrier, site);
    if (++barrier.arrived < threads) {
        if (!waits) return;
        thread_[thread_number()].named_barrier = id;
        warps_[current_warp_].at(Wait::named_barrier) |= bit(current_lane_);
        wait_until_woken("named_barrier", site);
    } else {
        barrier.arrived = 0;
        if (observer_ != nullptr) observer_->arrival_barrier_completed(&barrier);
        wake_named_barrier(id);
        if (!waits) return;
    }
    if (observer_ != nullptr) observer_->arrival_barrier_left(thread_number(), &barrier, site);
}

void BlockRunner::wake_named_barrier(unsigned id) {
    wake_if(Wait::named_barrier, [id](const Thread& thread) { return thread.named_barrier == id; });
}

// --- Products of warpgroups ------------------------------------------------------------------------------------------

WarpgroupProducts& BlockRunner::products() {
    if (block_of_products_ != current_block) {
        block_of_products_ = current_block;
        const char* const begin = static_cast<const char*>(shared_.dynamic());
        products_.begin_block(shared_.begin(), begin, begin + shared_.dynamic_bytes(), warps_in_block_);
    }
    return products_;
}

void BlockRunner::wait_for_warpgroup(unsigned pending, Site site) {
    while (!products().can_wait(current_warp_, pending)) {
        warps_[current_warp_].at(Wait::products) |= bit(current_lane_);
        wait_until_woken("wgmma_wait", site);
    }
}

void BlockRunner::wake_warpgroup() {
    for (unsigned w = current_warp_ / 4 * 4; w < std::min(current_warp_ / 4 * 4 + 4, warps_in_block_); ++w) {
        Warp& warp = warps_[w];
        if (warp.at(Wait::products) == 0) continue;
        warp.ready |= std::exchange(warp.at(Wait::products), 0);
        busy_warps_ |= bit(w);
    }
}

bool BlockRunner::shared_of_cluster(const void* pointer) {
    if (in_dynamic_shared(pointer) || in_static_shared(pointer)) return true;
    return cluster_ != nullptr && in_shared_of_cluster(pointer);
}

std::size_t BlockRunner::shared_window_address(const void* pointer, Site site) {
    if (!shared_of_cluster(pointer))
        fail(cudaErrorIllegalAddress, "an address within shared memory of a pointer that is to other memory",
             site);
    const std::size_t address = shared_.address_of(pointer);
    if (address == SharedArena::kNoAddress)
        fail(cudaErrorIllegalAddress, "addresses within the shared memory of more than 255 places", site);
    return address;
}

void* BlockRunner::shared_window_pointer(std::uint64_t address, std::size_t bytes, Site site) {
    if (void* const pointer = shared_.at(address, bytes); pointer != nullptr) return pointer;
    char text[160];
    std::snprintf(text, sizeof text,
                  "the address 0x%llx is not in the block's shared memory; expected what "
                  "__cvta_generic_to_shared() or cvta.to.shared makes of a pointer",
                  static_cast<unsigned long long>(address));
    fail(cudaErrorIllegalAddress, text, site);
}

// --- The end, and reports of it --------------------------------------------------------------------------------------

void BlockRunner::end_hopper_block() {
    const std::optional<BulkLoads::Load> load = loads_.end();
    if (cluster_ != nullptr) cluster_->events.block_ended();
    if (failed_) return;
    std::string error;
    if (load)
        error = std::string("it has ended before the bulk copy of ") + load->site.file + ":" +
                std::to_string(load->site.line) + " to its shared memory was waited for";
    if (error.empty() && block_of_products_ == current_block) error = products_.end_block();
    if (error.empty()) return;
    launch_->fail(cudaErrorLaunchFailure, "block (" + std::to_string(blockIdx.x) + "," +
                                              std::to_string(blockIdx.y) + "," + std::to_string(blockIdx.z) +
                                              "): " + error);
    failed_ = true;
}

std::string BlockRunner::what_is_missing(const Thread& thread, LaneMask lane, const Warp& warp) const {
    if ((warp.at(Wait::mbarrier) & lane) != 0)
        return ", for parity " + std::to_string(thread.phase) + ": " + describe_mbarrier(thread.mbarrier);
    if ((warp.at(Wait::named_barrier) & lane) != 0) {
        const NamedBarrier& barrier = named_barriers_[thread.named_barrier];
        return ", number " + std::to_string(thread.named_barrier) + ", " + std::to_string(barrier.arrived) +
               " of " + std::to_string(barrier.expected) + " threads there";
    }
    return "";
}

// --- What threads call -----------------------------------------------------------------------------------------------

namespace {

// Work of a whole warp on its products: WarpgroupProducts says what is wrong.
template <auto kWork>
void of_whole_warp(const Lanes& lanes) {
    const auto& first = lanes.at<WarpgroupProducts::Operands>(lowest(lanes.mask));
    BlockRunner& runner = block_runner();
    if (lanes.mask != 0xffffffffu)
        runner.fail(cudaErrorLaunchFailure,
                    "an instruction of a warpgroup in a warp of fewer than 32 threads", first.site);
    if (const std::string error = kWork(runner, lanes); !error.empty())
        runner.fail(cudaErrorLaunchFailure, "wgmma: " + error, first.site);
}

void together(WarpgroupProducts::Operands operands, CollectiveWork work, const char* name) {
    warp_collective(0xffffffffu, &operands, work, name, operands.site);
}

std::string issue(BlockRunner& runner, const Lanes& lanes) {
    runner.wake_warpgroup();
    return runner.products().issue(current_warp, lanes);
}
std::string fence(BlockRunner& runner, const Lanes&) {
    runner.products().fence(current_warp);
    return "";
}
std::string commit(BlockRunner& runner, const Lanes&) {
    runner.products().commit(current_warp);
    return "";
}
// How many groups may stay pending stands in the place of the number of registers.
std::string wait(BlockRunner& runner, const Lanes& lanes) {
    return runner.products().wait(current_warp, lanes.at<WarpgroupProducts::Operands>(0).registers);
}
std::string nothing(BlockRunner&, const Lanes&) {
    return "";
}

}  // namespace

void issue_product(void* d, unsigned registers, std::uint64_t a, std::uint64_t b, const ProductOf& product,
                   Site site) {
    together({static_cast<char*>(d), registers, a, b, product, site}, of_whole_warp<issue>, "wgmma");
}
void ptx::wgmma_fence(Site site) {
    together({.site = site}, of_whole_warp<fence>, "wgmma_fence");
}
void ptx::wgmma_commit(Site site) {
    together({.site = site}, of_whole_warp<commit>, "wgmma_commit");
}
void wait_for_products(unsigned pending, Site site) {
    block_runner().wait_for_warpgroup(pending, site);
    together({.registers = pending, .site = site}, of_whole_warp<wait>, "wgmma_wait");
}
void set_registers(Site site) {
    together({.site = site}, of_whole_warp<nothing>, "setmaxnreg");
}

void ptx::mbarrier_init(MBarrier* barrier, unsigned arrivals, Site site) {
    block_runner().mbarrier_init(barrier, arrivals, site);
}
void ptx::mbarrier_inval(MBarrier* barrier, Site site) {
    block_runner().mbarrier_inval(barrier, site);
}
void ptx::fence_mbarrier_init() {
    block_runner().publish_mbarriers();
}
void ptx::mbarrier_arrive(MBarrier* barrier, Site site) {
    block_runner().mbarrier_arrive(barrier, 0, site);
}
void ptx::mbarrier_arrive_at(MBarrier* barrier, unsigned rank, Site site) {
    block_runner().mbarrier_arrive_at(barrier, rank, site);
}
void ptx::mbarrier_arrive_expect(MBarrier* barrier, unsigned bytes, Site site) {
    block_runner().mbarrier_arrive(barrier, bytes, site);
}
bool ptx::mbarrier_try_wait(MBarrier* barrier, unsigned parity, Site site) {
    block_runner().mbarrier_wait(barrier, parity, site);
    return true;
}

void ptx::tma_load(void* shared, const CUtensorMap* map, int column, int row, MBarrier* barrier, Site site) {
    BlockRunner& runner = block_runner();
    runner.load_box(shared, map, column, row, barrier, BlockRunner::kOwnBlock, site);
}
void ptx::tma_load_multicast(void* shared, const CUtensorMap* map, int column, int row, MBarrier* barrier,
                             std::uint16_t blocks, Site site) {
    BlockRunner& runner = block_runner();
    const dim3 dims = cluster_dimensions();
    if (blocks == 0 || blocks >> dims.x * dims.y * dims.z != 0)
        runner.fail(cudaErrorLaunchFailure,
                    "a copy to blocks " + std::to_string(blocks) + " (bits); the cluster has " +
                        std::to_string(dims.x * dims.y * dims.z) + " block(s)",
                    site);
    for (unsigned rank = 0; blocks >> rank != 0; ++rank) {
        if ((blocks >> rank & 1) != 0) runner.load_box(shared, map, column, row, barrier, rank, site);
    }
}
void ptx::tma_store(const CUtensorMap* map, int column, int row, const void* shared, Site site) {
    block_runner().store_box(map, column, row, shared, site);
}
void ptx::tma_store_commit() {
    block_runner().commit_stores();
}
void wait_for_stores(unsigned pending, bool until_written, Site site) {
    block_runner().wait_for_stores(pending, until_written, site);
}
void ptx::fence_proxy_async() {
    block_runner().fence_proxy_async();
}
void ptx::named_barrier(unsigned id, unsigned threads, Site site) {
    block_runner().named_barrier(id, threads, site);
}

}  // namespace cuda_on_cpu

void* __cvta_shared_to_generic(std::size_t address) {
    return cuda_on_cpu::block_runner().shared_window_pointer(address, 0, cuda_on_cpu::Site{"", 0});
}
std::size_t __cvta_generic_to_shared(const void* pointer) {
    return cuda_on_cpu::block_runner().shared_window_address(pointer, cuda_on_cpu::Site{"", 0});
}
