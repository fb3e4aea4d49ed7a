#pragma once

#include "cuda_on_cpu/cub/types.h"
