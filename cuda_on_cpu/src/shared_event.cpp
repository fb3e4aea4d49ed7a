#include "shared_event.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "driver_types.h"
#include "errors.hpp"
#include "exported_file.hpp"

namespace cuda_on_cpu {

namespace {

constexpr std::uint64_t kEvent = 0x74457570436e4f43;

// The number of a process combined with its start time, because numbers are reused; 0: it has
// ended. A zombie, which its parent has not waited for, has also ended, unless only its main thread
// has and others go on.
std::uint64_t identity_of_process(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    std::getline(file, text);
    const std::size_t end_of_name = text.rfind(')');
    if (end_of_name == text.npos) return 0;
    std::istringstream fields(text.substr(end_of_name + 1));
    char state = 0;
    fields >> state;
    constexpr int kState = 3;  // numbers of the fields as in `man 5 proc`
    constexpr int kThreads = 20;
    constexpr int kStart = 22;
    std::uint64_t threads = 0, start = 0;
    std::string skipped;
    for (int field = kState + 1; field <= kStart; ++field) {
        if (field == kThreads) {
            fields >> threads;
        } else if (field == kStart) {
            fields >> start;
        } else {
            fields >> skipped;
        }
    }
    const bool has_ended = state == 'X' || (state == 'Z' && threads <= 1);
    return fields && !has_ended ? static_cast<std::uint64_t>(process) << 32 | (start & 0xFFFFFFFF) : 0;
}

pid_t number_of_process(std::uint64_t identity) {
    return static_cast<pid_t>(identity >> 32);
}

}  // namespace

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
