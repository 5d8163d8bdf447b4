// The methods of engine_resize, each in a file of its own. Sizes are checked; all of them throw std::bad_alloc.
#pragma once

#include "engine.h"
#include "pictures.h"

namespace latentkit {

void resize_nearest(float *out, const float *x, const Pictures &of);
void resize_bilinear(float *out, const float *x, const Pictures &of);
void resize_bicubic(float *out, const float *x, const Pictures &of);
void resize_area(float *out, const float *x, const Pictures &of);
void resize_lanczos(float *out, const float *x, const Pictures &of);
void resize_bislerp(float *out, const float *x, const engine_resize_options &options);

}  // namespace latentkit
