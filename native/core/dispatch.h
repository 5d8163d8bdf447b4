// The table of kernels in use.
#ifndef LATENTKIT_DISPATCH_H
#define LATENTKIT_DISPATCH_H

#include "kernels/table.h"

namespace latentkit {

const lk_kernels &kernels();

}  // namespace latentkit

#endif
