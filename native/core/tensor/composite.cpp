// Mixing two tensors through a mask, and pasting one into another.
#include <algorithm>
#include <cstring>

#include "runtime/dispatch.h"
#include "runtime/parallel.h"
#include "runtime/spans.h"
#include "shared/checks.h"

namespace {

using latentkit::for_chunks;
using latentkit::kernels;

/* Rows of rows_per_chunk at a time over the pool, or all at once where there is little. */
template <class Body>
void for_rows(size_t rows, size_t width, Body &&body) {
  size_t per_chunk = width >= latentkit::kGrain ? 1 : latentkit::kGrain / width;
  if (rows * width <= ENGINE_PARALLEL_MIN) per_chunk = rows;
  for_chunks((rows + per_chunk - 1) / per_chunk, [&](size_t chunk) {
    size_t end = std::min(rows, (chunk + 1) * per_chunk);
    for (size_t row = chunk * per_chunk; row < end; row++) body(row);
  });
}

}  // namespace

engine_status engine_masked_blend(engine_f32 out, engine_cf32 a, engine_cf32 b, engine_cf32 mask, size_t batch,
                                  size_t channels, size_t plane, size_t mask_batch) {
  bool nothing = false;
  const engine_status status =
      latentkit::check_blend(out.len, a.len, b.len, mask.len, batch, channels, plane, mask_batch, &nothing);
  if (status != ENGINE_OK || nothing) return status;
  int stream = latentkit::streams(3 * out.len + mask.len);
  // a plane may be the whole image: cut it into pieces of its own
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
