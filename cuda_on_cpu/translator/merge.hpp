// Joins the two texts of a .cu file that the preprocessor makes: without __CUDA_ARCH__, as host
// code sees it, and with it, as device code does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "translate.hpp"

namespace translator {

// Declaration by declaration: a host function has the host's text, a device function the device's,
// and a `__host__ __device__` function has both, one of which is chosen at run time. A declaration
// that is in one text only is kept, unless it is a device function of the host's text. A constant
// or a type with two meanings gets a second name for device code. Line markers keep all lines.
// Where no rule decides, the device's text is taken and `warnings` says so.
std::string merge_passes(std::string_view host, std::string_view device, std::vector<Warning>& warnings);

}  // namespace translator
