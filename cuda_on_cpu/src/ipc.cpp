#include "ipc.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "cuda_runtime_api.h"
#include "errors.hpp"
#include "memory.hpp"
#include "pages.hpp"
#include "stream.hpp"

namespace cuda_on_cpu {
namespace {

constexpr std::uint64_t kMemory = 0x794d7570436e4f43;
constexpr std::uint64_t kEvent = 0x74457570436e4f43;

ExportedFile exported(std::uint64_t mark, int file) {
    struct stat status {};
    fstat(file, &status);
    return {.mark = mark,
            .inode = status.st_ino,
            .process = getpid(),
            .file = file,
            .offset = 0,
            .size = static_cast<std::uint64_t>(status.st_size)};
}

// The file of a handle; -1: there is none, and a sentence says so.
int open_file(const char* function, const void* handle, std::uint64_t mark, ExportedFile* what) {
    std::memcpy(what, handle, sizeof *what);
    if (what->mark != mark) {
        refuse(cudaErrorInvalidResourceHandle, function, "this handle is none that a process has exported");
        return -1;
    }
    if (what->process == getpid()) {
        refuse(cudaErrorDeviceUninitialized, function,
               "this process has exported the handle; expected a handle of another process");
        return -1;
    }
    const std::string path = "/proc/" + std::to_string(what->process) + "/fd/" + std::to_string(what->file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat status {};
    if (file >= 0 && fstat(file, &status) == 0 && status.st_ino == what->inode) return file;
    if (file >= 0) close(file);
    refuse(cudaErrorInvalidResourceHandle, function,
           "process %d, which has exported the handle, has ended or has freed what it stands for",
           what->process);
    return -1;
}

// The number of a process and when it began, since numbers are used again; 0: it has ended. One
// that its parent has not waited for yet has ended, too.
std::uint64_t identity_of_process(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t end_of_name = text.rfind(')');
    if (end_of_name == text.npos) return 0;
    std::istringstream fields(text.substr(end_of_name + 1));
    char state = 0;
    fields >> state;
    constexpr int kState = 3;  // as `man 5 proc` counts the fields
    constexpr int kStart = 22;
    std::string skipped;
    for (int field = kState + 1; field < kStart; ++field)
        fields >> skipped;
    std::uint64_t start = 0;
    if (!(fields >> start) || state == 'Z' || state == 'X') return 0;
    return static_cast<std::uint64_t>(process) << 32 | (start & 0xFFFFFFFF);
}

pid_t number_of_process(std::uint64_t identity) {
    return static_cast<pid_t>(identity >> 32);
}

struct Imported {
    std::uint64_t inode;
    char* mapping;  // with a guard page on each side
    std::size_t mapping_size;
    std::size_t size;
    int count = 1;
};

std::mutex mutex;
std::map<void*, Imported>& imported() {
    static auto& all = *new std::map<void*, Imported>;
    return all;
}

}  // namespace

cudaError_t export_memory(const char* function, void* pointer, void* handle) {
    if (handle == nullptr) return refuse(cudaErrorInvalidValue, function, "the handle to set is null");
    const auto allocation = find_allocation(pointer);
    if (!allocation || allocation->freed || allocation->mapping == nullptr ||
        allocation->type != cudaMemoryTypeDevice || allocation->begin != pointer)
        return refuse(cudaErrorInvalidValue, function,
                      "pointer %p is not the start of device memory that this process has allocated",
                      pointer);
    wait_for_all_streams();
    const int file = share_allocation(allocation->begin);
    if (file < 0) return refuse(cudaErrorMemoryAllocation, function, "%zu bytes", allocation->size);
    ExportedFile what = exported(kMemory, file);
    what.offset = static_cast<std::uint64_t>(allocation->begin - allocation->mapping) - page_size();
    what.size = allocation->size;
    std::memset(handle, 0, CUDA_IPC_HANDLE_SIZE);
    std::memcpy(handle, &what, sizeof what);
    return cudaSuccess;
}

cudaError_t import_memory(const char* function, const void* handle, void** pointer) {
    if (pointer == nullptr) return refuse(cudaErrorInvalidValue, function, "the pointer to set is null");
    ExportedFile what{};
    const int file = open_file(function, handle, kMemory, &what);
    if (file < 0) return cudaPeekAtLastError();
    const std::scoped_lock lock(mutex);
    for (auto& [known, memory] : imported()) {
        if (memory.inode != what.inode) continue;
        close(file);
        ++memory.count;
        *pointer = known;
        return cudaSuccess;
    }
    const std::size_t pages = round_up_to_pages(what.offset + what.size);
    const std::size_t mapping_size = pages + 2 * page_size();
    void* const around =
        mmap(nullptr, mapping_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char* const mapping = static_cast<char*>(around);
    const bool is_mapped = around != MAP_FAILED && mmap(mapping + page_size(), pages, PROT_READ | PROT_WRITE,
                                                        MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    close(file);
    if (!is_mapped) {
        if (around != MAP_FAILED) munmap(around, mapping_size);
        return refuse(cudaErrorMemoryAllocation, function, "%llu bytes",
                      static_cast<unsigned long long>(what.size));
    }
    char* const begin = mapping + page_size() + what.offset;
    imported()[begin] = {what.inode, mapping, mapping_size, what.size};
    add_range(begin, what.size, cudaMemoryTypeDevice);
    expect_concurrency();
    *pointer = begin;
    return cudaSuccess;
}

bool close_memory(void* pointer) {
    const std::scoped_lock lock(mutex);
    const auto found = imported().find(pointer);
    if (found == imported().end()) return false;
    if (--found->second.count > 0) return true;
    remove_range(static_cast<char*>(pointer));
    munmap(found->second.mapping, found->second.mapping_size);
    imported().erase(found);
    return true;
}

std::shared_ptr<SharedEvent> SharedEvent::make() {
    const int file = memfd_create("cuda_on_cpu event", MFD_CLOEXEC);
    void* memory = MAP_FAILED;
    if (file >= 0 && ftruncate(file, sizeof(SharedRecords)) == 0)
        memory = mmap(nullptr, sizeof(SharedRecords), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED)
        return std::shared_ptr<SharedEvent>(new SharedEvent(file, static_cast<SharedRecords*>(memory)));
    if (file >= 0) close(file);
    return nullptr;
}

std::shared_ptr<SharedEvent> SharedEvent::open(const char* function, const void* handle) {
    ExportedFile what{};
    const int file = open_file(function, handle, kEvent, &what);
    if (file < 0) return nullptr;
    void* const memory = mmap(nullptr, sizeof(SharedRecords), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED)
        return std::shared_ptr<SharedEvent>(new SharedEvent(file, static_cast<SharedRecords*>(memory)));
    close(file);
    return nullptr;
}

SharedEvent::~SharedEvent() {
    munmap(records_, sizeof(SharedRecords));
    close(file_);
}

void SharedEvent::tell(void* handle) const {
    const ExportedFile what = exported(kEvent, file_);
    std::memset(handle, 0, CUDA_IPC_HANDLE_SIZE);
    std::memcpy(handle, &what, sizeof what);
}

std::uint64_t SharedEvent::issue() {
    static const std::uint64_t self = identity_of_process(getpid());
    records_->recorder = self;
    return records_->issued.fetch_add(1) + 1;
}

void SharedEvent::reach(std::uint64_t record) {
    std::uint64_t reached = records_->reached;
    while (reached < record && !records_->reached.compare_exchange_weak(reached, record)) {
    }
}

bool SharedEvent::is_lost(std::uint64_t record) const {
    if (has_reached(record)) return false;
    const std::uint64_t recorder = records_->recorder;
    return recorder != identity_of_process(number_of_process(recorder)) && !has_reached(record);
}

cudaError_t SharedEvent::wait_for(const char* function, std::uint64_t record) const {
    using Clock = std::chrono::steady_clock;
    constexpr auto kBetweenLooks = std::chrono::milliseconds(20);
    for (auto next_look = Clock::now(); !has_reached(record);) {
        if (Clock::now() >= next_look) {
            if (is_lost(record)) return refuse_lost(function);
            next_look = Clock::now() + kBetweenLooks;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return cudaSuccess;
}

cudaError_t SharedEvent::refuse_lost(const char* function) const {
    return refuse(cudaErrorIllegalState, function,
                  "process %d has recorded the event, and has ended before its work in front of the event "
                  "did; expected a process that waits for its streams before it ends",
                  number_of_process(records_->recorder));
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
    return export_memory(__func__, pointer, handle);
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned flags) {
    if (flags != cudaIpcMemLazyEnablePeerAccess)
        return refuse(cudaErrorInvalidValue, __func__,
                      "flags are %u; expected cudaIpcMemLazyEnablePeerAccess", flags);
    return import_memory(__func__, &handle, pointer);
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
    wait_for_all_streams();
    if (close_memory(pointer)) return cudaSuccess;
    return refuse(cudaErrorInvalidValue, __func__, "pointer %p is not of cudaIpcOpenMemHandle", pointer);
}
