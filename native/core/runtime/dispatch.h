// The set of instructions in use, and its table of kernels.
#pragma once

#include "kernels/table.h"

namespace latentkit {

enum class Isa { baseline, avx2, avx512 };

Isa isa();
const lk_kernels &kernels();

}  // namespace latentkit
