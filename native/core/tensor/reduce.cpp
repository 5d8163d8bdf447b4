#include "reduce.h"

#include "engine.h"
#include "runtime/spans.h"
#include "shared/checks.h"

engine_status engine_std(engine_cf32 x, float *out) {
  return latentkit::guarded([&] {
    *out = latentkit::deviation(x.len, [&](size_t begin, size_t, float *) { return x.data + begin; });
    return ENGINE_OK;
  });
}

engine_status engine_std_items(engine_f32 out, engine_cf32 x) {
  const engine_status checked = latentkit::check_items(out.len, x.len);
  if (checked != ENGINE_OK) return checked;
  for (size_t item = 0; item < out.len; item++) {
    const size_t n = x.len / out.len;
    const engine_status status = engine_std({x.data + item * n, n}, out.data + item);
    if (status != ENGINE_OK) return status;
  }
  return ENGINE_OK;
}

engine_status engine_scaled_error(engine_cf32 low, engine_cf32 high, engine_cf32 previous, double atol, double rtol,
                                  double *out) {
  const size_t n = low.len;
  if (high.len != n || previous.len != n) return ENGINE_BAD_LENGTH;
  return latentkit::guarded([&] {
    const double squares = latentkit::tree_sum(n, [&](size_t i, size_t count) {
      return latentkit::kernels().scaled_errors(low.data + i, high.data + i, previous.data + i, count, atol, rtol);
    });
    *out = root_mean_of(squares, n);
    return ENGINE_OK;
  });
}
