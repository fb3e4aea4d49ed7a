// The file that holds an instruction's code and its line table.
#pragma once

#include <string>

namespace cuda_on_cpu {

// A path for another process, whatever directory is current, and whatever name the program was
// started by; "": there is none. Reads a file of the system: not for signal handlers.
std::string file_of_image(const void* instruction);

}  // namespace cuda_on_cpu
