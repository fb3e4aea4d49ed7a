#pragma once

#include "cuda_on_cpu/cub/device_more.h"
