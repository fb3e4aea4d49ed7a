// CUB with the interface of NVIDIA's, over the stand-in: warp-, block- and device-wide primitives.
#pragma once

// Programs count on what NVIDIA's headers bring along.
#include <chrono>
#include <iostream>
#include <map>
#include <mutex>
#include <set>

#include "cuda_on_cpu/cub/block.h"
#include "cuda_on_cpu/cub/block_neighbours.h"
#include "cuda_on_cpu/cub/device.h"
#include "cuda_on_cpu/cub/device_more.h"
#include "cuda_on_cpu/cub/types.h"
#include "cuda_on_cpu/cub/warp.h"
