// All kernels: one unit, so that one run of the compiler makes the one image that the library carries.
#include "kernels/elementwise.h"
#include "kernels/noise.h"
#include "kernels/planes.h"
#include "kernels/reduce.h"
