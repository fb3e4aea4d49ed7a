// The parts of the module _extension, each in its own file.
#pragma once

#include <nanobind/nanobind.h>

namespace course_python {

void define_quantization(nanobind::module_& module);  // days 30 to 32
void define_rows(nanobind::module_& module);          // days 16, 19, 21 and 48
void define_products(nanobind::module_& module);      // days 45 to 48
void define_attention(nanobind::module_& module);     // days 25, 26, 29 and 34
void define_layers(nanobind::module_& module);        // days 28 and 35

}  // namespace course_python
