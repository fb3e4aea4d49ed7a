// What the network needs of the versions with a block per image: how much memory.
#pragma once

#include <cstddef>

namespace day33 {

std::size_t floats_of_picture();       // the results of learn_picture for one image
std::size_t floats_of_stages();        // between the stages of learn_stages, for one image
std::size_t parameters_of_pictures();  // weights and biases, each part a multiple of four

}  // namespace day33
