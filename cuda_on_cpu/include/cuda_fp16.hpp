// All of it is in cuda_fp16.h here.
#pragma once

#include "cuda_fp16.h"
