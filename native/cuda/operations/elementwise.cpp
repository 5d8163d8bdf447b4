// Element by element on the device.
#include <initializer_list>

#include "device.h"
#include "shared/checks.h"

namespace latentkit::cuda {
namespace {

/* run(blocks), a thread to four elements, if all inputs have the length of the output. */
template <class Run>
engine_status each(engine_cuda *device, size_t n, std::initializer_list<size_t> lengths, Run &&run) {
  for (size_t length : lengths) {
    if (length != n) return ENGINE_BAD_LENGTH;
  }
  return on(device, [&] { return n == 0 ? ENGINE_OK : run(blocks_for(quads(n))); });
}

engine_status scale(engine_cuda *device, engine_f32 out, engine_cf32 x, float k) {
  return each(device, out.len, {x.len},
              [&](unsigned blocks) { return LK_LAUNCH(*device, scale, blocks, out.data, x.data, k, out.len); });
}

engine_status axpy(engine_cuda *device, engine_f32 out, engine_cf32 x, engine_cf32 y, float k) {
  return each(device, out.len, {x.len, y.len},
              [&](unsigned blocks) { return LK_LAUNCH(*device, axpy, blocks, out.data, x.data, y.data, k, out.len); });
}

engine_status average(engine_cuda *device, engine_f32 out, engine_cf32 x, engine_cf32 y) {
  return each(device, out.len, {x.len, y.len},
              [&](unsigned blocks) { return LK_LAUNCH(*device, average, blocks, out.data, x.data, y.data, out.len); });
}

engine_status lerp(engine_cuda *device, engine_f32 out, engine_cf32 a, engine_cf32 b, float t) {
  return each(device, out.len, {a.len, b.len},
              [&](unsigned blocks) { return LK_LAUNCH(*device, lerp, blocks, out.data, a.data, b.data, t, out.len); });
}

engine_status weighted_sum(engine_cuda *device, engine_f32 out, const engine_cf32 *x, const double *coefficients,
                           size_t count) {
  static_assert(LK_TERMS == ENGINE_MAX_TERMS);
  size_t copies = 0;
  const engine_status status = check_sum(out.len, x, count, &copies);
  if (status != ENGINE_OK) return status;
  lk_terms terms = {};
  terms.count = static_cast<uint32_t>(count);
  for (size_t k = 0; k < count; k++) terms.x[k] = x[k].data, terms.coefficients[k] = split(coefficients[k]);
  return each(device, x[0].len, {}, [&](unsigned blocks) {
    return LK_LAUNCH(*device, weighted_sum, blocks, out.data, copies, terms, x[0].len);
  });
}

}  // namespace

void fill_elementwise(engine_cuda_table *table) {
  table->scale = scale;
  table->axpy = axpy;
  table->average = average;
  table->lerp = lerp;
  table->weighted_sum = weighted_sum;
}

}  // namespace latentkit::cuda
