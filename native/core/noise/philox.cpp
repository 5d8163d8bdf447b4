// PyTorch's CUDA generator: which thread of which row of its launch gives which element.
#include <algorithm>

#include "runtime/dispatch.h"
#include "runtime/parallel.h"
#include "shared/checks.h"

namespace latentkit {
namespace {

/* Elements of one row's lane: n elements, rows of 4 lanes of `threads` each. */
size_t lane_length(size_t n, size_t row_start, size_t lane, size_t threads) {
  size_t start = row_start + lane * threads;
  return start >= n ? 0 : std::min(n - start, threads);
}

/* Threads [begin, end) of one row, whose lanes end at different threads. */
void fill_row(float *out, size_t n, size_t row, size_t threads, size_t begin, size_t end, uint64_t seed,
              uint64_t counter, float k) {
  size_t row_start = row * 4 * threads;
  while (begin < end) {
    float *lanes[4] = {};
    size_t stop = end;
    for (size_t lane = 0; lane < 4; lane++) {
      size_t length = lane_length(n, row_start, lane, threads);
      if (length <= begin) break;
      lanes[lane] = out + row_start + lane * threads + begin;
      stop = std::min(stop, length);
    }
    if (lanes[0] == nullptr) return;
    kernels().philox_normals(lanes, stop - begin, seed, counter + row, begin, k);
    begin = stop;
  }
}

}  // namespace
}  // namespace latentkit

engine_status engine_philox_randn(engine_f32 out, uint64_t seed, uint64_t *offset, uint32_t threads, float k) {
  using namespace latentkit;
  PhiloxLaunch launch;
  const engine_status status = check_philox(out.len, *offset, threads, &launch);
  if (status != ENGINE_OK || out.len == 0) return status;
  const size_t grid = launch.threads;
  const size_t rows = launch.rows;
  size_t pieces = (grid + kGrain - 1) / kGrain;
  auto chunk = [&](size_t index) {
    size_t begin = index % pieces * kGrain;
    fill_row(out.data, out.len, index / pieces, grid, begin, std::min(begin + kGrain, grid), seed, *offset / 4, k);
  };
  if (out.len > ENGINE_PARALLEL_MIN) {
    for_chunks(rows * pieces, chunk);
  } else {
    for (size_t i = 0; i < rows * pieces; i++) chunk(i);
  }
  *offset += launch.moved();
  return ENGINE_OK;
}

engine_status engine_philox_skip(size_t n, uint64_t *offset, uint32_t threads) {
  latentkit::PhiloxLaunch launch;
  const engine_status status = latentkit::check_philox(n, *offset, threads, &launch);
  if (status == ENGINE_OK) *offset += launch.moved();
  return status;
}

engine_status engine_philox_words(engine_u32 out, uint64_t seed, uint64_t offset, uint32_t threads) {
  using namespace latentkit;
  size_t n = out.len / 4;
  if (out.len % 4 != 0) return ENGINE_BAD_LENGTH;
  PhiloxLaunch launch;
  const engine_status status = check_philox(n, offset, threads, &launch);
  if (status != ENGINE_OK || n == 0) return status;
  const size_t grid = launch.threads;
  for (size_t start = 0; start < n; start += grid) {
    uint32_t *rows[4];
    for (size_t k = 0; k < 4; k++) rows[k] = out.data + k * n + start;
    kernels().philox_words(rows, std::min(grid, n - start), seed, offset / 4 + start / (4 * grid), 0);
  }
  return ENGINE_OK;
}
