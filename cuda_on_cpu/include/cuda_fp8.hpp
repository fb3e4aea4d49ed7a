// All of it is in cuda_fp8.h here.
#pragma once

#include "cuda_fp8.h"
