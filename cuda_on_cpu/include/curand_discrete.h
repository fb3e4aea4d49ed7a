// All of it is in curand_kernel.h here.
#pragma once

#include "curand_kernel.h"
