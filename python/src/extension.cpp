// The module _extension: the kernels of the days for Python. Tensors in, tensors out; Python never
// sees memory that is allocated here. The functions that users call are in cuda_day_by_day/.
#include <nanobind/nanobind.h>

#include "call.hpp"
#include "common/bench/machine.hpp"
#include "modules.hpp"
#include "range.hpp"

NB_MODULE(_extension, module) {
    using namespace course_python;
    module.attr("kernels_run_on") = course::is_cpu_stand_in() ? "cpu" : "gpu";
    module.attr("has_nvtx") = has_nvtx();
    module.def("launching_ns", &Call::launching);
    define_quantization(module);
    define_rows(module);
    define_products(module);
    define_attention(module);
    define_layers(module);
}
