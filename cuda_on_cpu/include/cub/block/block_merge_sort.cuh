#pragma once

#include "cuda_on_cpu/cub/block.h"
