#include "reduce.h"

#include "engine.h"
#include "runtime/spans.h"

engine_status engine_std(engine_cf32 x, float *out) {
  return latentkit::guarded([&] {
    *out = latentkit::deviation(x.len, [&](size_t begin, size_t, float *) { return x.data + begin; });
    return ENGINE_OK;
  });
}
