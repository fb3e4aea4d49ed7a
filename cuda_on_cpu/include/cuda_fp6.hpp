// All of it is in cuda_fp6.h here.
#pragma once

#include "cuda_fp6.h"
