// Device functions of compute capability 9.0 (hopper.h), which call the block runner of this OS
// thread.
#include "cuda_on_cpu/hopper.h"

#include <string>

#include "block.hpp"
#include "cuda_on_cpu/ptx_async.h"

namespace cuda_on_cpu {
namespace {

// Runs an operation of WarpgroupProducts once for a whole warp, and reports the error that it
// returns.
template <auto kWork>
void of_whole_warp(const Lanes& lanes) {
    const auto& first = lanes.at<WarpgroupProducts::Operands>(lowest(lanes.mask));
    BlockRunner& runner = block_runner();
    runner.need_capability({9, 0}, {9, 0}, "wgmma", first.site);
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
    return runner.async().products().issue(current_warp, lanes);
}
std::string fence(BlockRunner& runner, const Lanes&) {
    runner.async().products().fence(current_warp);
    return "";
}
std::string commit(BlockRunner& runner, const Lanes&) {
    runner.async().products().commit(current_warp);
    return "";
}
// `registers` holds the number of groups that may stay pending.
std::string wait(BlockRunner& runner, const Lanes& lanes) {
    return runner.async().products().wait(current_warp, lanes.at<WarpgroupProducts::Operands>(0).registers);
}
std::string nothing(BlockRunner&, const Lanes&) {
    return "";
}

}  // namespace

void issue_product(void* d, unsigned registers, std::uint64_t a, std::uint64_t b, const ProductOf& product,
                   Site site) {
    together({static_cast<char*>(d), registers, a, b, product, site}, of_whole_warp<issue>, "wgmma");
}
void issue_product(void* d, unsigned registers, const unsigned* a, std::uint64_t b, const ProductOf& product,
                   Site site) {
    together({static_cast<char*>(d), registers, 0, b, product, site, a}, of_whole_warp<issue>, "wgmma");
}
void ptx::wgmma_fence(Site site) {
    together({.site = site}, of_whole_warp<fence>, "wgmma_fence");
}
void ptx::wgmma_commit(Site site) {
    together({.site = site}, of_whole_warp<commit>, "wgmma_commit");
}
void wait_for_products(unsigned pending, Site site) {
    block_runner().async().wait_for_products(pending, site);
    together({.registers = pending, .site = site}, of_whole_warp<wait>, "wgmma_wait");
}
void set_registers(Site site) {
    together({.site = site}, of_whole_warp<nothing>, "setmaxnreg");
}

void ptx::mbarrier_init(MBarrier* barrier, unsigned arrivals, Site site) {
    block_runner().mbarriers().init(barrier, arrivals, site);
}
void ptx::mbarrier_inval(MBarrier* barrier, Site site) {
    block_runner().mbarriers().inval(barrier, site);
}
void ptx::fence_mbarrier_init() {
    block_runner().mbarriers().publish();
}
void ptx::mbarrier_arrive(MBarrier* barrier, Site site) {
    block_runner().mbarriers().arrive(barrier, 1, 0, site);
}
void ptx::mbarrier_arrive_at(MBarrier* barrier, unsigned rank, Site site) {
    block_runner().mbarriers().arrive_at(barrier, rank, 1, 0, site);
}
void ptx::mbarrier_arrive_expect(MBarrier* barrier, unsigned bytes, Site site) {
    block_runner().mbarriers().arrive(barrier, 1, bytes, site);
}
bool ptx::mbarrier_try_wait(MBarrier* barrier, unsigned parity, Site site) {
    block_runner().mbarriers().wait(barrier, parity, site);
    return true;
}

void ptx::tma_load(void* shared, const CUtensorMap* map, int column, int row, MBarrier* barrier, Site site) {
    block_runner().async().load_box(shared, map, column, row, barrier, AsyncEngine::kOwnBlock, site);
}
void ptx::tma_load(void* shared, const CUtensorMap* map, int column, int row, int i, int j, MBarrier* barrier,
                   Site site) {
    block_runner().async().load_box(shared, map, column, row, i, j, barrier, site);
}
void ptx::tma_load_im2col(void* shared, const CUtensorMap* map, int channel, int column, int row, int image,
                          std::uint16_t right, std::uint16_t down, MBarrier* barrier, Site site) {
    block_runner().async().load_pixels(shared, map, channel, {column, row, image}, {right, down}, barrier,
                                       site);
}

namespace {

void check_blocks(BlockRunner& runner, std::uint16_t blocks, Site site) {
    const dim3 dims = cluster_dimensions();
    if (blocks == 0 || blocks >> dims.x * dims.y * dims.z != 0)
        runner.fail(cudaErrorLaunchFailure,
                    "a copy to blocks " + std::to_string(blocks) + " (bits); the cluster has " +
                        std::to_string(dims.x * dims.y * dims.z) + " block(s)",
                    site);
}

}  // namespace

void ptx::tma_load_multicast(void* shared, const CUtensorMap* map, int column, int row, MBarrier* barrier,
                             std::uint16_t blocks, Site site) {
    BlockRunner& runner = block_runner();
    check_blocks(runner, blocks, site);
    for (unsigned rank = 0; blocks >> rank != 0; ++rank) {
        if ((blocks >> rank & 1) != 0) runner.async().load_box(shared, map, column, row, barrier, rank, site);
    }
}
void ptx::isa::bulk_load_multicast(void* shared, const void* global, unsigned bytes, MBarrier* barrier,
                                   std::uint16_t blocks, Site site) {
    BlockRunner& runner = block_runner();
    check_blocks(runner, blocks, site);
    for (unsigned rank = 0; blocks >> rank != 0; ++rank) {
        if ((blocks >> rank & 1) != 0) runner.async().load_bytes(shared, global, bytes, barrier, rank, site);
    }
}
void ptx::tma_store(const CUtensorMap* map, int column, int row, const void* shared, Site site) {
    block_runner().async().store_box(map, column, row, shared, site);
}
void ptx::tma_load_line(void* shared, const CUtensorMap* map, int column, MBarrier* barrier, Site site) {
    block_runner().async().load_box(shared, map, column, 0, barrier, AsyncEngine::kOwnBlock, site, 1);
}
void ptx::tma_store_line(const CUtensorMap* map, int column, const void* shared, Site site) {
    block_runner().async().store_box(map, column, 0, shared, site, 1);
}
void ptx::tma_store_commit() {
    block_runner().async().commit_stores();
}
void wait_for_stores(unsigned pending, bool until_written, Site site) {
    block_runner().async().wait_for_stores(pending, until_written, site);
}
void ptx::fence_proxy_async() {
    block_runner().async().fence_proxy_async();
}
void ptx::named_barrier(unsigned id, unsigned threads, Site site) {
    block_runner().named_barriers().meet(id, threads, site);
}
void ptx::named_barrier_arrive(unsigned id, unsigned threads, Site site) {
    block_runner().named_barriers().meet(id, threads, site, false);
}

}  // namespace cuda_on_cpu

void* __cvta_shared_to_generic(std::size_t address) {
    return cuda_on_cpu::block_runner().shared_pointer(address, 0, cuda_on_cpu::Site{"", 0});
}
std::size_t __cvta_generic_to_shared(const void* pointer) {
    return cuda_on_cpu::block_runner().shared_address(pointer, cuda_on_cpu::Site{"", 0});
}
