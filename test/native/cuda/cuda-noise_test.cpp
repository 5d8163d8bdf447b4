// The Philox stream of the device against that of the CPU: words and normals, from one value to many rows of the grid.
#include "cuda-check.h"

namespace {

void normals(const Device &device) {
  Choices choose(11);
  for (int round = 0; round < 200; round++) {
    const uint32_t grids[] = {0, 256, 512, 4096, 270336};
    const uint32_t threads = grids[choose.below(5)];
    const size_t n = choose.from(1, choose.one_in(10) ? 300000 : 9000);
    const uint64_t seed = choose.state * 0x9e3779b97f4a7c15u, start = choose.below(1000) * 4;
    const float k = choose.one_in(2) ? 1.0f : choose.number();
    std::vector<float> expected(n);
    uint64_t on_cpu = start, on_gpu = start;
    CHECK(engine_philox_randn(out(expected), seed, &on_cpu, threads, k) == ENGINE_OK);
    OnDevice<float> to(device, n, choose.below(3));
    CHECK(cuda().philox_randn(device.handle, out(to), seed, &on_gpu, threads, k) == ENGINE_OK);
    CHECK(same_values(expected, to.read()) && on_cpu == on_gpu);
  }
}

void words(const Device &device) {
  Choices choose(12);
  for (int round = 0; round < 200; round++) {
    const uint32_t threads = static_cast<uint32_t>(choose.below(5)) * 256;
    const size_t n = choose.from(1, 6000);
    const uint64_t seed = choose.state * 0x9e3779b97f4a7c15u, offset = choose.below(1000) * 4;
    std::vector<uint32_t> expected(4 * n);
    CHECK(engine_philox_words({expected.data(), expected.size()}, seed, offset, threads) == ENGINE_OK);
    OnDevice<uint32_t> to(device, 4 * n, choose.below(3));
    CHECK(cuda().philox_words(device.handle, {to.data(), to.size()}, seed, offset, threads) == ENGINE_OK);
    CHECK(same_bytes(expected, to.read()));
  }
}

/* Counters that need more than 32 bits of the row, and the sum of offset and row that carries into the upper word. */
void far_rows(const Device &device) {
  const size_t n = 5000;
  uint64_t on_cpu = (uint64_t{1} << 34) - 8, on_gpu = on_cpu;
  std::vector<float> expected(n);
  CHECK(engine_philox_randn(out(expected), ~uint64_t{0}, &on_cpu, 256, 1.0f) == ENGINE_OK);
  OnDevice<float> to(device, n, 0);
  CHECK(cuda().philox_randn(device.handle, out(to), ~uint64_t{0}, &on_gpu, 256, 1.0f) == ENGINE_OK);
  CHECK(same_values(expected, to.read()) && on_cpu == on_gpu);
}

void refused(const Device &device) {
  OnDevice<float> to(device, 8, 0);
  OnDevice<uint32_t> odd(device, 7, 0);
  uint64_t offset = 4;
  engine_cuda *d = device.handle;
  CHECK(cuda().philox_randn(d, out(to), 1, &offset, 255, 1.0f) == ENGINE_BAD_ARGUMENT && offset == 4);
  CHECK(cuda().philox_randn(d, {nullptr, 0}, 1, &offset, 256, 1.0f) == ENGINE_OK && offset == 4);
  CHECK(cuda().philox_words(d, {odd.data(), 7}, 1, 0, 256) == ENGINE_BAD_LENGTH);
  CHECK(cuda().philox_words(d, {odd.data(), 4}, 1, 2, 256) == ENGINE_BAD_ARGUMENT);
  CHECK(cuda().philox_words(d, {odd.data(), 0}, 1, 0, 0) == ENGINE_OK);
  offset = 3;
  CHECK(cuda().philox_randn(d, out(to), 1, &offset, 256, 1.0f) == ENGINE_BAD_ARGUMENT && offset == 3);
}

}  // namespace

int main() {
  configure("");
  {
    Device device;
    normals(device);
    words(device);
    far_rows(device);
    refused(device);
  }
  return finished();
}
