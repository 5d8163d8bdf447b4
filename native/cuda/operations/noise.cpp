// The Philox stream on the device.
#include "draw.h"
#include "operations.h"

namespace latentkit::cuda {
namespace {

engine_status philox_randn(engine_cuda *device, engine_f32 out, uint64_t seed, uint64_t *offset, uint32_t threads,
                           float k) {
  PhiloxLaunch like;
  const engine_status checked = check_philox(out.len, *offset, threads, &like);
  if (checked != ENGINE_OK) return checked;
  return on(device, [&] {
    if (out.len == 0) return ENGINE_OK;
    const engine_status status = make_normals(*device, out.data, out.len, draw_of(seed, *offset, like, k));
    if (status == ENGINE_OK) *offset += like.moved();
    return status;
  });
}

engine_status philox_words(engine_cuda *device, engine_u32 out, uint64_t seed, uint64_t offset, uint32_t threads) {
  const size_t n = out.len / 4;
  if (out.len % 4 != 0) return ENGINE_BAD_LENGTH;
  PhiloxLaunch like;
  const engine_status checked = check_philox(n, offset, threads, &like);
  if (checked != ENGINE_OK) return checked;
  return on(device, [&] {
    if (n == 0) return ENGINE_OK;
    return LK_LAUNCH(*device, philox_words, blocks_for(n), out.data, n, seed, offset / 4, like.threads);
  });
}

}  // namespace

void fill_noise(engine_cuda_table *table) {
  table->philox_randn = philox_randn;
  table->philox_words = philox_words;
}

}  // namespace latentkit::cuda
