// All of it is in mma.h here.
#pragma once

#include "../mma.h"
