// Bilinear resize of planes into memory of the caller.
#pragma once

#include <cstddef>

namespace latentkit {

/* All sizes above 0. Throws std::bad_alloc. */
void resize_planes(float *out, const float *x, size_t planes, size_t in_h, size_t in_w, size_t out_h, size_t out_w);

}  // namespace latentkit
