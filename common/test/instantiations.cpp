// The instantiations that instantiations.hpp promises.
#define COURSE_INSTANTIATE
#include "instantiations.hpp"
