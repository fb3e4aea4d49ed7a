// Compiles the instantiations that instantiations.hpp declares.
#define COURSE_INSTANTIATE
#include "instantiations.hpp"
