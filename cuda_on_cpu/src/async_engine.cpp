#include "async_engine.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "block.hpp"
#include "memory.hpp"
#include "report_text.hpp"

namespace cuda_on_cpu {
namespace {

constexpr unsigned kBulkAlignment = 128;  // alignment of boxes in shared memory
constexpr unsigned kPiece = 16;           // bytes; one-dimensional copies consist of such pieces

bool aligned(const void* pointer, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

// Represents a range of bytes as a box with one row.
TensorMap row_of(const void* global, unsigned bytes) {
    return {.signature = 0,
            .address = static_cast<char*>(const_cast<void*>(global)),
            .dims = {bytes, 1},
            .pitch = bytes,
            .matrices = {1, 1},
            .matrix_pitch = {0, 0},
            .box = {bytes, 1},
            .element_size = 1,
            .rank = 2,
            .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
            .fill_with_nan = false};
}

}  // namespace

inline unsigned AsyncEngine::thread_number() const {
    return block_.scheduler().thread_number();
}

// --- One block -----------------------------------------------------------------------------------

void AsyncEngine::begin_block() {
    copies_.begin_block();
    stores_.clear();
    if (!block_.between_blocks().in_cluster())
        // In a cluster, other blocks may already have added loads.
        loads_.clear();
}

std::string AsyncEngine::end_block() {
    if (const std::optional<BulkLoads::Load> load = loads_.end(block_.between_blocks().in_cluster()); load)
        return "it has ended before the bulk copy of " + place(load->site) +
               " to its shared memory was waited for";
    return block_of_products_ == current_block ? products_.end_block() : "";
}

void AsyncEngine::finish_thread() {
    if (copies_.used()) copies_.finish(thread_number());
    if (!stores_.used()) return;
    if (const std::string error = stores_.finish(thread_number()); !error.empty())
        block_.fail(cudaErrorLaunchFailure, error, Site{"", 0});
}

// --- cp.async ------------------------------------------------------------------------------------

void AsyncEngine::issue_copy(void* shared, const void* global, unsigned bytes, unsigned valid_bytes,
                             Site site) {
    const auto misaligned = [bytes](const void* address) {
        return (reinterpret_cast<std::uintptr_t>(address) & (bytes - 1)) != 0;
    };
    // If no byte of the source is read, its address is not checked, as on a GPU.
    if (misaligned(shared) || (valid_bytes > 0 && misaligned(global))) {
        fail_on_copy(cudaErrorMisalignedAddress, bytes,
                     std::string("misaligned access: the ") +
                         (misaligned(shared) ? "destination" : "source") +
                         " must be at a multiple of the size",
                     site);
    }
    if (!block_.shared().holds(shared, bytes)) {
        fail_on_copy(cudaErrorIllegalAddress, bytes, "the destination is not in the block's shared memory",
                     site);
    }
    if (valid_bytes > bytes) {
        fail_on_copy(cudaErrorLaunchFailure, bytes, std::to_string(valid_bytes) + " of them valid", site);
    }
    std::array<unsigned char, AsyncCopies::kMaxBytes> data{};
    if (valid_bytes > 0) {
        reading_site_ = site;
        // The fault handler reads the site.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        std::memcpy(data.data(), global, valid_bytes);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        reading_site_ = Site{"", 0};
    }
    block_.notify(event::CopyIssued{thread_number(), shared, data.data(), global, bytes, valid_bytes, site});
    copies_.issue(thread_number(), shared, data, bytes);
}

void AsyncEngine::commit_copies() {
    copies_.commit(thread_number());
    block_.notify(event::CopiesCommitted{thread_number()});
}

void AsyncEngine::wait_for_copies(unsigned pending) {
    copies_.wait(thread_number(), pending);
    block_.notify(event::CopiesAwaited{thread_number(), pending});
}

void AsyncEngine::fail_on_copy(cudaError_t error, unsigned bytes, const std::string& why, Site site) {
    block_.fail(error, "cp.async of " + std::to_string(bytes) + " bytes: " + why, site);
}

// --- Bulk copies ---------------------------------------------------------------------------------

const TensorMap& AsyncEngine::known_map(const CUtensorMap* map, unsigned rank, bool im2col, Site site) {
    const TensorMap* const known = TensorMap::of(map);
    if (known == nullptr || known->im2col != im2col)
        block_.fail(cudaErrorLaunchFailure,
                    std::string("a tensor map that ") +
                        (im2col ? "cuTensorMapEncodeIm2col" : "cuTensorMapEncodeTiled") + " has not made",
                    site);
    if (known->rank != rank)
        block_.fail(
            cudaErrorLaunchFailure,
            "a tensor map of " + std::to_string(known->rank) + " extent(s); expected " + std::to_string(rank),
            site);
    return *known;
}

void AsyncEngine::check_box(const TensorMap& map, int column, int row, const void* shared, Site site) {
    if (!aligned(shared, kBulkAlignment))
        block_.fail(cudaErrorMisalignedAddress,
                    "misaligned access: a box must be at a multiple of 128 bytes of shared memory", site);
    if (!block_.shared().holds(shared, map.box_bytes()))
        block_.fail(cudaErrorIllegalAddress, "the box is not in the block's shared memory", site);
    if (std::int64_t{column} * static_cast<int>(map.element_size) % 16 != 0)
        block_.fail(cudaErrorIllegalInstruction,
                    "a box that begins in column " + std::to_string(column) +
                        ": the first element must be at a multiple of 16 bytes within its row",
                    site);
    if (!map.box_accessible(column, row))
        block_.fail(cudaErrorIllegalAddress,
                    "the matrix that the tensor map describes is no memory that a kernel may use", site);
}

void AsyncEngine::load_box(void* shared, const CUtensorMap* map, int column, int row, std::uint64_t* barrier,
                           unsigned rank, Site site, unsigned extents) {
    const TensorMap& known = known_map(map, extents, false, site);
    check_box(known, column, row, shared, site);
    load(known, column, row, shared, barrier, rank, site);
}

void AsyncEngine::load_box(void* shared, const CUtensorMap* map, int column, int row, int i, int j,
                           std::uint64_t* barrier, Site site) {
    const TensorMap matrix = known_map(map, 4, false, site).matrix(i, j);
    check_box(matrix, column, row, shared, site);
    load(matrix, column, row, shared, barrier, kOwnBlock, site);
}

void AsyncEngine::load_pixels(void* shared, const CUtensorMap* map, int channel, const int (&first)[3],
                              const std::uint16_t (&offset)[2], std::uint64_t* barrier, Site site) {
    const TensorMap& known = known_map(map, 4, true, site);
    for (const int i : {0, 1}) {
        if (first[i] >= known.pixels.lower[i] && first[i] <= known.last_of_box(i)) continue;
        block_.fail(cudaErrorLaunchFailure,
                    std::string("an im2col load that begins in ") + (i == 0 ? "column " : "row ") +
                        std::to_string(first[i]) + "; the map's bounding box goes from " +
                        std::to_string(known.pixels.lower[i]) + " to " + std::to_string(known.last_of_box(i)),
                    site);
    }
    const TensorMap pixels = known.column_of_pixels(first, offset);
    check_box(pixels, channel, 0, shared, site);
    load(pixels, channel, 0, shared, barrier, kOwnBlock, site);
}

void AsyncEngine::load_bytes(void* shared, const void* global, unsigned bytes, std::uint64_t* barrier,
                             unsigned rank, Site site) {
    check_bytes(shared, global, bytes, site);
    if (!device_accessible(global, bytes))
        fail_on_bytes(cudaErrorIllegalAddress, bytes, "the source is no memory that a kernel may use", site);
    load(row_of(global, bytes), 0, 0, shared, barrier, rank, site);
}

void AsyncEngine::load(const TensorMap& known, int column, int row, void* shared, std::uint64_t* barrier,
                       unsigned rank, Site site) {
    const bool own = rank == kOwnBlock || rank == cluster_block_rank();
    auto* const there = own ? barrier : static_cast<std::uint64_t*>(map_shared(barrier, rank, site));
    void* const box = own ? shared : map_shared(shared, rank, site);
    issue({known, column, row, box, there, 0, site}, own ? kOwnBlock : rank, true, site);
}

void AsyncEngine::copy_to_block(void* there, const void* shared, unsigned bytes, std::uint64_t* barrier,
                                Combine combine, Site site) {
    check_bytes(shared, there, bytes, site);
    const unsigned rank = rank_of_destination(there, bytes, barrier, site);
    block_.notify(event::BulkRead{thread_number(), shared, bytes, site});
    issue({row_of(shared, bytes), 0, 0, there, barrier, 0, site, combine}, rank, false, site);
}

void AsyncEngine::store_in_block(void* there, const void* value, unsigned bytes, std::uint64_t* barrier,
                                 Combine combine, Site site) {
    if (!aligned(there, bytes))
        block_.fail(cudaErrorMisalignedAddress,
                    "misaligned access: an asynchronous store of " + std::to_string(bytes) +
                        " bytes must be at a multiple of its size",
                    site);
    const unsigned rank = rank_of_destination(there, bytes, barrier, site);
    const auto* const first = static_cast<const unsigned char*>(value);
    issue({row_of(nullptr, bytes), 0, 0, there, barrier, 0, site, combine, {first, first + bytes}}, rank,
          false, site);
}

unsigned AsyncEngine::rank_of_destination(const void* there, unsigned bytes, const std::uint64_t* barrier,
                                          Site site) {
    const unsigned rank = shared_rank(there, site);
    const auto* const last = static_cast<const char*>(there) + (bytes > 0 ? bytes - 1 : 0);
    if (shared_rank(last, site) != rank || shared_rank(barrier, site) != rank)
        block_.fail(cudaErrorIllegalAddress,
                    "the destination and the mbarrier are not in shared memory of one block of the cluster",
                    site);
    return rank == cluster_block_rank() ? kOwnBlock : rank;
}

// The addresses in `load` are in the shared memory of the block that receives it.
void AsyncEngine::issue(BulkLoads::Load load, unsigned rank, bool from_global, Site site) {
    block_.need_capability({9, 0}, kNewest, "a bulk copy", site);
    const bool own = rank == kOwnBlock;
    if (own) block_.mbarriers().usable(load.barrier, site);
    BulkLoads& loads = own ? loads_ : block_.cluster().block[rank].runner->async().loads_;
    const std::optional<MbarrierState> state = read_mbarrier(load.barrier);
    if (!state)
        block_.fail(cudaErrorLaunchFailure, "the mbarrier has not been initialised, or has been overwritten",
                    site);
    if (!state->published)
        block_.fail(cudaErrorLaunchFailure,
                    "a bulk copy with an mbarrier that it need not see: fence.mbarrier_init or "
                    "fence.proxy.async after its initialisation is missing",
                    site);
    load.parity = state->parity;
    if (own && from_global) {
        block_.notify(event::BoxLoadIssued{thread_number(), load.shared, load.map, load.column, load.row,
                                           load.barrier, load.parity, site});
    } else {
        block_.notify(event::RemoteMbarrierArrived{thread_number(), load.barrier, load.parity});
    }
    if (!loads.add(load))
        block_.fail(cudaErrorLaunchFailure,
                    "a bulk copy to shared memory of block " + std::to_string(rank) +
                        " of the cluster, which has ended",
                    site);
    if (!own) block_.cluster().events.happened();
}

void AsyncEngine::check_bytes(const void* shared, const void* global, unsigned bytes, Site site) {
    if (!aligned(shared, kPiece) || !aligned(global, kPiece) || bytes % kPiece != 0)
        fail_on_bytes(cudaErrorMisalignedAddress, bytes,
                      "misaligned access: addresses and size must be multiples of 16 bytes", site);
    if (!block_.shared().holds(shared, bytes))
        fail_on_bytes(cudaErrorIllegalAddress, bytes, "not in the block's shared memory", site);
}

void AsyncEngine::fail_on_bytes(cudaError_t error, unsigned bytes, const std::string& why, Site site) {
    block_.fail(error, "cp.async.bulk of " + std::to_string(bytes) + " bytes: " + why, site);
}

// Called as late as possible, when no thread of the block can continue without these loads.
bool AsyncEngine::carry_out_awaited_loads() {
    const std::vector<std::uint64_t*> barriers = block_.mbarriers().awaited();
    if (barriers.empty()) return true;
    for (const BulkLoads::Load& load : loads_.take(barriers)) {
        load.carry_out();
        products().loaded(load.shared, load.map.box_bytes());
        block_.notify(event::BoxLoaded{load.shared, load.barrier, load.parity});
        std::string error;
        if (const auto state = read_mbarrier(load.barrier); state && state->parity != load.parity) {
            error = "the mbarrier's phase ended before all bytes had come: it was told to expect too few";
        } else {
            error = change_mbarrier(load.barrier, 0, -static_cast<int>(load.map.box_bytes())).error;
        }
        if (error.empty()) continue;
        block_.launch().fail(
            cudaErrorLaunchFailure,
            "block " + triple(blockIdx) + ", bulk copy of " + place(load.site) + ": " + error, load.site);
        return false;
    }
    return true;
}

void AsyncEngine::store_box(const CUtensorMap* map, int column, int row, const void* shared, Site site,
                            unsigned extents) {
    const TensorMap& known = known_map(map, extents, false, site);
    check_box(known, column, row, shared, site);
    if (column < 0 || row < 0)
        block_.fail(cudaErrorIllegalInstruction,
                    "a bulk store to column " + std::to_string(column) + " and row " + std::to_string(row) +
                        "; expected none below 0",
                    site);
    store(known, column, row, shared, Combine(), site);
}

void AsyncEngine::store_bytes(void* global, const void* shared, unsigned bytes, Combine combine, Site site) {
    check_bytes(shared, global, bytes, site);
    if (!device_accessible(global, bytes))
        fail_on_bytes(cudaErrorIllegalAddress, bytes, "the destination is no memory that a kernel may use",
                      site);
    store(row_of(global, bytes), 0, 0, shared, combine, site);
}

void AsyncEngine::store(const TensorMap& map, int column, int row, const void* shared, Combine combine,
                        Site site) {
    block_.notify(event::BulkRead{thread_number(), shared, map.box_bytes(), site});
    // A store that combines is atomic, so two of them are no race.
    if (combine.result == nullptr)
        block_.notify(event::BoxStoreIssued{thread_number(), shared, map, column, row, site});
    if (!block_.observed() && memory_observer != nullptr) {
        for (const TensorMap::Row& part : map.rows_within(column, row))
            memory_observer->memory_written(part.begin, part.bytes);
    }
    if (const std::string error = stores_.add(thread_number(), map, column, row, shared, combine);
        !error.empty())
        block_.fail(cudaErrorLaunchFailure, error, site);
}

void AsyncEngine::commit_stores() {
    stores_.commit(thread_number());
}

void AsyncEngine::wait_for_stores(unsigned pending, bool until_written, Site site) {
    if (const std::string error = stores_.wait(thread_number(), pending, until_written); !error.empty())
        block_.fail(cudaErrorLaunchFailure, error, site);
}

void AsyncEngine::fence_proxy_async() {
    block_.mbarriers().publish();
    stores_.fence();
    products().fence_proxy();
    block_.notify(event::ProxyFenced{thread_number()});
}

// --- Products of warpgroups ----------------------------------------------------------------------

WarpgroupProducts& AsyncEngine::products() {
    if (block_of_products_ != current_block) {
        block_of_products_ = current_block;
        const SharedArena& shared = block_.shared();
        const char* const begin = static_cast<const char*>(shared.dynamic());
        products_.begin_block(shared.begin(), begin, begin + shared.dynamic_bytes(),
                              block_.scheduler().warps());
    }
    return products_;
}

// Waits as long as possible, so that another thread may overwrite operands that an MMA still reads.
void AsyncEngine::wait_for_products(unsigned pending, Site site) {
    Scheduler& scheduler = block_.scheduler();
    const unsigned warp = scheduler.current_warp();
    if (!products().begin_wait(warp, pending)) return;
    scheduler.wait(Wait::products, "wgmma_wait", site);
    products_.end_wait(warp);
}

bool AsyncEngine::wake_for_products() {
    if (block_of_products_ != current_block || !products_.any_waits() || block_.launch().failed) return false;
    Scheduler& scheduler = block_.scheduler();
    // Whether a load or an MMA completes first is undefined, so the two orders of lanes
    // (CUDA_ON_CPU_ORDER) differ here.
    if (scheduler.descending() && scheduler.any_waits(Wait::mbarrier)) {
        if (!carry_out_awaited_loads()) return false;
        if (block_.mbarriers().wake_past(nullptr)) return true;
    }
    LaneMask warps = 0;
    for (unsigned w = 0; w < scheduler.warps(); ++w) {
        if (products_.can_end_wait(w)) warps |= bit(w);
    }
    if (warps == 0) return false;
    // Only one warp continues, as far as it can, and may overwrite operands that other warps still
    // read.
    scheduler.wake_all(Wait::products, scheduler.first_of(warps));
    block_.note_progress();
    return true;
}

}  // namespace cuda_on_cpu
