// All of it is in cuda_pipeline_primitives.h here.
#pragma once

#include "cuda_pipeline_primitives.h"
