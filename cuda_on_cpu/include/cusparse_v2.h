// Older programs include this name.
#pragma once

#include "cusparse.h"
