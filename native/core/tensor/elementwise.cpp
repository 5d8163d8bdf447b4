// Element by element over the pool.
#include <initializer_list>

#include "runtime/dispatch.h"
#include "runtime/parallel.h"
#include "runtime/spans.h"
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

}  // namespace
}  // namespace latentkit

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
