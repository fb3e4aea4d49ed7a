#include "checks.hpp"

#include <link.h>
#include <malloc.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "block.hpp"
#include "child_grids.hpp"
#include "cuda_on_cpu/host_memory.h"
#include "device_heap.hpp"
#include "environment.hpp"
#include "kernel_line.hpp"
#include "memory.hpp"
#include "observer.hpp"
#include "source_places.hpp"
#include "tensor_map.hpp"
#include "variable_gaps.hpp"

namespace cuda_on_cpu::inspector {
namespace {

using Index = std::array<unsigned, 3>;

Address address_of(const volatile void* pointer) {
    return reinterpret_cast<Address>(pointer);
}

std::string triple(const Index& i) {
    return "(" + std::to_string(i[0]) + "," + std::to_string(i[1]) + "," + std::to_string(i[2]) + ")";
}

const char* verb(AccessKind kind) {
    switch (kind) {
        case AccessKind::load:
            return "read";
        case AccessKind::store:
            return "write";
        case AccessKind::volatile_load:
            return "volatile read";
        case AccessKind::volatile_store:
            return "volatile write";
        default:
            if (of_thread(kind)) return "atomic access of thread scope";
            return of_block(kind) ? "atomic access of block scope" : "atomic access";
    }
}

// Does an atomic operation with that memory order (the compiler's number) acquire, release?
bool acquires(int memory_order) {
    return memory_order != __ATOMIC_RELAXED && memory_order != __ATOMIC_RELEASE;
}
bool releases(int memory_order) {
    return memory_order >= __ATOMIC_RELEASE;
}

// What to do about a race of these two accesses besides ordering them.
std::string advice(AccessKind a, AccessKind b, bool between_blocks) {
    if (of_thread(a) || of_thread(b)) return ": an atomic of thread scope is atomic for its own thread alone";
    if (between_blocks && is_atomic(a) && is_atomic(b))
        return ": an atomic of block scope is atomic only among the threads of its block";
    if (is_volatile(a) || is_volatile(b))
        return ": volatile does not order; use cuda::atomic_ref, or atomics with fences";
    return "";
}

std::string bytes_text(std::size_t bytes) {
    return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

// --- Memory of the host --------------------------------------------------------------------------

// Does the page hold anything of a program or library that is loaded, or of their variables of this
// OS thread?
bool is_in_image(Address page, std::size_t bytes) {
    struct Search {
        Address begin, end;
        bool meets(Address begin_of, std::size_t size) const {
            return begin_of < end && begin < begin_of + size;
        }
    } search{page, page + bytes};
    const auto look = [](dl_phdr_info* image, std::size_t, void* searched) {
        const auto& wanted = *static_cast<const Search*>(searched);
        for (int i = 0; i < image->dlpi_phnum; ++i) {
            const auto& segment = image->dlpi_phdr[i];
            const bool is_loaded = segment.p_type == PT_LOAD;
            const bool is_of_thread = segment.p_type == PT_TLS && image->dlpi_tls_data != nullptr;
            if (is_loaded && wanted.meets(image->dlpi_addr + segment.p_vaddr, segment.p_memsz)) return 1;
            if (is_of_thread && wanted.meets(address_of(image->dlpi_tls_data), segment.p_memsz)) return 1;
        }
        return 0;
    };
    return dl_iterate_phdr(look, &search) != 0;
}

bool is_readable(Address byte) {
    char value;
    const iovec here{&value, 1}, there{reinterpret_cast<void*>(byte), 1};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

// --- Device memory -------------------------------------------------------------------------------

// All allocations since the program began, because an inspection that begins later has to know
// which memory was already written.
class AllMemory final : public MemoryObserver {
  public:
    static AllMemory& instance() {
        // Never destroyed: other static objects free memory at the very end.
        static auto& all = *new AllMemory;
        return all;
    }

    void memory_allocated(void* memory, std::size_t size, bool host_may_write) override {
        auto piece = std::make_unique<DeviceMemory>();
        piece->begin = address_of(memory);
        piece->size = size;
        if (!host_may_write) piece->written = std::make_unique<WrittenBytes>(size);
        const std::scoped_lock lock(mutex_);
        pieces_[piece->begin] = std::move(piece);
    }
    void memory_freed(void* memory) override {
        const std::scoped_lock lock(mutex_);
        if (const auto found = pieces_.find(address_of(memory)); found != pieces_.end()) {
            found->second->freed = true;
            found->second->written.reset();
        }
    }
    void memory_written(void* memory, std::size_t size) override {
        note_footprint(memory, size);
        DeviceMemory* piece = find(address_of(memory));
        if (piece == nullptr || piece->written == nullptr) return;
        piece->written->mark(address_of(memory) - piece->begin, size);
    }
    // A copy or a memset in a stream. It has no source line.
    static void note_footprint(void* memory, std::size_t size) {
        const Task* const task = running_task();
        if (launch_observer == nullptr || task == nullptr || in_kernel()) return;
        auto copy = std::make_shared<Footprint>(task->number, task->beside, "a copy or cudaMemset");
        copy->copied(address_of(memory), size);
        Footprints::of_inspection().add(std::move(copy), nullptr);
    }
    void unwatched_launch() override {
        const std::scoped_lock lock(mutex_);
        for (auto& [begin, piece] : pieces_) {
            if (piece->written != nullptr) piece->written->mark(0, piece->size);
        }
    }

    // The allocation that contains the byte's page, even if it has been freed.
    DeviceMemory* find(Address byte) {
        const auto allocation = find_allocation(reinterpret_cast<const void*>(byte));
        if (!allocation || allocation->mapping == nullptr) return nullptr;
        const std::scoped_lock lock(mutex_);
        const auto found = pieces_.find(address_of(allocation->begin));
        return found == pieces_.end() ? nullptr : found->second.get();
    }

  private:
    AllMemory() = default;

    std::mutex mutex_;
    std::map<Address, std::unique_ptr<DeviceMemory>> pieces_;
};

[[maybe_unused]] const bool memory_is_observed = [] {
    memory_observer = &AllMemory::instance();
    return true;
}();

GlobalShadow& global_shadow() {
    static auto& shadow = *new GlobalShadow;
    return shadow;
}

struct AllChecks {
    std::mutex mutex;
    std::vector<BlockChecks*> all;
};
AllChecks& all_checks() {
    static auto& all = *new AllChecks;
    return all;
}

// The kind of finding for a failure reported by the stand-in.
const char* kind_of(cudaError_t error, const std::string& message) {
    const auto contains = [&](const char* text) { return message.find(text) != std::string::npos; };
    if (contains("which has been freed")) return "use_after_free";
    if (contains("deadlock")) return "deadlock";
    if (contains("different barriers") || contains("barrier_arrive") || contains("barrier_wait"))
        return "divergent_barrier";
    if (contains("mask")) return "wrong_mask";
    switch (error) {
        case cudaErrorIllegalAddress:
            return "out_of_bounds";
        case cudaErrorMisalignedAddress:
            return "misaligned";
        case cudaErrorLaunchTimeout:
            return "timeout";
        case cudaErrorAssert:
            return "assertion";
        case cudaErrorHardwareStackError:
            return "stack_overflow";
        default:
            return "failure";
    }
}

// The last "file:line" in a text; line 0 if there is none.
SourceLine place_in(const std::string& text) {
    for (auto colon = text.rfind(':'); colon != std::string::npos && colon > 0;
         colon = text.rfind(':', colon - 1)) {
        const std::size_t digits = text.find_first_not_of("0123456789", colon + 1) - colon - 1;
        const std::size_t end = text.find_first_not_of("0123456789", colon + 1);
        if (end == colon + 1 || (end == std::string::npos && colon + 1 == text.size())) continue;
        static_cast<void>(digits);
        const auto space = text.rfind(' ', colon);
        const std::size_t begin = space == std::string::npos ? 0 : space + 1;
        return {text.substr(begin, colon - begin), std::atoi(text.c_str() + colon + 1)};
    }
    return {};
}

}  // namespace

constinit thread_local BlockChecks* checking = nullptr;

std::uint64_t blocks_together(const LaunchConfiguration& launch) {
    return std::max<std::uint64_t>(volume(launch.cluster), 1);
}

std::uint64_t cluster_of(uint3 block, const LaunchConfiguration& launch) {
    const auto [x, y, z] = blocks_together(launch) > 1 ? launch.cluster : dim3(1, 1, 1);
    return (std::uint64_t{block.z / z} * (launch.grid.y / y) + block.y / y) * (launch.grid.x / x) +
           block.x / x;
}

// --- One launch ----------------------------------------------------------------------------------

namespace {

std::atomic<unsigned> launches_that_run{0};

// The last launches, beside which later ones may run.
struct LastLaunches {
    static constexpr std::size_t kMost = 64;
    std::mutex mutex;
    std::map<std::uint64_t, LaunchChecks::EarlierLaunch> by_number;
};
LastLaunches& last_launches() {
    static auto& all = *new LastLaunches;
    return all;
}

}  // namespace

LaunchChecks::LaunchChecks(const LaunchState& launch)
    : clusters_(blocks_together(launch.configuration) > 1),
      kernel_(launch.name),
      number_of_launch_(launch.configuration.number),
      shape_(launch.configuration.block),
      arguments_(launch.closure.get()),
      variables_(guarded_variables()) {
    static std::atomic<std::uint64_t> launches{0};
    generation_ = ++launches << 32;
    if (launch.configuration.beside != 0) {
        const std::scoped_lock lock(last_launches().mutex);
        const auto& all = last_launches().by_number;
        if (const auto found = all.find(launch.configuration.beside); found != all.end())
            beside_ = found->second;
    }
    if (launch.task != nullptr && work_is_deferred())
        footprint_ = std::make_shared<Footprint>(
            launch.task->number, launch.task->beside,
            "kernel " + launch.name + " on device " + std::to_string(launch.device));
    // Not while another kernel runs, because its blocks may still acquire these clocks.
    if (launches_that_run++ > 0) return;
    global_shadow().forget_atomics();
    if (global_shadow().full()) global_shadow().forget();
}

std::optional<Footprint> LaunchChecks::new_footprint() const {
    return footprint_ == nullptr
               ? std::nullopt
               : std::optional<Footprint>(std::in_place, 0, std::vector<std::uint64_t>(), "");
}

void LaunchChecks::add_footprint(Footprint&& of_block) {
    const std::scoped_lock lock(mutex_);
    footprint_->merge(std::move(of_block));
}

void LaunchChecks::end() {
    --launches_that_run;
    if (number_of_launch_ != 0) {
        const std::scoped_lock lock(last_launches().mutex);
        auto& all = last_launches().by_number;
        all[number_of_launch_] = {generation_, kernel_, shape_, blocks_};
        if (all.size() > LastLaunches::kMost) all.erase(all.begin());
    }
    if (footprint_ != nullptr) Footprints::of_inspection().add(footprint_, &findings_);
}

bool LaunchChecks::all_memory_watched() {
    return !global_shadow().full();
}

unsigned LaunchChecks::number(std::array<unsigned, 3> block) {
    const std::scoped_lock lock(mutex_);
    blocks_.push_back(block);
    return static_cast<unsigned>(blocks_.size() - 1);
}

std::array<unsigned, 3> LaunchChecks::block(unsigned number) const {
    const std::scoped_lock lock(mutex_);
    return number < blocks_.size() ? blocks_[number] : Index{};
}

void LaunchChecks::at_cluster_barrier(std::uint64_t cluster,
                                      const std::function<void(BlockPhases&)>& change) {
    const std::scoped_lock lock(mutex_);
    change(at_clusters_[cluster]);
}

void LaunchChecks::at_mbarrier(const void* barrier, const std::function<void(BlockPhases&)>& change) {
    const std::scoped_lock lock(mutex_);
    change(at_mbarriers_[barrier]);
}

void LaunchChecks::with_accesses(std::uint64_t cluster, const std::function<void(ClusterAccesses&)>& change) {
    const std::scoped_lock lock(mutex_);
    change(in_clusters_[cluster]);
}

void LaunchChecks::failed(cudaError_t error, const std::string& message, Site site) {
    const char* kind = kind_of(error, message);
    // The stand-in stopped at an access that the checks have just reported.
    const bool bad_access = error == cudaErrorIllegalAddress || error == cudaErrorMisalignedAddress;
    if (bad_access && findings_.has_bad_access()) return;
    Party party;
    static std::mutex mutex;
    // A Site does not own the name of its file, and is used until the program ends.
    static auto& files = *new std::vector<std::unique_ptr<std::string>>;
    if (site.line == 0) {
        const SourceLine line = place_in(message);
        const std::scoped_lock lock(mutex);
        files.push_back(std::make_unique<std::string>(line.file));
        site = Site{files.back()->c_str(), line.line};
    }
    if (site.line > 0) party.place = place_of(site);
    if (in_kernel()) {
        party.block = {blockIdx.x, blockIdx.y, blockIdx.z};
        party.thread = {threadIdx.x, threadIdx.y, threadIdx.z};
    }
    findings_.add(kind, party, std::nullopt,
                  [&](RawFinding& finding) { finding.message = message.substr(0, message.find('\n')); });
}

// --- One block -----------------------------------------------------------------------------------

BlockChecks& BlockChecks::of_this_thread() {
    return only_of_this_thread<BlockChecks>();
}

BlockChecks::BlockChecks() {
    const std::scoped_lock lock(all_checks().mutex);
    all_checks().all.push_back(this);
}

BlockChecks::~BlockChecks() {
    checking = nullptr;
    const std::scoped_lock lock(all_checks().mutex);
    std::erase(all_checks().all, this);
}

void BlockChecks::forget_everywhere(const LaunchChecks& launch) {
    const std::scoped_lock lock(all_checks().mutex);
    for (BlockChecks* each : all_checks().all) {
        if (each->launch_ != &launch) continue;
        each->launch_ = nullptr;
        each->watched_ = false;
    }
}

void BlockChecks::begin_block(LaunchChecks& launch, const LaunchState& state, uint3 block, bool watched) {
    // Which memory is that of blocks of the cluster differs from cluster to cluster.
    if (launch_ != &launch || launch.clusters()) {
        pages_.fill(Page{});
        pieces_.clear();
        recent_.clear();
    }
    launch_ = &launch;
    watched_ = watched;
    uses_host_memory = 0;  // a block that failed may have left it
    unchecked_ = nullptr;
    block_ = {block.x, block.y, block.z};
    shape_ = state.configuration.block;
    threads_ = static_cast<unsigned>(volume(shape_));
    grid_barrier_ = &state.grid_barrier;
    generation_ = launch.generation();
    footprint_ = watched ? launch.new_footprint() : std::nullopt;
    beside_ = watched ? launch.beside() : nullptr;
    touches_ = footprint_ || beside_ != nullptr;
    waits_.clear();
    if (beside_ != nullptr) waited_.assign(threads_, false);
    second_writes_.clear();
    second_writes_waited_ = false;
    load_races_.clear();
    volatile_load_ = 0;
    split_barrier_ = false;
    cluster_ = cluster_of(block, state.configuration);
    cluster_phase_ = ~0U;
    barriers_ = ended_after_a_barrier_ = 0;
    atomics_.clear();
    loaded_.clear();
    loaded_before_barrier_ = {};
    // Discard leftovers of a block that failed.
    in_turn_.fill({});
    reads_.note_all([](const Run&, Address) {});
    order_.begin_block(threads_);
    in_cluster_.clear();
    proxy_fences_.clear();
    others_.begin_block(watched ? launch.number(block_) : GridOrder::kNotWatched);
    static_begin_ = ~Address{0};
    static_end_ = 0;
    dynamic_ = nullptr;
    shared_.begin_block();
    shared_at_.clear();
    if (copies_.size() < threads_) copies_.resize(threads_);
    took_lock_.assign(threads_ / kLanes * kLanes + kLanes, false);
    takes_lock_ = false;
    exchange_ = 0;
    unwritten_exchanges_.clear();
    short_reads_.clear();
    for (Copies& copies : copies_) {
        copies.group = 0;
        copies.pending.clear();
    }
    const FibreStacks& stacks = block_runner().stacks();
    stacks_begin_ = address_of(stacks.begin());
    stacks_size_ = address_of(stacks.end()) - stacks_begin_;
    checking = this;
}

void BlockChecks::begin_watched_block(void* dynamic_shared, std::size_t size, UncheckedLoads& unchecked) {
    if (!watched_) return;
    unchecked_ = &unchecked;
    if (size == 0) return;
    shared_.add({address_of(dynamic_shared), size, 0, "dynamic shared memory"}, launch_->clusters());
    dynamic_ = shared_.find(address_of(dynamic_shared));
}

void BlockChecks::end_block() {
    if (!watched_) return;
    settle();
    note_reads();
    unchecked_ = nullptr;
    if (launch_->clusters()) end_in_cluster();
    if (footprint_) launch_->add_footprint(std::move(*footprint_));
    footprint_.reset();
    beside_ = nullptr;
    touches_ = false;
    watched_ = false;
    checking = nullptr;
}

void BlockChecks::on(const event::SharedEntered& event) {
    const Address begin = address_of(event.object);
    shared_.add({begin, event.size, event.gap, event.name}, launch_->clusters());
    const Address from = std::min(static_begin_, begin - event.gap);
    const Address to = std::max(static_end_, begin + event.size + event.gap);
    if (from == static_begin_ && to == static_end_) return;
    static_begin_ = from;
    static_end_ = to;
    for (Page& page : pages_) {
        if (page.number >= from / kPageBytes && page.number <= to / kPageBytes) page = Page{};
    }
}

// --- Accesses ------------------------------------------------------------------------------------

const BlockChecks::Page& BlockChecks::page(Address byte) {
    Page& page = pages_[byte / kPageBytes % kPages];
    if (page.number != byte / kPageBytes) page = look_up(byte);
    return page;
}

// As page(), with a cache per instruction: most instructions continue in the same allocation.
BlockChecks::Page BlockChecks::page_for(Address byte, Place place) {
    Piece& piece = pieces_[place];
    if (byte - piece.begin < piece.size) return {byte / kPageBytes, piece.device, Memory::device};
    const Page& found = page(byte);
    if (found.memory == Memory::device) {
        const DeviceMemory& device = *found.device;
        const bool usable = !device.freed && (device.written == nullptr || device.written->all());
        piece = {found.device, device.begin, device.size, byte, usable};
    }
    return found;
}

BlockChecks::Page BlockChecks::look_up(Address byte) {
    const Address number = byte / kPageBytes;
    DeviceMemory* recent = recent_.find([&](const DeviceMemory* device) {
        return number >= device->begin / kPageBytes &&
               number <= (device->begin + device->size - 1) / kPageBytes;
    });
    if (recent != nullptr) return {number, recent, Memory::device};
    const BlockRunner& runner = block_runner();
    // The stacks are allocated when they are first needed.
    stacks_begin_ = address_of(runner.stacks().begin());
    stacks_size_ = address_of(runner.stacks().end()) - stacks_begin_;
    if (byte - stacks_begin_ < stacks_size_) return {number, nullptr, Memory::nothing};
    if (static_end_ > 0 && number >= static_begin_ / kPageBytes && number <= (static_end_ - 1) / kPageBytes)
        return {number, nullptr, Memory::static_shared};
    const auto* pointer = reinterpret_cast<const char*>(byte);
    if (runner.in_dynamic_shared(pointer) || runner.in_dynamic_shared(pointer + kPageBytes) ||
        runner.in_dynamic_shared(pointer - kPageBytes)) {
        return {number, nullptr, Memory::dynamic_shared};
    }
    static const ImageRange variables = writable_image();
    if (byte >= variables.begin && byte < variables.end) return {number, nullptr, Memory::variables};
    if (DeviceMemory* device = AllMemory::instance().find(byte); device != nullptr) {
        if (device->begin <= byte && byte - device->begin < device->size) recent_.add(device);
        return {number, device, Memory::device};
    }
    if (launch_ != nullptr && launch_->clusters() && in_shared_of_cluster(pointer))
        return {number, nullptr, Memory::of_cluster};
    if (launch_ != nullptr) {
        const auto in_page = [&](const GuardedVariable& variable) {
            return number >= address_of(variable.from) / kPageBytes &&
                   number <= (address_of(variable.to) - 1) / kPageBytes;
        };
        if (std::ranges::any_of(launch_->variables(), in_page)) return {number, nullptr, Memory::constants};
    }
    const bool is_of_host = !is_in_image(number * kPageBytes, kPageBytes) && is_readable(byte);
    return {number, nullptr, is_of_host ? Memory::host : Memory::nothing};
}

void BlockChecks::check(AccessKind kind, Address byte, std::size_t bytes, Place place, bool aligned) {
    check_by(running_thread(), kind, byte, bytes, place, aligned);
}

void BlockChecks::check_by(unsigned thread, AccessKind kind, Address byte, std::size_t bytes, Place place,
                           bool aligned) {
    const Page where = page_for(byte, place);
    if (where.memory == Memory::nothing) return;
    settle(kind);
    const Access access{thread, byte, static_cast<unsigned>(bytes), kind, short_place(place)};
    if (!watched_) {
        if (where.memory == Memory::device && where.device->written != nullptr)
            where.device->written->mark(byte - where.device->begin, bytes);
        return;
    }
    switch (where.memory) {
        case Memory::static_shared:
            if (SharedShadow::Region* region = shared_.find(byte); region != nullptr) {
                shared_at_[place] = region;
                check_shared(*region, access, aligned);
            }
            break;
        case Memory::dynamic_shared:
            if (dynamic_ != nullptr) {
                shared_at_[place] = dynamic_;
                check_shared(*dynamic_, access, aligned);
            } else {
                report("out_of_bounds", access,
                       std::string(verb(kind)) + " of " + bytes_text(bytes) +
                           " of dynamic shared memory, of which the kernel was launched with none");
            }
            break;
        case Memory::of_cluster:
            note_in_cluster(access);
            break;
        case Memory::device:
            check_device(*where.device, access, aligned);
            break;
        case Memory::variables:
            if (inside_variable(access, aligned)) note_device_access(access);
            break;
        case Memory::constants:
            inside_variable(access, aligned);
            break;
        case Memory::host:
            if (!is_lent(byte)) report_host(access);
            break;
        case Memory::nothing:
            break;
    }
}

// Is it memory of the host that stands for memory of the device, or that the runtime itself uses in
// a kernel?
bool BlockChecks::is_lent(Address byte) const {
    const auto is_in = [byte](const void* begin, std::size_t size) {
        return byte - address_of(begin) < size;
    };
    return uses_host_memory > 0 || kernels_share_heap || is_in(&block_runner(), sizeof(BlockRunner)) ||
           is_in(launch_->arguments(), malloc_usable_size(const_cast<void*>(launch_->arguments()))) ||
           in_heap_of_kernels(reinterpret_cast<const void*>(byte)) ||
           find_allocation(reinterpret_cast<const void*>(byte)).has_value();  // cudaHostRegister
}

void BlockChecks::report_host(const Access& access) {
    std::array<char, 32> address;
    std::snprintf(address.data(), address.size(), "%p", reinterpret_cast<void*>(access.address));
    const std::string what = std::string(verb(access.kind)) + " of " + bytes_text(access.bytes) + " at " +
                             address.data() + ", in memory of the host, which a GPU cannot reach";
    report("host_memory", access, what);
    void* const instruction = reinterpret_cast<void*>(long_place(access.place) - 1);
    const std::string line = kernel_line({&instruction, 1});
    block_runner().fail(cudaErrorIllegalAddress,
                        what + (line.empty() ? "" : ", in " + line) +
                            ": was a pointer copied to the device that points to memory of the host?",
                        Site{"", 0});
}

bool BlockChecks::inside_shared(SharedShadow::Region& region, const Access& access, bool aligned) {
    const SharedArray& array = SharedShadow::array_of(region);
    if (access.address < array.begin || access.address + access.bytes > array.begin + array.size) {
        const bool before = access.address < array.begin;
        const std::size_t distance = before ? array.begin - access.address
                                            : access.address + access.bytes - (array.begin + array.size);
        report("out_of_bounds", access,
               std::string(verb(access.kind)) + " of " + bytes_text(access.bytes) + " at byte " +
                   std::to_string(static_cast<std::int64_t>(access.address - array.begin)) + " of " +
                   array.name + ", " + bytes_text(distance) +
                   (before ? " before it" : " past the end of its ") +
                   (before ? "" : std::to_string(array.size)));
        return false;
    }
    if (aligned && (access.address & (access.bytes - 1)) != 0) {
        report("misaligned", access,
               std::string(verb(access.kind)) + " of " + bytes_text(access.bytes) + " at once, at byte " +
                   std::to_string(access.address - array.begin) + " of " + array.name);
        return false;
    }
    return true;
}

void BlockChecks::check_shared(SharedShadow::Region& region, const Access& access, bool aligned) {
    if (inside_shared(region, access, aligned)) shared_.access(region, access, order_, *this);
}

void BlockChecks::check_device(DeviceMemory& memory, const Access& access, bool aligned) {
    const auto offset = static_cast<std::int64_t>(access.address - memory.begin);
    const auto start = [&] {
        return std::string(verb(access.kind)) + " of " + bytes_text(access.bytes) + " at byte " +
               std::to_string(offset) + " of the allocation of " + bytes_text(memory.size);
    };
    if (memory.freed) {
        report("use_after_free", access, start() + ", which has been freed");
        return;
    }
    if (access.address < memory.begin || access.address + access.bytes > memory.begin + memory.size) {
        const bool before = access.address < memory.begin;
        report("out_of_bounds", access, start() + (before ? ", before its beginning" : ", past its end"));
        return;
    }
    if (aligned && (access.address & (access.bytes - 1)) != 0) {
        report("misaligned", access, start() + " at once");
        return;
    }
    if (memory.written != nullptr) {
        const auto first = static_cast<std::size_t>(offset);
        if (reads(access.kind)) {
            const bool vector = access.bytes > 4;
            const bool part_of_it = vector && !memory.written->none_written(first, access.bytes);
            const std::ptrdiff_t unwritten = memory.written->first_unwritten(first, access.bytes);
            if (unwritten >= 0 && !part_of_it)
                uninitialised(access, memory.begin + static_cast<Address>(unwritten));
        } else {
            memory.written->mark(first, access.bytes);
        }
    }
    note_device_access(access);
}

bool BlockChecks::inside_variable(const Access& access, bool aligned) {
    const auto start = [&] { return std::string(verb(access.kind)) + " of " + bytes_text(access.bytes); };
    // The first variable with bytes, its own or those beside it, behind the access's first byte.
    const auto* const first = reinterpret_cast<const char*>(access.address);
    const auto& all = launch_->variables();
    const auto found = std::ranges::upper_bound(all, first, std::less<>(), &GuardedVariable::to);
    if (found != all.end() && first + access.bytes > found->from) {
        const char* const end = found->begin + found->size;
        if (first < found->begin || first + access.bytes > end) {
            const char* const outside = first < found->begin || first >= end ? first : end;
            report("out_of_bounds", access, start() + " at " + describe_index(*found, outside));
            return false;
        }
    }
    if (aligned && (access.address & (access.bytes - 1)) != 0) {
        report("misaligned", access, start() + " at once, at " + describe(access.address));
        return false;
    }
    return true;
}

// --- Shared memory of other blocks of the cluster -------------------------------------------------

void BlockChecks::note_in_cluster(const Access& access) {
    const auto* const byte = reinterpret_cast<const void*>(access.address);
    if (!in_shared_of_cluster(byte)) return;
    const unsigned rank = shared_rank(byte, Site{"", 0});
    if (rank == cluster_block_rank()) return;  // thread-local variables of the runtime
    const Epoch epoch = order_.epoch(access.thread);
    Epoch& noted = in_cluster_[{rank, access.thread}];
    if (noted == epoch) return;
    noted = epoch;
    const LaunchChecks::AccessInCluster last{others_.number(), access.thread, epoch,
                                             party(access.thread, access.place),
                                             verb(access.kind) + (" of " + bytes_text(access.bytes))};
    bool ended = false;
    launch_->with_accesses(cluster_, [&](LaunchChecks::ClusterAccesses& all) {
        ended = all[rank].ended;
        std::vector<LaunchChecks::AccessInCluster>& there = all[rank].accesses;
        const auto before = std::ranges::find_if(there, [&](const LaunchChecks::AccessInCluster& one) {
            return one.block == last.block && one.thread == last.thread;
        });
        if (before == there.end()) {
            there.push_back(last);
        } else {
            *before = last;
        }
    });
    if (ended) report_exit(last, rank);
}

void BlockChecks::arrive_in_cluster(unsigned thread, unsigned phase) {
    launch_->with_accesses(cluster_, [&](LaunchChecks::ClusterAccesses& all) {
        for (LaunchChecks::SharedInCluster& of_block : all) {
            for (LaunchChecks::AccessInCluster& one : of_block.accesses) {
                if (one.block == others_.number() && one.thread == thread && one.phase == ~0U)
                    one.phase = phase;
            }
        }
    });
}

// The thread arrives at an mbarrier of another block, whose threads wait for it. They are taken to
// wait before any block ends to whose shared memory the accesses before the arrival went.
void BlockChecks::hand_over_in_cluster(unsigned thread) {
    if (in_cluster_.empty()) return;
    launch_->with_accesses(cluster_, [&](LaunchChecks::ClusterAccesses& all) {
        for (LaunchChecks::SharedInCluster& of_block : all) {
            std::erase_if(of_block.accesses, [&](const LaunchChecks::AccessInCluster& one) {
                return one.block == others_.number() && order_.ordered(one.thread, one.epoch, thread);
            });
        }
    });
}

// The block ends. What others did to its shared memory is over if they have arrived at a phase of
// the cluster's barrier that the block has waited for.
void BlockChecks::end_in_cluster() {
    const unsigned rank = cluster_block_rank();
    std::vector<LaunchChecks::AccessInCluster> accesses;
    launch_->with_accesses(cluster_, [&](LaunchChecks::ClusterAccesses& all) {
        all[rank].ended = true;
        accesses = std::move(all[rank].accesses);
        all[rank].accesses.clear();
    });
    if (block_runner().launch().failed) return;
    for (const LaunchChecks::AccessInCluster& access : accesses) {
        if (access.phase != ~0U && cluster_phase_ != ~0U && access.phase <= cluster_phase_) continue;
        // By way of atomic accesses to device memory.
        if (launch_->any_fence && others_.ordered(access.block, access.thread, access.epoch)) continue;
        report_exit(access, rank);
    }
}

void BlockChecks::report_exit(const LaunchChecks::AccessInCluster& access, unsigned rank) {
    launch_->findings().add("cluster_exit", access.party, std::nullopt, [&](RawFinding& finding) {
        finding.message = access.what + " of shared memory of block " + std::to_string(rank) +
                          " of the cluster by thread " + triple(access.party.thread) + " of block " +
                          triple(access.party.block) + "; nothing keeps block " + std::to_string(rank) +
                          " from ending first";
    });
}

void BlockChecks::touch(AccessKind kind, Address byte, unsigned bytes, Place place) {
    const Memory memory = page_for(byte, place).memory;
    if (beside_ != nullptr && (memory == Memory::device || memory == Memory::variables))
        compare_with_earlier_launch(kind, byte, bytes, place);
    if (!footprint_ || memory != Memory::device) return;
    footprint_->touch(kind, byte, bytes, party(running_thread(), short_place(place)));
}

void BlockChecks::compare_with_earlier_launch(AccessKind kind, Address byte, std::size_t bytes, Place place) {
    const unsigned thread = running_thread();
    if (waited_[thread]) return;
    for (const auto& [waiter, then] : waits_) {
        if (!order_.ordered(waiter, then, thread)) continue;
        waited_[thread] = true;  // and whatever follows in this thread
        return;
    }
    for (Address word = byte / 4 * 4; word < byte + bytes; word += 4) {
        const Address begin = std::max(word, byte) - word, end = std::min(word + 4, byte + bytes) - word;
        const auto mask = static_cast<std::uint8_t>((1U << end) - (1U << begin));
        Earlier earlier;
        if (!global_shadow().conflicts_with(beside_->generation, kind, word, mask, earlier)) continue;
        const dim3 shape = beside_->shape;
        const unsigned i = earlier.thread;
        Party other{
            long_place(earlier.place), {}, {i % shape.x, i / shape.x % shape.y, i / (shape.x * shape.y)}};
        if (earlier.block < beside_->blocks.size()) other.block = beside_->blocks[earlier.block];
        launch_->findings().add(
            "race_between_launches", party(thread, short_place(place)), other, [&](RawFinding& finding) {
                finding.message = describe(word + begin) + ": " + verb(earlier.kind) + " by kernel " +
                                  beside_->kernel + ", which may still run, " + verb(kind) + " by kernel " +
                                  launch_->kernel() + " before cudaGridDependencySynchronize()";
            });
        return;
    }
}

void BlockChecks::note_device_access(const Access& access) {
    constexpr unsigned kShort = 2;
    if (access.kind == AccessKind::load && access.in_one_line()) {
        note_read(access);
    } else if (access.kind == AccessKind::load && access.bytes == kShort) {
        constexpr std::size_t kMany = 16;
        if (short_reads_.size() >= kMany) note_short_reads();
        short_reads_.push_back(access);
    } else {
        if (writes(access.kind) && !short_reads_.empty()) note_short_reads();
        global_shadow().access(access, generation_, order_, others_, *this);
    }
}

void BlockChecks::note_short_reads() {
    for (const Access& read : std::exchange(short_reads_, {}))
        global_shadow().access(read, generation_, order_, others_, *this);
}

void BlockChecks::note_write(const Access& access, Address next) {
    GlobalShadow& shadow = global_shadow();
    shadow.prefetch(next);
    shadow.access(access, generation_, order_, others_, *this);
}

void BlockChecks::note_others_for(const Access& read, Epoch epoch, std::uint16_t block) {
    reads_.make_room(read, epoch, block, [this](const Run& run, Address line) { note_in_turn(run, line); });
}

void BlockChecks::note_others_for(const Run& reads, Address line) {
    reads_.make_room(reads, line, [this](const Run& run, Address its_line) { note_in_turn(run, its_line); });
}

void BlockChecks::note_load(unsigned thread, Action action, Address address) {
    note_read({thread, address, action.bytes(), AccessKind::load, short_place(action.place())});
}

// Lanes that read consecutive words of a line are noted together. Of lanes that read the same word
// two are enough (two_readers_suffice).
void BlockChecks::note_loads(unsigned warp, Action action, const Addresses& addresses,
                             std::span<const LaneGroup> groups) {
    constexpr Address kWordBytes = 4;
    const unsigned words_of_each = action.bytes() / kWordBytes;
    Run run{{order_.epoch(warp * kLanes), short_place(action.place()),
             static_cast<std::uint16_t>(others_.number()), false},
            {},
            0};
    for (const LaneGroup& group : groups) {
        const unsigned thread = warp * kLanes + group.first;
        const Address line = addresses[group.first] / Pattern::kLineBytes;
        const auto word = static_cast<unsigned>(addresses[group.first] % Pattern::kLineBytes / kWordBytes);
        run.words = line_words(word, (group.one_address ? 1 : group.lanes) * words_of_each);
        if (group.one_address) {
            for (unsigned reader = thread; reader < thread + 2; ++reader) {
                run.thread = ThreadOfWord(reader);
                note_read(run, line);
            }
        } else {
            run.thread =
                group.lanes > 1 ? ThreadOfWord::in_a_row(thread, word, words_of_each) : ThreadOfWord(thread);
            note_read(run, line);
        }
    }
}

void BlockChecks::note_load_races() {
    for (const LoadRace& race : std::exchange(load_races_, {}))
        note_race(race.access, race.earlier, race.where);
}

void BlockChecks::note_reads() {
    if (!load_races_.empty()) note_load_races();
    if (!short_reads_.empty()) note_short_reads();
    hand_over_loads();
    if (reads_.empty()) return;
    reads_.note_all([this](const Run& run, Address line) { note_in_turn(run, line); });
    for (std::size_t i = 0; i < in_turn_.size(); ++i)
        note_in_turn({}, 0);
}

// The shadow of that line is probably not in the CPU's cache, so it is prefetched now and recorded
// some calls later.
void BlockChecks::note_in_turn(const Run& run, Address line) {
    auto& [first, its_line] = in_turn_[next_in_turn_++ % in_turn_.size()];
    if (first.words != 0) global_shadow().reads(first, its_line, generation_, order_, others_, *this);
    first = run;
    its_line = line;
    if (run.words != 0) global_shadow().prefetch(line);
}

void BlockChecks::volatile_access(AccessKind kind, const volatile void* address, unsigned bytes,
                                  Place place) {
    const Address byte = address_of(address);
    if (byte - stacks_begin_ < stacks_size_ || launch_ == nullptr) return;
    const bool is_load = kind == AccessKind::load;
    static const bool atomic = environment().atomic_volatile;
    if (atomic) {
        kind = is_load ? AccessKind::atomic_load : AccessKind::atomic_store;
    } else {
        kind = is_load ? AccessKind::volatile_load : AccessKind::volatile_store;
        // Neither compilers nor GPUs move a volatile access before the last load of another word, a
        // flag. A lock needs its fence.
        acquire_flags(running_thread(), byte);
    }
    before_atomic(kind, address, bytes, __ATOMIC_RELAXED, place);
    if (is_load) volatile_load_ = byte;  // the load is performed after this returns
}

void BlockChecks::before_compare_and_swap(const volatile void* address, unsigned bytes) {
    const Address byte = address_of(address);
    if (byte - stacks_begin_ < stacks_size_ || launch_ == nullptr || !watched_) return;
    const unsigned thread = running_thread();
    takes_lock_ = true;
    std::erase_if(load_races_, [&](const LoadRace& race) {
        return race.access.thread == thread && race.access.address == byte && race.access.bytes == bytes;
    });
    const Memory memory = page(byte).memory;
    if (!is_shared(memory)) {
        hand_over_loads();
        reads_.take_back(byte, bytes, thread, order_.epoch(thread));
        std::erase_if(short_reads_, [&](const Access& read) {
            return read.thread == thread && read.address == byte && read.bytes == bytes;
        });
    } else if (SharedShadow::Region* region = shared_.find(byte); region != nullptr) {
        shared_.take_back(*region, byte, bytes, thread, order_);
    }
}

// Release and acquire, between the block's threads and between blocks. A block's clock is released
// before the operation is performed, and the clock at the address is acquired after it. A block
// that reads the operation's effect is therefore ordered after everything that was released.
void BlockChecks::before_atomic(AccessKind kind, const volatile void* address, unsigned bytes,
                                int memory_order, Place place) {
    const bool takes_lock = std::exchange(takes_lock_, false);
    const unsigned exchange = std::exchange(exchange_, 0);
    const Address byte = address_of(address);
    if (byte - stacks_begin_ < stacks_size_ || launch_ == nullptr) return;
    settle();
    if (!load_races_.empty()) note_load_races();
    if (touches_) touch(kind, byte, bytes, place);
    const unsigned thread = running_thread();
    const bool released_here = writes(kind) && releases(memory_order);
    BlockClock before;
    SharedClock released;
    if (released_here) {
        note_reads();  // they come before what is released
        if (!of_block(kind)) {
            if (!launch_->any_fence) launch_->any_fence = true;
            before = order_.before(thread);
        }
        released = order_.release_once(thread);
    } else if (writes(kind)) {
        released = order_.released(thread);
    }
    if (is_atomic(kind) && reads(kind)) took_lock_[thread] = takes_lock;
    // In shared memory, and without a fence, it does not order reads of device memory.
    if (launch_->any_fence || !atomics_.empty() || order_.any_released() ||
        !is_shared(page_for(byte, place).memory))
        note_reads();
    exchange_ = exchange;
    check(kind, byte, bytes, place, true);
    exchange_ = 0;
    const bool for_others = !of_block(kind) && orders_blocks(byte);
    if (watched_) {
        if (released != nullptr || !atomics_.empty()) {
            SharedClock& here = atomics_[byte];
            if (reads(kind)) {
                if (acquires(memory_order)) {
                    order_.acquire(thread, here);
                } else {
                    order_.acquire_at_fence(thread, here);
                }
            }
            here = join(here, released);
            if (released != nullptr && !for_others) pass_on(thread);
        }
    }
    if (!writes(kind) || !for_others) return;
    global_shadow().at_atomic(byte, generation_, [&](SharedBlockClocks& here) {
        here = released_here ? others_.release(thread, before, here) : others_.release(thread, here);
    });
}

void BlockChecks::after_atomic(AccessKind kind, const volatile void* address, int memory_order) {
    const Address byte = address_of(address);
    if (byte - stacks_begin_ < stacks_size_ || launch_ == nullptr || !reads(kind)) return;
    if (of_block(kind) || !orders_blocks(byte)) return;
    global_shadow().at_atomic(byte, generation_, [&](SharedBlockClocks& here) {
        // What an unwatched block does is not checked; it passes on all that it may have acquired.
        if (!watched_) {
            others_.acquire(here);
        } else if (acquires(memory_order)) {
            others_.acquire(running_thread(), here);
        } else if (here != nullptr) {
            constexpr std::size_t kMany = 4096;
            if (loaded_.size() >= kMany) acquire_loaded();
            const unsigned thread = running_thread();
            loaded_[{thread, byte}] = {here, took_lock_[thread] && is_atomic(kind)};
        }
    });
}

// Can an atomic access there order blocks?
bool BlockChecks::orders_blocks(Address byte) {
    if (!launch_->any_fence) return false;
    const Memory memory = page(byte).memory;
    return memory == Memory::device || memory == Memory::variables;
}

void BlockChecks::fence(bool for_other_blocks) {
    if (launch_ == nullptr) return;
    settle();
    note_reads();
    const unsigned thread = running_thread();
    if (for_other_blocks) {
        acquire_loaded(thread);
    } else {
        order_.fence_to_acquire(thread);
    }
    fence_to_release(thread, for_other_blocks);
}

void BlockChecks::fence_to_release(unsigned thread, bool for_other_blocks) {
    if (for_other_blocks) {
        if (!launch_->any_fence) launch_->any_fence = true;
        others_.fence(thread, order_.before(thread));
    }
    order_.fence_to_release(thread);
}

void BlockChecks::acquire_loaded(unsigned thread) {
    order_.fence_to_acquire(thread);
    const auto [begin, end] = loaded_by(thread);
    for (auto one = begin; one != end; ++one)
        others_.acquire(thread, one->second.clocks);
    loaded_.erase(begin, end);
    for (LoadedBeforeBarrier& before : loaded_before_barrier_)
        before.acquire(thread, others_);
}

void BlockChecks::acquire_flags(unsigned thread, Address except) {
    const LoadedBeforeBarrier& before_barrier = loaded_before_barrier_[kFlags];
    if (loaded_.empty() && before_barrier.clocks == nullptr && !order_.any_to_acquire()) return;
    note_reads();
    if (!took_lock_[thread]) order_.fence_to_acquire(thread);
    const auto [begin, end] = loaded_by(thread);
    for (auto one = begin; one != end;) {
        if (one->second.of_lock || one->first.second == except) {
            ++one;
            continue;
        }
        others_.acquire(thread, one->second.clocks);
        one = loaded_.erase(one);
    }
    loaded_before_barrier_[kFlags].acquire(thread, others_);
}

// After a barrier, what a thread has loaded before it is acquired by the next fence of any thread,
// for that thread: see races.hpp.
void BlockChecks::keep_loaded_for_block() {
    for (LoadedBeforeBarrier& before : loaded_before_barrier_) {
        // The barrier has just passed on to all threads what one has acquired.
        if (before.acquired) before = {};
    }
    for (const auto& [place, loaded] : std::exchange(loaded_, {}))
        keep_for_block(loaded);
}

void BlockChecks::keep_for_block(const Loaded& loaded) {
    LoadedBeforeBarrier& before = loaded_before_barrier_[loaded.of_lock ? kLocks : kFlags];
    before = {join(before.clocks, loaded.clocks), {}};
}

// The thread arrives at a barrier of some threads, or releases to some. What it has acquired,
// loaded and fenced counts for the whole block, which errs towards "ordered".
void BlockChecks::pass_on(unsigned thread) {
    others_.pass_on(thread);
    if (loaded_.empty()) return;
    const auto [begin, end] = loaded_by(thread);
    for (auto one = begin; one != end; ++one)
        keep_for_block(one->second);
    loaded_.erase(begin, end);
}

bool BlockChecks::has_loaded(unsigned thread, const Earlier& earlier) {
    const auto covers = [&](const SharedBlockClocks& clocks) {
        return GridOrder::covers(clocks, earlier.block, earlier.thread, earlier.epoch);
    };
    const auto [begin, end] = loaded_by(thread);
    return std::any_of(begin, end, [&](const auto& one) { return covers(one.second.clocks); }) ||
           std::ranges::any_of(loaded_before_barrier_, covers, &LoadedBeforeBarrier::clocks);
}

void BlockChecks::LoadedBeforeBarrier::acquire(unsigned thread, GridOrder& order) {
    if (clocks == nullptr) return;
    if (acquired_by.size() <= thread) acquired_by.resize(thread + 1, false);
    if (acquired_by[thread]) return;
    acquired_by[thread] = true;
    acquired = true;
    order.acquire(thread, clocks);
}

// One lane has polled a flag, and then its warp meets: a fence of any lane behind that is enough,
// which errs towards "ordered". Not if several have: what a warp looks at while it looks back is
// fenced lane by lane.
void BlockChecks::share_loaded(unsigned warp, LaneMask lanes) {
    if (loaded_.empty()) return;
    const auto begin = loaded_.lower_bound({warp * kLanes, 0});
    const auto end = loaded_.lower_bound({(warp + 1) * kLanes, 0});
    if (begin == end || std::next(begin) != end || (lanes >> begin->first.first % kLanes & 1) == 0) return;
    const auto [place, loaded] = *begin;
    for (LaneMask left = lanes; left != 0; left &= left - 1)
        loaded_[{warp * kLanes + static_cast<unsigned>(std::countr_zero(left)), place.second}] = loaded;
}

void BlockChecks::acquire_loaded() {
    for (const auto& [place, loaded] : std::exchange(loaded_, {}))
        others_.acquire(loaded.clocks);
}

void BlockChecks::notify(const Event& event) {
    if (watched_) std::visit([this](const auto& one) { on(one); }, event);
}

// --- Waiting -------------------------------------------------------------------------------------

void BlockChecks::on(const event::ThreadEnded& event) {
    settle();
    complete_copies(event.thread, ~0U);
    if (!in_cluster_.empty()) arrive_in_cluster(event.thread, block_runner().cluster().barrier.phase());
    // A thread that returns before the block's first barrier counts as arrived at all barriers, as
    // on a GPU and in its tools.
    if (barriers_ > 0) ++ended_after_a_barrier_;
}

void BlockChecks::on(const event::BarrierArrived& event) {
    split_barrier_ = false;
    barrier_site_ = event.site;
}

void BlockChecks::on(const event::SplitBarrierArrived& event) {
    settle();
    note_reads();
    pass_on(event.thread);
    split_barrier_ = true;
    order_.arrive(event.thread);
}

void BlockChecks::on(const event::BarrierReleased&) {
    settle();
    note_reads();
    if (split_barrier_) {
        order_.all_arrived();
        return;
    }
    others_.barrier();
    keep_loaded_for_block();
    order_.barrier();
    atomics_.clear();
    ++barriers_;
    if (ended_after_a_barrier_ == 0) return;
    const Party party{place_of(barrier_site_), block_, {threadIdx.x, threadIdx.y, threadIdx.z}};
    launch_->findings().add("divergent_barrier", party, std::nullopt, [&](RawFinding& finding) {
        finding.message = std::to_string(ended_after_a_barrier_) + " of the block's " +
                          std::to_string(threads_) +
                          " threads have come to barriers before it, and have ended without this one";
    });
}

void BlockChecks::on(const event::SplitBarrierLeft& event) {
    note_reads();
    order_.wait(event.thread);
}

void BlockChecks::on(const event::CollectiveCompleted& event) {
    settle();
    note_reads();
    order_.join(event.warp, event.lanes);
    others_.join(event.warp, event.lanes);
    share_loaded(event.warp, event.lanes);
}

// A barrier of the grid begins with a barrier of the block, so all threads of the block have
// arrived.
void BlockChecks::on(const event::BlocksBarrierArrived& event) {
    settle();
    note_reads();
    pass_on(event.thread);
    if (event.barrier == grid_barrier_) return;
    if (launch_->clusters()) {
        if (!in_cluster_.empty()) arrive_in_cluster(event.thread, event.phase);
        const BlockClock own = order_.release(event.thread);
        launch_->at_cluster_barrier(cluster_, [&](LaunchChecks::BlockPhases& here) {
            SharedBlockClocks& clocks = here.in_phase(event.phase % 2).now;
            clocks = others_.release(own, clocks);
        });
    }
    order_.arrive(event.thread, BlockOrder::SplitBarrier::of_cluster);
}

void BlockChecks::on(const event::BlocksBarrierLeft& event) {
    note_reads();
    if (event.barrier == grid_barrier_) {
        generation_ = launch_->generation() + event.phase + 1;
        return;
    }
    if (std::exchange(cluster_phase_, event.phase) != event.phase) {
        order_.all_arrived(BlockOrder::SplitBarrier::of_cluster);
        if (launch_->clusters())
            launch_->at_cluster_barrier(cluster_, [&](LaunchChecks::BlockPhases& here) {
                others_.acquire(here.in_phase(event.phase % 2 ^ 1).complete);
            });
    }
    order_.wait(event.thread, BlockOrder::SplitBarrier::of_cluster);
}

void BlockChecks::on(const event::ArrivalBarrierBegun& event) {
    order_.reset(event.barrier);
    if (launch_->clusters())
        launch_->at_mbarrier(event.barrier, [](LaunchChecks::BlockPhases& there) { there = {}; });
}

void BlockChecks::on(const event::ArrivalBarrierArrived& event) {
    settle();
    note_reads();
    pass_on(event.thread);
    order_.arrive(event.thread, event.barrier);
}

void BlockChecks::on(const event::ArrivalBarrierCompleted& event) {
    order_.all_arrived(event.barrier);
}

void BlockChecks::on(const event::ArrivalBarrierLeft& event) {
    settle();
    note_reads();
    order_.wait(event.thread, event.barrier);
}

void BlockChecks::on(const event::MbarrierArrived& event) {
    settle();
    note_reads();
    pass_on(event.thread);
    order_.arrive(event.thread, event.barrier, event.parity);
}

// Threads of the other block acquire this clock when they wait, and may release it to this block
// later.
void BlockChecks::on(const event::RemoteMbarrierArrived& event) {
    settle();
    note_reads();
    pass_on(event.thread);
    hand_over_in_cluster(event.thread);
    const BlockClock own = order_.release(event.thread);
    launch_->at_mbarrier(event.barrier, [&](LaunchChecks::BlockPhases& there) {
        SharedBlockClocks& clocks = there.in_phase(event.parity).now;
        clocks = others_.release(own, clocks);
    });
}

void BlockChecks::on(const event::MbarrierLeft& event) {
    settle();
    note_reads();
    order_.wait(event.thread, event.barrier, event.parity);
    if (!launch_->clusters()) return;
    launch_->at_mbarrier(event.barrier, [&](LaunchChecks::BlockPhases& here) {
        const SharedBlockClocks& clocks = here.in_phase(event.parity ^ 1).complete;
        others_.acquire(clocks);
        const unsigned self = others_.number();
        if (clocks != nullptr && self < clocks->size()) order_.acquire(event.thread, (*clocks)[self]);
    });
}

// --- Asynchronous copies and matrix loads --------------------------------------------------------

void BlockChecks::on(const event::CopyIssued& event) {
    settle();
    const Place place = place_of(event.site);
    if (event.valid_bytes > 0 && beside_ != nullptr)
        compare_with_earlier_launch(AccessKind::load, address_of(event.global), event.valid_bytes, place);
    if (event.valid_bytes > 0)
        check_by(event.thread, AccessKind::load, address_of(event.global), event.valid_bytes, place, true);
    const Address to = address_of(event.shared);
    SharedShadow::Region* region = shared_.find(to);
    const Access copy{event.thread, to, event.bytes, AccessKind::store, short_place(place)};
    if (region == nullptr || !inside_shared(*region, copy, true)) return;
    shared_.issue_copy(*region, copy, order_, *this);
    settle_second_writes(
        [&](const SecondWrite& write) { return static_cast<const char*>(event.data) + (write.where - to); });
    copies_[event.thread].pending.push_back({to, event.bytes, copies_[event.thread].group});
}

void BlockChecks::on(const event::CopiesCommitted& event) {
    ++copies_[event.thread].group;
}

void BlockChecks::on(const event::CopiesAwaited& event) {
    const unsigned group = copies_[event.thread].group;
    if (event.pending <= group) complete_copies(event.thread, group - event.pending);
}

// The copies are writes of their thread before its arrival: a read is ordered after them only if
// the reading thread has waited for the barrier.
void BlockChecks::on(const event::CopiesAttached& event) {
    complete_copies(event.thread, ~0U);
}

// The part of a box that is inside the matrix, in accesses of 16 bytes.
void BlockChecks::check_box(unsigned thread, AccessKind kind, const TensorMap& map, int column, int row,
                            Place place) {
    constexpr std::size_t kPiece = 16;
    for (const TensorMap::Row& part : map.rows_within(column, row)) {
        for (std::size_t i = 0; i < part.bytes; i += kPiece) {
            if (beside_ != nullptr)
                compare_with_earlier_launch(kind, address_of(part.begin + i),
                                            std::min(kPiece, part.bytes - i), place);
            check_by(thread, kind, address_of(part.begin + i), std::min(kPiece, part.bytes - i), place,
                     false);
            note_second_writes();  // the values are not compared
        }
    }
}

// The phase cannot end before the copy has. Operations of the thread before it issued the copy, and
// the writes of the copy engine, happen before operations of any thread that has waited for the
// phase. No other thread is ordered after the copy engine: a barrier between threads does not wait
// for it.
void BlockChecks::on(const event::BoxLoadIssued& event) {
    const Place place = place_of(event.site);
    check_box(event.thread, AccessKind::load, event.map, event.column, event.row, place);
    settle();
    note_reads();
    const Address to = address_of(event.shared);
    const Access copy{event.thread, to, static_cast<unsigned>(event.map.box_bytes()), AccessKind::store,
                      short_place(place)};
    if (SharedShadow::Region* region = shared_.find(to);
        region != nullptr && inside_shared(*region, copy, false))
        shared_.issue_copy(*region, copy, order_, *this);
    order_.arrive(event.thread, event.barrier, event.parity);
    issued_by_[order_.copy_engine(event.barrier) % issued_by_.size()] = event.thread;
}

void BlockChecks::on(const event::BoxLoaded& event) {
    settle();
    const unsigned engine = order_.copy_engine(event.barrier);
    if (SharedShadow::Region* region = shared_.find(address_of(event.shared)); region != nullptr)
        shared_.end_copy(*region, address_of(event.shared), engine, order_);
    order_.arrive(engine, event.barrier, event.parity);
}

void BlockChecks::on(const event::BoxStoreIssued& event) {
    const Place place = place_of(event.site);
    check_by(event.thread, AccessKind::load, address_of(event.shared), event.map.box_bytes(), place, false);
    check_box(event.thread, AccessKind::store, event.map, event.column, event.row, place);
}

void BlockChecks::on(const event::PreviousGridAwaited& event) {
    if (beside_ == nullptr || waited_[event.thread]) return;
    waited_[event.thread] = true;
    waits_.emplace_back(event.thread, order_.epoch(event.thread));
}

void BlockChecks::on(const event::ProxyFenced& event) {
    std::vector<Epoch>& fences = proxy_fences_[event.thread];
    const Epoch now = order_.epoch(event.thread);
    if (!fences.empty() && fences.back() == now) return;
    if (fences.size() == kMostProxyFences) fences.erase(fences.begin());
    fences.push_back(now);
}

// Each thread that has written must have called fence.proxy.async since, before what orders its
// writes before the copy.
void BlockChecks::on(const event::BulkRead& event) {
    settle();
    const Address begin = address_of(event.shared);
    SharedShadow::Region* const region = shared_.find(begin);
    const Access read{event.thread, begin, static_cast<unsigned>(event.bytes), AccessKind::load,
                      short_place(place_of(event.site))};
    if (region == nullptr || !inside_shared(*region, read, false)) return;
    bool reported = false;
    shared_.visit_writes(
        *region, begin, event.bytes, [&](unsigned thread, Epoch epoch, ShortPlace place, Address word) {
            if (reported || thread >= threads_) return;  // a copy engine needs no fence
            if (const auto found = proxy_fences_.find(thread); found != proxy_fences_.end()) {
                const std::vector<Epoch>& fences = found->second;
                const auto next = std::ranges::find_if(fences, [&](Epoch fence) { return fence >= epoch; });
                const bool older_forgotten = fences.size() == kMostProxyFences && next == fences.begin();
                if (next != fences.end() && (older_forgotten || order_.ordered(thread, *next, event.thread)))
                    return;
            }
            reported = true;
            const Earlier write{thread, AccessKind::store, place, others_.number()};
            report("missing_fence", read,
                   "a bulk copy that thread " + triple(index(event.thread)) + " issues reads " +
                       describe(word) + ", which thread " + triple(index(thread)) +
                       " has written without a fence.proxy.async after it",
                   &write);
        });
}

void BlockChecks::complete_copies(unsigned thread, unsigned end_of_groups) {
    std::vector<Copy>& pending = copies_[thread].pending;
    std::size_t done = 0;
    while (done < pending.size() && (end_of_groups == ~0U || pending[done].group < end_of_groups)) {
        const Copy& copy = pending[done++];
        if (SharedShadow::Region* region = shared_.find(copy.shared); region != nullptr)
            shared_.complete_copy(*region, thread, copy.shared, copy.bytes, order_);
    }
    pending.erase(pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(done));
}

void BlockChecks::on(const event::MatricesLoaded& event) {
    check_rows(AccessKind::load, event.warp, event.rows, event.matrices, event.site);
}

void BlockChecks::on(const event::MatricesStored& event) {
    check_rows(AccessKind::store, event.warp, event.rows, event.matrices, event.site);
}

void BlockChecks::check_rows(AccessKind kind, unsigned warp, const void* const* rows, unsigned matrices,
                             Site site) {
    constexpr unsigned kRowBytes = 16;
    const Place place = place_of(site);
    for (unsigned i = 0; i < 8 * matrices; ++i)
        check_by(warp * kLanes + i % kLanes, kind, address_of(rows[i]), kRowBytes, place, true);
}

// --- Findings ------------------------------------------------------------------------------------

Index BlockChecks::index(unsigned thread) const {
    return {thread % shape_.x, thread / shape_.x % shape_.y, thread / (shape_.x * shape_.y)};
}

Party BlockChecks::party(unsigned thread, ShortPlace place) const {
    if (thread >= order_.threads()) thread = issued_by_[thread % issued_by_.size()];
    return {long_place(place), block_, index(thread)};
}

void BlockChecks::report(const char* kind, const Access& access, const std::string& message,
                         const Earlier* earlier) {
    std::optional<Party> other;
    if (earlier != nullptr) other = party(earlier->thread, earlier->place);
    launch_->findings().add(kind, party(access.thread, access.place), other,
                            [&](RawFinding& finding) { finding.message = message; });
}

std::string BlockChecks::describe(Address where) {
    const Page& at = page(where);
    if (at.memory == Memory::device) {
        return "byte " + std::to_string(where - at.device->begin) + " of the allocation of " +
               bytes_text(at.device->size);
    }
    if (at.memory == Memory::variables || at.memory == Memory::constants) {
        const auto* const byte = reinterpret_cast<const char*>(where);
        const auto& all = launch_->variables();
        const auto found = std::ranges::upper_bound(all, byte, std::less<>(), &GuardedVariable::to);
        return found == all.end() || byte < found->begin
                   ? "a __device__ variable"
                   : "byte " + std::to_string(byte - found->begin) + " of the __device__ variable '" +
                         found->name + "'";
    }
    const SharedShadow::Region* region = shared_.find(where);
    if (region == nullptr) return "shared memory";
    const SharedArray& array = SharedShadow::array_of(*region);
    return "byte " + std::to_string(where - array.begin) + " of " + array.name;
}

void BlockChecks::race(const Access& access, const Earlier& earlier, Address where) {
    if (is_store(access.kind) && is_store(earlier.kind)) {
        const Address end = std::min(access.address + access.bytes, where / 4 * 4 + 4);
        SecondWrite& write = second_writes_.emplace_back(access, earlier, where);
        write.bytes = static_cast<unsigned>(end - where);
        std::memcpy(write.before.data(), reinterpret_cast<const void*>(where), write.bytes);
        return;
    }
    if (access.kind == AccessKind::load && is_atomic(earlier.kind) && is_shared(page(where).memory)) {
        constexpr std::size_t kMany = 64;
        if (load_races_.size() >= kMany) note_load_races();
        load_races_.push_back({access, earlier, where});
        return;
    }
    note_race(access, earlier, where);
}

void BlockChecks::settle_last_access(AccessKind next) {
    // A store has been performed when its thread has reached its next event. But where a structure
    // is copied from memory to memory, g++ announces the store before the load, and performs both
    // after that: what follows the load decides.
    if (!second_writes_.empty() && next == AccessKind::load && !second_writes_waited_) {
        second_writes_waited_ = true;
    } else if (!second_writes_.empty()) {
        second_writes_waited_ = false;
        settle_second_writes(
            [](const SecondWrite& write) { return reinterpret_cast<const void*>(write.where); });
    }
    if (const Address byte = std::exchange(volatile_load_, 0); byte != 0)
        after_atomic(AccessKind::volatile_load, reinterpret_cast<const void*>(byte), __ATOMIC_RELAXED);
}

void BlockChecks::note_second_writes() {
    if (!second_writes_.empty())
        note_race(second_writes_[0].access, second_writes_[0].earlier, second_writes_[0].where);
    second_writes_.clear();
}

void BlockChecks::settle_second_writes(const std::function<const void*(const SecondWrite&)>& after) {
    const auto changed = std::ranges::find_if(second_writes_, [&](const SecondWrite& write) {
        return std::memcmp(write.before.data(), after(write), write.bytes) != 0;
    });
    if (changed != second_writes_.end()) note_race(changed->access, changed->earlier, changed->where);
    second_writes_.clear();
}

void BlockChecks::note_race(const Access& access, const Earlier& earlier, Address where) {
    const Memory memory = page(where).memory;
    const bool between_blocks = !is_shared(memory) && earlier.block != others_.number();
    Party other = party(earlier.thread, earlier.place);
    if (between_blocks) other.block = launch_->block(earlier.block);
    const Party self = party(access.thread, access.place);
    const bool no_acquire = between_blocks && has_loaded(access.thread, earlier);
    static const std::string kNoAcquire =
        ": behind the atomic access that stands between the two, there is no __threadfence() and no "
        "memory_order_acquire";
    launch_->findings().add(
        between_blocks ? "race_between_blocks" : "race", self, other, [&](RawFinding& finding) {
            const auto name_of = [&](const Party& party) {
                return (between_blocks ? "block " + triple(party.block) + ", " : std::string()) + "thread " +
                       triple(party.thread);
            };
            finding.message = describe(where) + ": " + verb(earlier.kind) + " by " + name_of(other) + ", " +
                              verb(access.kind) + " by " + name_of(self) + ", in no order" +
                              (no_acquire ? kNoAcquire : advice(earlier.kind, access.kind, between_blocks));
        });
}

void BlockChecks::uninitialised(const Access& access, Address where) {
    if (exchange_ != 0) {
        unwritten_exchanges_.push_back({exchange_, access, where});
        return;
    }
    report("uninitialised_read", access,
           std::string(verb(access.kind)) + " of " + bytes_text(access.bytes) + ", but nothing has written " +
               describe(where));
}

void BlockChecks::note_exchange(unsigned number) {
    const auto found = std::ranges::find(unwritten_exchanges_, number, &UnwrittenExchange::number);
    if (found == unwritten_exchanges_.end()) return;
    const UnwrittenExchange exchange = *found;
    unwritten_exchanges_.erase(found);
    uninitialised(exchange.access, exchange.where);
}

void BlockChecks::missing_wait(const Access& access, const Earlier& copy, Address where) {
    const bool own = copy.thread == access.thread;
    report("missing_wait", access,
           std::string(verb(access.kind)) + " of " + bytes_text(access.bytes) + " by thread " +
               triple(index(access.thread)) + " at " + describe(where) + ", where a copy that " +
               (own ? "it" : "thread " + triple(index(copy.thread))) + " has issued is pending",
           &copy);
}

}  // namespace cuda_on_cpu::inspector
