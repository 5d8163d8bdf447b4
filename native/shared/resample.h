/* A bilinear resize, for vectors and single floats; the including file defines fused for them before. */
#pragma once

#include "shared/inline.h"

namespace {

/* w0 * first + w1 * second, the second term added by fma, as PyTorch's kernel rounds. */
template <class V, class W>
LK_INLINE V weighted(V first, W w0, V second, W w1) {
  return fused(second, w1, first * w0);
}

}  // namespace
