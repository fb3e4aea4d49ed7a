// Contexts of Boost, as far as cuda_on_cpu/src/fibre.hpp uses them, over emscripten's fibers.
#pragma once

#include <cstddef>

namespace boost::context::detail {

using fcontext_t = void*;

struct transfer_t {
    fcontext_t fctx;
    void* data;
};

transfer_t jump_fcontext(fcontext_t to, void* data);
fcontext_t make_fcontext(void* stack_top, std::size_t size, void (*entry)(transfer_t));

}  // namespace boost::context::detail
