// The file that contains an instruction and its line table.
#pragma once

#include <string>

namespace cuda_on_cpu {

// A path that another process can open, independent of the current directory and of the name by
// which the program was started; "": there is none. Reads a system file: not for signal handlers.
std::string file_of_image(const void* instruction);

}  // namespace cuda_on_cpu
