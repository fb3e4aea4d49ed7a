#pragma once

#include "cuda_on_cpu/cub/block_neighbours.h"
