// Includes a FIFO, which a compiler would wait at.
// fifo: pipe.h
// expect: not yet.*pipe.h: No such file
#include "pipe.h"
