// Merges the two outputs of the preprocessor for a .cu file: the host's text, without
// __CUDA_ARCH__, and the device's text, with it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "translate.hpp"

namespace translator {

// Merges declaration by declaration: a host function has the host's text, a device function the
// device's, and a `__host__ __device__` function has both, one of which is chosen at run time. A
// declaration that is in one text only is kept, unless it is a device function of the host's text.
// A constant or a type with two meanings gets a second name for device code. Line markers keep the
// line numbers. Where no rule applies, the device's text is taken and a warning is added to
// `warnings`.
std::string merge_passes(std::string_view host, std::string_view device, std::vector<Warning>& warnings);

}  // namespace translator
