// The Philox stream on the device.
#include "launch.h"
#include "operations.h"
#include "shared/checks.h"

namespace latentkit::cuda {
namespace {

engine_status philox_randn(engine_cuda *device, engine_f32 out, uint64_t seed, uint64_t *offset, uint32_t threads,
                           float k) {
  const engine_status checked = check_philox(*offset, threads);
  if (checked != ENGINE_OK) return checked;
  return on(device, [&] {
    if (out.len == 0) return ENGINE_OK;
    const size_t grid = philox_threads(out.len, threads);
    if (grid == 0) return ENGINE_BAD_ARGUMENT;
    const uint64_t rows = philox_rows(out.len, grid);
    const engine_status status =
        LK_LAUNCH(*device, philox_normals, blocks_for(rows * grid), out.data, out.len, seed, *offset / 4, grid, k);
    if (status == ENGINE_OK) *offset += 4 * rows;
    return status;
  });
}

engine_status philox_words(engine_cuda *device, engine_u32 out, uint64_t seed, uint64_t offset, uint32_t threads) {
  const size_t n = out.len / 4;
  if (out.len % 4 != 0) return ENGINE_BAD_LENGTH;
  const engine_status checked = check_philox(offset, threads);
  if (checked != ENGINE_OK) return checked;
  return on(device, [&] {
    if (n == 0) return ENGINE_OK;
    const size_t grid = philox_threads(n, threads);
    return LK_LAUNCH(*device, philox_words, blocks_for(n), out.data, n, seed, offset / 4, grid);
  });
}

}  // namespace

void fill_noise(engine_cuda_table *table) {
  table->philox_randn = philox_randn;
  table->philox_words = philox_words;
}

}  // namespace latentkit::cuda
