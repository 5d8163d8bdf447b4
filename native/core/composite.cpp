// Mixing two tensors through a mask, and pasting one into another.
#include <algorithm>
#include <cstring>

#include "dispatch.h"
#include "parallel.h"
#include "spans.h"

namespace {

using latentkit::for_chunks;
using latentkit::kernels;
using latentkit::multiply;

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

struct Overlap {
  size_t from, to, count; /* first position in the source, in the destination, and how many */
};

Overlap overlap(int64_t offset, size_t source, size_t destination) {
  // magnitudes first: the negation of the least int64 has no int64
  size_t shift = offset < 0 ? 0 - static_cast<size_t>(offset) : static_cast<size_t>(offset);
  if (offset < 0) {
    if (shift >= source) return {0, 0, 0};
    return {shift, 0, std::min(source - shift, destination)};
  }
  if (shift >= destination) return {0, 0, 0};
  return {0, shift, std::min(source, destination - shift)};
}

}  // namespace

engine_status engine_masked_blend(engine_f32 out, engine_cf32 a, engine_cf32 b, engine_cf32 mask, size_t batch,
                                  size_t channels, size_t plane, size_t mask_batch) {
  size_t count, mask_count;
  if (!latentkit::elements({1, batch, channels, plane}, &count) || !multiply(mask_batch, plane, &mask_count)) {
    return ENGINE_BAD_LENGTH;
  }
  if (out.len != count || a.len != count || b.len != count || mask.len != mask_count) return ENGINE_BAD_LENGTH;
  if (count == 0) return ENGINE_OK;
  if (mask_batch == 0) return ENGINE_BAD_ARGUMENT;
  int stream = latentkit::streams(3 * count + mask_count);
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
  size_t count, source_count, mask_count;
  if (!latentkit::elements(shape, &count) || !latentkit::elements(source_shape, &source_count) ||
      !latentkit::elements({1, mask_batch, source_shape.h, source_shape.w}, &mask_count)) {
    return ENGINE_BAD_LENGTH;
  }
  if (destination.len != count || source.len != source_count) return ENGINE_BAD_LENGTH;
  bool masked = mask.len > 0;
  if (masked && mask.len != mask_count) return ENGINE_BAD_LENGTH;
  if (source_shape.c != shape.c && source_shape.c != 1) return ENGINE_BAD_LENGTH;
  if (count == 0 || source_count == 0) return ENGINE_OK;
  Overlap across = overlap(x, source_shape.w, shape.w), down = overlap(y, source_shape.h, shape.h);
  if (across.count == 0 || down.count == 0) return ENGINE_OK;
  for_rows(shape.n * shape.c * down.count, across.count, [&](size_t index) {
    size_t line = index % down.count, channel = index / down.count % shape.c, image = index / down.count / shape.c;
    size_t from = (image % source_shape.n * source_shape.c + (source_shape.c == 1 ? 0 : channel)) * source_shape.h;
    const float *s = source.data + (from + down.from + line) * source_shape.w + across.from;
    float *d = destination.data + ((image * shape.c + channel) * shape.h + down.to + line) * shape.w + across.to;
    if (masked) {
      size_t m = (image % mask_batch * source_shape.h + down.from + line) * source_shape.w + across.from;
      kernels().blend(d, s, d, mask.data + m, across.count, 0);
    } else {
      std::memcpy(d, s, across.count * sizeof(float));
    }
  });
  return ENGINE_OK;
}
