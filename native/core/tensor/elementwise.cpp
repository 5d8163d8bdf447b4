// Element by element over the pool, also through masks and into parts of a tensor.
#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "runtime/runtime.h"
#include "shared/checks.h"

namespace latentkit {
namespace {

/* run(from, count, stream) over the whole of out, whose length all inputs must have. */
template <class Run>
engine_status each(engine_f32 out, std::initializer_list<size_t> lengths, Run &&run) {
  for (size_t length : lengths) {
    if (length != out.len) return ENGINE_BAD_LENGTH;
  }
  int stream = streams(out.len * (1 + lengths.size()));
  for_ranges(out.len, kGrain, [&](size_t begin, size_t end) { run(begin, end - begin, stream); });
  return ENGINE_OK;
}

/* body(row) for rows of `width` elements. */
template <class Body>
void for_rows(size_t rows, size_t width, Body &&body) {
  for_items(rows, width, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; row++) body(row);
  });
}

}  // namespace
}  // namespace latentkit

using latentkit::for_rows;
using latentkit::kernels;

engine_status engine_scale(engine_f32 out, engine_cf32 x, float k) {
  return latentkit::each(out, {x.len}, [&](size_t at, size_t n, int stream) {
    kernels().scale(out.data + at, x.data + at, k, n, stream);
  });
}

engine_status engine_axpy(engine_f32 out, engine_cf32 x, engine_cf32 y, float k) {
  return latentkit::each(out, {x.len, y.len}, [&](size_t at, size_t n, int stream) {
    kernels().axpy(out.data + at, x.data + at, y.data + at, k, n, stream);
  });
}

engine_status engine_average(engine_f32 out, engine_cf32 x, engine_cf32 y) {
  return latentkit::each(out, {x.len, y.len}, [&](size_t at, size_t n, int stream) {
    kernels().average(out.data + at, x.data + at, y.data + at, n, stream);
  });
}

engine_status engine_weighted_sum(engine_f32 out, const engine_cf32 *x, const double *coefficients, size_t count) {
  size_t copies = 0;
  const engine_status status = latentkit::check_sum(out.len, x, count, &copies);
  if (status != ENGINE_OK) return status;
  const size_t n = x[0].len;
  const int stream = latentkit::streams(out.len + n * count);
  latentkit::for_ranges(n, latentkit::kGrain, [&](size_t begin, size_t end) {
    const float *from[ENGINE_MAX_TERMS];
    for (size_t k = 0; k < count; k++) from[k] = x[k].data + begin;
    kernels().weighted_sum(out.data + begin, copies, n, from, coefficients, count, end - begin, stream);
  });
  return ENGINE_OK;
}

engine_status engine_lerp(engine_f32 out, engine_cf32 a, engine_cf32 b, float t) {
  return latentkit::each(out, {a.len, b.len}, [&](size_t at, size_t n, int stream) {
    kernels().lerp(out.data + at, a.data + at, b.data + at, t, n, stream);
  });
}

/* ---- through masks, and into parts ---- */
engine_status engine_masked_blend(engine_f32 out, engine_cf32 a, engine_cf32 b, engine_cf32 mask, size_t batch,
                                  size_t channels, size_t plane, size_t mask_batch) {
  bool nothing = false;
  const engine_status status =
      latentkit::check_blend(out.len, a.len, b.len, mask.len, batch, channels, plane, mask_batch, &nothing);
  if (status != ENGINE_OK || nothing) return status;
  int stream = latentkit::streams(3 * out.len + mask.len);
  // a plane may be the whole image: cut it into pieces too
  size_t piece = std::min(plane, latentkit::kGrain), pieces = (plane + piece - 1) / piece;
  for_rows(batch * channels * pieces, piece, [&](size_t index) {
    size_t row = index / pieces, from = index % pieces * piece;
    size_t start = row * plane + from;
    const float *m = mask.data + row / channels % mask_batch * plane + from;
    kernels().blend(out.data + start, a.data + start, b.data + start, m, std::min(piece, plane - from), stream);
  });
  return ENGINE_OK;
}

engine_status engine_composite(engine_f32 destination, engine_shape4 shape, engine_cf32 source,
                               engine_shape4 source_shape, int64_t x, int64_t y, engine_cf32 mask, size_t mask_batch) {
  latentkit::Overlap across, down;
  bool nothing = false;
  const engine_status status = latentkit::check_composite(destination.len, shape, source.len, source_shape, x, y,
                                                          mask.len, mask_batch, &across, &down, &nothing);
  if (status != ENGINE_OK || nothing) return status;
  for_rows(shape.n * shape.c * down.count, across.count, [&](size_t index) {
    size_t line = index % down.count, channel = index / down.count % shape.c, image = index / down.count / shape.c;
    size_t from = (image % source_shape.n * source_shape.c + (source_shape.c == 1 ? 0 : channel)) * source_shape.h;
    const float *s = source.data + (from + down.from + line) * source_shape.w + across.from;
    float *d = destination.data + ((image * shape.c + channel) * shape.h + down.to + line) * shape.w + across.to;
    if (mask.len > 0) {
      size_t m = (image % mask_batch * source_shape.h + down.from + line) * source_shape.w + across.from;
      kernels().blend(d, s, d, mask.data + m, across.count, 0);
    } else {
      std::memcpy(d, s, across.count * sizeof(float));
    }
  });
  return ENGINE_OK;
}

engine_status engine_add_masked(engine_f32 destination, engine_shape4 shape, engine_cf32 source, engine_area area,
                                engine_cf32 mask, size_t mask_batch) {
  bool nothing = false;
  const engine_status status =
      latentkit::check_add_masked(destination.len, shape, source.len, area, mask.len, mask_batch, &nothing);
  if (status != ENGINE_OK || nothing) return status;
  for_rows(shape.n * shape.c * area.h, area.w, [&](size_t row) {
    const size_t line = row % area.h, plane = row / area.h, image = plane / shape.c;
    float *d = destination.data + (plane * shape.h + area.y + line) * shape.w + area.x;
    const float *m = mask.data + (image % mask_batch * area.h + line) * area.w;
    kernels().add_product(d, d, source.data + row * area.w, m, area.w, 0);
  });
  return ENGINE_OK;
}
