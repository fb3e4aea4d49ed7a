#include "fault.hpp"

#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>

#include "block.hpp"
#include "current_device.hpp"
#include "device_heap.hpp"
#include "environment.hpp"
#include "fibre.hpp"
#include "host_shadows.hpp"
#include "kernel_line.hpp"
#include "launch_state.hpp"
#include "managed_watch.hpp"
#include "memory.hpp"
#include "pages.hpp"
#include "peer_guard.hpp"
#include "shared_arena.hpp"

#ifdef CUDA_ON_CPU_ASAN

// The sanitizer has its own handler, with a better report.
void cuda_on_cpu::prepare_thread_for_faults() {}
bool cuda_on_cpu::leave_kernel(void*, void (*)()) {
    return false;
}
int cuda_on_cpu::frames_in_handler(void**, int) {
    return 0;
}
cuda_on_cpu::CopyWatch::CopyWatch(const void*, const void*, std::size_t) {}
cuda_on_cpu::CopyWatch::~CopyWatch() = default;

#else

namespace cuda_on_cpu {
namespace {

constexpr std::size_t kStackSize = 256 * 1024;

// The fault as the handler recorded it. The report is made outside the handler.
struct Fault {
    int signal;
    int code;
    void* address;
    // The instruction that faulted, followed by its callers if it is not part of the program.
    std::array<void*, 16> instructions;
    std::size_t depth;
    void* stack_pointer;
};
constinit thread_local Fault fault{};
constinit thread_local char* report_stack = nullptr;
constinit thread_local sigjmp_buf* unwinding = nullptr;  // where to continue if unwinding fails

// The copy that the host is making; 0 bytes: none.
struct HostCopy {
    const char* to;
    const char* from;
    std::size_t size;
};
constinit thread_local HostCopy host_copy{};

// Runs in the handler, so it uses only functions that a handler may call.
bool report_host_copy(const void* address) {
    const auto* const byte = static_cast<const char*>(address);
    for (const char* const begin : {host_copy.from, host_copy.to}) {
        if (byte < begin || byte >= begin + host_copy.size) continue;
        std::array<char, 320> line;
        const int length = std::snprintf(
            line.data(), line.size(),
            "cuda_on_cpu: a copy of %zu bytes %s host memory at %p leaves that memory after at most %td "
            "bytes; expected %zu bytes that the program may access\n",
            host_copy.size, begin == host_copy.from ? "from" : "to", static_cast<const void*>(begin),
            byte - begin, host_copy.size);
        if (length > 0)
            static_cast<void>(!write(STDERR_FILENO, line.data(), static_cast<std::size_t>(length)));
        host_copy.size = 0;
        return true;
    }
    return false;
}

// "..., from a kernel of device 0, which has no access to it"; empty if that is not the reason.
std::string describe_peer(const void* address) {
    const int device = current_device();
    const auto allocation = find_allocation(address);
    const auto* byte = static_cast<const char*>(address);
    if (!several_devices() || !allocation || allocation->freed || byte < allocation->begin ||
        byte >= allocation->begin + allocation->size || may_access(device, *allocation))
        return {};
    const std::string owner = std::to_string(allocation->device);
    const std::string here = std::to_string(device);
    return ", from a kernel of device " + here + ", which has no access to it: expected " +
           (allocation->of_pool
                ? "cudaMemPoolSetAccess() of the pool, for device " + here
                : "cudaDeviceEnablePeerAccess(" + owner + ", 0) while device " + here + " is current");
}

// "a null pointer: ...", "0x28, 40 bytes after a null pointer: ..."; empty for other addresses.
std::string describe_null(const void* address) {
    constexpr std::intptr_t kNear = 1 << 16;  // Linux maps nothing there
    const auto bytes = reinterpret_cast<std::intptr_t>(address);
    if (bytes <= -kNear || bytes >= kNear) return {};
    char text[64] = "a null pointer";
    if (bytes != 0)
        std::snprintf(text, sizeof text, "%p, %jd bytes %s a null pointer", address,
                      static_cast<std::intmax_t>(bytes < 0 ? -bytes : bytes), bytes < 0 ? "before" : "after");
    if (heap_was_full()) {
        return std::string(text) + ": the heap of " + std::to_string(heap_size()) +
               " bytes, from which kernels allocate, was full; expected a check of the pointer, or "
               "cudaDeviceSetLimit(cudaLimitMallocHeapSize, bytes) before the first launch";
    }
    return std::string(text) + ": was this array not allocated, or its address not passed?";
}

[[noreturn]] void report_fault() {
    BlockRunner& runner = block_runner();
    cudaError_t error = cudaErrorIllegalAddress;
    std::string what;
    char address[32];
    std::snprintf(address, sizeof address, "%p", fault.address);
    if (fault.signal == SIGFPE) {
        error = cudaErrorLaunchFailure;
        what =
            "integer division by zero, or of the smallest number by -1; a GPU would go on with an undefined "
            "value";
    } else if (runner.scheduler().below_stack(fault.stack_pointer) ||
               runner.stacks().in_guard_page(fault.address)) {
        const bool is_full = runner.scheduler().below_stack(fault.stack_pointer) ||
                             runner.scheduler().below_stack(fault.address);
        error = is_full ? cudaErrorHardwareStackError : cudaErrorIllegalAddress;
        what = is_full ? "this thread's stack is full: local arrays too large, or a recursion too deep; "
                         "a thread has " +
                             std::to_string(runner.scheduler().stack_size() >> 10) +
                             " KB here, and up to 512 KB on a GPU"
                       : kDamagedStack;
    } else if (fault.signal == SIGSEGV && fault.code == SI_KERNEL) {
        error = cudaErrorMisalignedAddress;
        what =
            "misaligned access: a vector type needs an address that is a multiple of its size. Or a pointer "
            "that was overwritten: is a local array written past its end?";
    } else if (const std::string null = describe_null(fault.address); !null.empty()) {
        what = "illegal access to " + null;
    } else {
        what = std::string("illegal access to ") + address;
        if (const std::string shadow = describe_shadow(fault.address); !shadow.empty()) {
            what += ", " + shadow;
        } else if (const std::string near = describe_address(fault.address); !near.empty()) {
            what += ", " + near + describe_peer(fault.address);
        } else if (const std::string index = describe_wild_index(fault.address); !index.empty()) {
            what += ", " + index;
        } else if (runner.beside_dynamic_shared(fault.address)) {
            what += ", outside the block's dynamic shared memory";
        } else if (beside_static_shared(fault.address)) {
            what += ", not far from the block's __shared__ variables: is an index too large, or negative?";
        }
    }
    if (const Site site = runner.async().take_reading_site(); site.line > 0) runner.fail(error, what, site);
    const std::string source = kernel_line(std::span(fault.instructions).first(fault.depth));
    runner.fail(error, what + (source.empty() ? "" : ", in " + source), Site{"", 0});
}

struct Handled {
    int signal;
    struct sigaction before;  // what the program did before
};
constinit Handled handled[] = {{SIGSEGV, {}}, {SIGBUS, {}}, {SIGFPE, {}}};

void note_fault(int signal, const siginfo_t* info, const void* context) {
    const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    fault = {signal,
             info->si_code,
             info->si_addr,
             {reinterpret_cast<void*>(registers.gregs[REG_RIP])},
             1,
             reinterpret_cast<void*>(registers.gregs[REG_RSP])};
#elif defined(__aarch64__)
    fault = {signal,
             info->si_code,
             info->si_addr,
             {reinterpret_cast<void*>(registers.pc)},
             1,
             reinterpret_cast<void*>(registers.sp)};
#else
#error "cuda_on_cpu knows the signal context of x86-64 and arm64 only"
#endif
}

// If a system function such as memcpy faults, the reported line is that of the call.
void note_callers() {
    std::array<void*, 32> frames;
    const int count = frames_in_handler(frames.data(), static_cast<int>(frames.size()));
    bool is_behind = false;
    for (int i = 0; i < count && fault.depth < fault.instructions.size(); ++i) {
        if (is_behind) fault.instructions[fault.depth++] = static_cast<char*>(frames[i]) - 1;
        is_behind = is_behind || frames[i] == fault.instructions[0];
    }
}

// A call of an address that holds no function: the line is that of the call.
void note_caller_of_nothing(const void* context) {
    const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    const BlockRunner& runner = block_runner();
    const auto* const stack = reinterpret_cast<const char*>(registers.gregs[REG_RSP]);
    if (stack < runner.stacks().begin() || stack >= runner.stacks().end()) return;
    char* return_address = nullptr;
    std::memcpy(&return_address, stack, sizeof return_address);
#else
    char* const return_address = reinterpret_cast<char*>(registers.regs[30]);
#endif
    if (in_program(return_address)) fault.instructions[0] = return_address - 1;
}

// Did a write fault?
bool is_write(const mcontext_t& registers) {
#if defined(__x86_64__)
    constexpr greg_t kWrite = 2;  // in a page fault's error code
    return (registers.gregs[REG_ERR] & kWrite) != 0;
#else
    constexpr std::uint64_t kWrite = 1 << 6;  // in the exception's syndrome, which is one of the records
    for (const auto* record = reinterpret_cast<const _aarch64_ctx*>(registers.__reserved); record->magic != 0;
         record =
             reinterpret_cast<const _aarch64_ctx*>(reinterpret_cast<const char*>(record) + record->size)) {
        if (record->magic == ESR_MAGIC)
            return (reinterpret_cast<const esr_context*>(record)->esr & kWrite) != 0;
    }
    return false;
#endif
}

// At least how many bytes the instruction that faulted accesses.
std::size_t accessed_bytes(const mcontext_t& registers) {
#if defined(__x86_64__)
    const auto* code = reinterpret_cast<const unsigned char*>(registers.gregs[REG_RIP]);
    bool is_word = false, is_double = false;
    for (; *code == 0x66 || *code == 0xF2 || *code == 0xF3; ++code) {
        is_word = is_word || *code == 0x66;
        is_double = is_double || *code == 0xF2;
    }
    if (*code == 0xC4 || *code == 0xC5) {  // VEX: the last byte before the opcode has the prefix
        const bool is_long = *code == 0xC4;
        const unsigned fields = code[is_long ? 2 : 1];
        return (fields & 3) == 3 || (is_long && (fields & 0x80) != 0) ? 8 : 4;
    }
    if (*code >= 0x40 && *code < 0x50) is_double = is_double || (*code++ & 8) != 0;
    if (*code == 0x0F) {
        const unsigned operation = code[1];
        if (operation == 0xB6 || operation == 0xBE) return 1;  // movzx, movsx
        if (operation == 0xB7 || operation == 0xBF) return 2;
        return is_double ? 8 : 4;
    }
    const bool of_bytes = *code % 2 == 0 && (*code < 0x40 || *code >= 0x80);
    return of_bytes ? 1 : is_double ? 8 : is_word ? 2 : 4;
#else
    std::uint32_t code;
    std::memcpy(&code, reinterpret_cast<const void*>(registers.pc), sizeof code);
    const bool is_pair = (code >> 27 & 7) == 5;
    return is_pair ? std::size_t{4} << (code >> 31) : std::size_t{1} << (code >> 30);
#endif
}

// Reports that the host has not waited for a kernel. The program goes on.
void report_early_access(const char* kernel, bool writes) {
    const std::string near = try_to_describe_address(fault.address);
    const std::string source = kernel_line(std::span(fault.instructions).first(fault.depth));
    const std::string line = std::string("cuda_on_cpu: code of the host ") + (writes ? "writes" : "reads") +
                             " managed memory that kernel " + kernel + " has changed" +
                             (near.empty() ? "" : ", " + near) + (source.empty() ? "" : ", in " + source) +
                             ": nothing has waited for the kernel, so on a GPU it may not have run yet; "
                             "expected cudaDeviceSynchronize() in between\n";
    static_cast<void>(!write(STDERR_FILENO, line.data(), line.size()));
}

// Did the host access managed memory that it may access?
bool may_go_on(int signal, const siginfo_t* info, const void* context) {
    if (!environment().watches_managed || signal != SIGSEGV || info->si_code != SEGV_ACCERR) return false;
    const mcontext_t& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
    const ManagedAccess access = access_changed_page(info->si_addr, accessed_bytes(registers));
    if (access.kernel == nullptr) return access.goes_on;
    note_fault(signal, info, context);
    note_callers();
    report_early_access(access.kernel, is_write(registers));
    return true;
}

// Reports that the host itself has accessed memory of the device, or memory outside an allocation.
void report_host_access(bool writes) {
    constexpr const char* kFree =
        ": are free() or delete called in place of cudaFree()?\n";  // they read what lies in front
    const bool of_device = is_closed(fault.address);
    const std::string near = try_to_describe_address(fault.address);
    if (near.empty()) return;
    const std::string source = kernel_line(std::span(fault.instructions).first(fault.depth));
    char address[32];
    std::snprintf(address, sizeof address, "%p, ", fault.address);
    std::string line = std::string("cuda_on_cpu: code of the host ") + (writes ? "writes " : "reads ") +
                       (of_device ? "device memory at " : "") + address + near;
    if (!source.empty()) line += ", in " + source;
    if (near.find(" before ") != std::string::npos)
        line += kFree;
    else if (!of_device)
        line += ": an index outside it, or a pointer that was freed\n";
    else
        line +=
            ": only kernels and copies have access to it; expected cudaMemcpy(), or memory of "
            "cudaMallocManaged()\n";
    static_cast<void>(!write(STDERR_FILENO, line.data(), line.size()));
}

void handle(int signal, siginfo_t* info, void* context) {
    if (unwinding != nullptr) siglongjmp(*unwinding, 1);
    const bool of_kernel = report_stack != nullptr && in_kernel();
    if (several_devices() && signal == SIGSEGV && info->si_code == SEGV_ACCERR &&
        (of_kernel || !is_closed(info->si_addr)) &&
        guard_fault(info->si_addr, of_kernel ? current_device() : -1) == GuardFault::retry)
        return;
    if (!of_kernel && !is_closed(info->si_addr) && may_go_on(signal, info, context)) return;
    if (!of_kernel) {
        note_fault(signal, info, context);
        if (!report_host_copy(info->si_addr) && signal != SIGFPE) {
            note_callers();
            report_host_access(is_write(static_cast<const ucontext_t*>(context)->uc_mcontext));
        }
        // Not caused by a kernel: restore the program's own action, which handles the signal when
        // the instruction is repeated.
        for (const Handled& each : handled)
            if (each.signal == signal) sigaction(signal, &each.before, nullptr);
        return;
    }
    note_fault(signal, info, context);
    if (fault.instructions[0] == fault.address) note_caller_of_nothing(context);
    // If the program itself faults, its callers are not recorded, because a damaged stack would
    // give wrong ones.
    if (!in_program(fault.instructions[0])) note_callers();
    leave_kernel(context, report_fault);
}

char* map_stack() {
    void* memory =
        mmap(nullptr, kStackSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

}  // namespace

int frames_in_handler(void** frames, int most) {
    sigjmp_buf here;
    if (sigsetjmp(here, 1) != 0) {
        unwinding = nullptr;
        return 0;
    }
    unwinding = &here;
    const int count = backtrace(frames, most);
    unwinding = nullptr;
    return count;
}

bool leave_kernel(void* signal_context, void (*function)()) {
    if (report_stack == nullptr) return false;
    auto& registers = static_cast<ucontext_t*>(signal_context)->uc_mcontext;
    // The report runs on a stack that is certainly intact.
    const auto stack = reinterpret_cast<std::uintptr_t>(report_stack + kStackSize) / 16 * 16;
#if defined(__x86_64__)
    registers.gregs[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(function));
    registers.gregs[REG_RSP] = static_cast<greg_t>(stack - 8);  // as if called
#elif defined(__aarch64__)
    registers.pc = reinterpret_cast<std::uintptr_t>(function);
    registers.sp = stack;
#endif
    return true;
}

void prepare_thread_for_faults() {
    if (report_stack != nullptr) return;
    static const bool installed = [] {
        struct sigaction action {};
        action.sa_sigaction = handle;
        // The signal is not blocked while the handler runs, because the handler may never return to
        // the faulting code.
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        for (Handled& each : handled)
            sigaction(each.signal, &action, &each.before);
        void* frame = nullptr;
        backtrace(&frame, 1);  // the first call allocates, which the handler must not
        return true;
    }();
    static_cast<void>(installed);
    stack_t alternative{};
    alternative.ss_sp = map_stack();
    alternative.ss_size = kStackSize;
    if (alternative.ss_sp != nullptr) sigaltstack(&alternative, nullptr);
    report_stack = map_stack();
}

CopyWatch::CopyWatch(const void* to, const void* from, std::size_t size) {
    prepare_thread_for_faults();
    host_copy = {static_cast<const char*>(to), static_cast<const char*>(from), size};
}

CopyWatch::~CopyWatch() {
    host_copy.size = 0;
}

}  // namespace cuda_on_cpu

#endif
