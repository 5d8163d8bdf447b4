// Threads that share a device, and two devices at once. Without kernels whose threads meet: the thread sanitizer does
// not know fibers.
#include <thread>

#include "cuda-check.h"

namespace {

void work(const Device &device, uint32_t worker) {
  for (uint32_t round = 0; round < 30; round++) {
    const size_t n = 1000 + 997 * round;
    const std::vector<float> x = numbers(n, worker * 100 + round);
    std::vector<float> expected(n), got(n);
    CHECK(engine_axpy(out(expected), in(x), in(x), 0.5f) == ENGINE_OK);
    void *from = nullptr, *to = nullptr;
    CHECK(cuda().take(device.handle, n * sizeof(float), &from) == ENGINE_OK);
    CHECK(cuda().take(device.handle, n * sizeof(float), &to) == ENGINE_OK);
    CHECK(cuda().upload(device.handle, from, x.data(), n * sizeof(float)) == ENGINE_OK);
    const engine_cf32 span = {static_cast<float *>(from), n};
    CHECK(cuda().axpy(device.handle, {static_cast<float *>(to), n}, span, span, 0.5f) == ENGINE_OK);
    // freed while the work that reads it is queued
    cuda().give(device.handle, from);
    if (round % 7 == worker) CHECK(cuda().trim(device.handle) == ENGINE_OK);
    CHECK(cuda().download(device.handle, got.data(), to, n * sizeof(float)) == ENGINE_OK);
    CHECK(same_bytes(expected, got));
    cuda().give(device.handle, to);
    engine_cuda_memory memory;
    CHECK(cuda().memory(device.handle, &memory) == ENGINE_OK && memory.lent + memory.pooled <= memory.total);
  }
}

}  // namespace

int main() {
  configure("devices=2");
  {
    Device devices[2] = {Device(0), Device(1)};
    std::vector<std::thread> workers;
    for (uint32_t worker = 0; worker < 4; worker++) {
      workers.emplace_back([&devices, worker] { work(devices[worker % 2], worker); });
    }
    for (std::thread &worker : workers) worker.join();
  }
  return finished();
}
