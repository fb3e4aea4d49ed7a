// A context is a fiber of emscripten. A thread that waits has two stacks: the one in memory, and
// the WebAssembly locals of the functions that it is in, which no program can address. Asyncify
// saves these in `frames` when a thread is left, by returning from all of these functions, and
// calls them again when the thread goes on.
#include <emscripten/fiber.h>

#include <cstdlib>
#include <new>

#include "boost/context/detail/fcontext.hpp"
#include "page_host.hpp"

namespace boost::context::detail {
namespace {

constexpr std::size_t kFrames = 8 << 10;

struct alignas(16) Context {
    emscripten_fiber_t fiber;
    void (*entry)(transfer_t);
    alignas(16) char frames[kFrames];
};

Context first;  // of the stack that the worker has called into
Context* current = nullptr;
transfer_t arrival;

void begin(void* context) {
    static_cast<Context*>(context)->entry(arrival);
    std::abort();
}

}  // namespace

// The context takes the upper end of the stack. A thread that renews its own stack is still using
// it.
fcontext_t make_fcontext(void* stack_top, std::size_t size, void (*entry)(transfer_t)) {
    char* const bottom = static_cast<char*>(stack_top) - size;
    void* place = bottom + (size - sizeof(Context)) / alignof(Context) * alignof(Context);
    const std::size_t left = static_cast<char*>(place) - bottom;
    if (place == current) place = std::aligned_alloc(alignof(Context), sizeof(Context));
    auto* const context = new (place) Context;
    context->entry = entry;
    emscripten_fiber_init(&context->fiber, begin, context, bottom, left, context->frames, kFrames);
    return context;
}

transfer_t jump_fcontext(fcontext_t to, void* data) {
    if (current == nullptr) {
        emscripten_fiber_init_from_current_context(&first.fiber, first.frames, kFrames);
        current = &first;
    }
    ++cuda_on_cpu::run_seen.switches;
    Context* const from = current;
    current = static_cast<Context*>(to);
    arrival = {from, data};
    emscripten_fiber_swap(&from->fiber, &current->fiber);
    return arrival;
}

}  // namespace boost::context::detail
