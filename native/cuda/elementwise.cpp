// Element by element on the device.
#include "launch.h"
#include "operations.h"

namespace latentkit::cuda {
namespace {

/* A thread takes four elements. */
unsigned blocks_of(size_t n) { return blocks_for((uint64_t{n} + 3) / 4); }

engine_status scale(engine_cuda *device, engine_f32 out, engine_cf32 x, float k) {
  if (x.len != out.len) return ENGINE_BAD_LENGTH;
  return on(device, [&] {
    if (out.len == 0) return ENGINE_OK;
    return LK_LAUNCH(*device, scale, blocks_of(out.len), out.data, x.data, k, out.len);
  });
}

}  // namespace

void fill_elementwise(engine_cuda_table *table) { table->scale = scale; }

}  // namespace latentkit::cuda
