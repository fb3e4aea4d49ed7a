// All of it is in nvtx3/nvToolsExt.h.
#pragma once

#include "nvtx3/nvToolsExt.h"
