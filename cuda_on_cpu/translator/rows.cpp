#include "parts.hpp"

namespace translator {

void Rows::translate_kernel(const KernelBody& kernel) {
    if (!only_computes(kernel)) return;
    inline_functions();
    qualify_places({kernel.brace, closing(kernel.brace)}, "cuda_on_cpu_place_.");
    replace_in_call(kernel, ".prepare(", prepare("prepare_rows"));
    const std::string place = "[=]([[maybe_unused]] const ::cuda_on_cpu::ThreadPlace& cuda_on_cpu_place_) ";
    const std::string inlined = "__attribute__((always_inline)) ";
    replace_in_call(
        kernel, "[=]() mutable {",
        place + (dialect_ == Dialect::clang ? inlined + "mutable {" : "mutable " + inlined + "{"));
}

bool Rows::only_computes(const KernelBody& kernel) {
    if (!begin_kernel(kernel)) return false;
    const std::size_t end = closing(kernel.brace);
    for (std::size_t i = kernel.brace + 1; i < end; ++i)
        if (!is_known(i)) return false;
    return !uses_vectors_ || !has_vector_operators();
}

}  // namespace translator
