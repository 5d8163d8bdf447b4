// Operations element by element: the device against the CPU, bit for bit, on 200 random lengths each.
#include "cuda-check.h"

namespace {

struct Operation {
  engine_status (*cpu)(engine_f32, engine_cf32, engine_cf32, float);
  engine_status (*gpu)(engine_cuda *, engine_f32, engine_cf32, engine_cf32, float);
};

const Operation kOperations[] = {
    {[](engine_f32 o, engine_cf32 x, engine_cf32, float k) { return engine_scale(o, x, k); },
     [](engine_cuda *d, engine_f32 o, engine_cf32 x, engine_cf32, float k) { return cuda().scale(d, o, x, k); }},
    {engine_axpy,
     [](engine_cuda *d, engine_f32 o, engine_cf32 x, engine_cf32 y, float k) { return cuda().axpy(d, o, x, y, k); }},
    {[](engine_f32 o, engine_cf32 x, engine_cf32 y, float) { return engine_average(o, x, y); },
     [](engine_cuda *d, engine_f32 o, engine_cf32 x, engine_cf32 y, float) { return cuda().average(d, o, x, y); }},
    {engine_lerp,
     [](engine_cuda *d, engine_f32 o, engine_cf32 a, engine_cf32 b, float t) { return cuda().lerp(d, o, a, b, t); }},
};

void against_cpu(const Device &device, const Operation &operation, uint64_t seed) {
  Choices choose(seed);
  for (int round = 0; round < 200; round++) {
    const size_t n = choose.length(70000);
    const float k = choose.number();
    const std::vector<float> x = awkward(n, choose.seed()), y = awkward(n, choose.seed());
    std::vector<float> expected(n);
    CHECK(operation.cpu(out(expected), in(x), in(y), k) == ENGINE_OK);
    // now and then off the addresses that four floats at once need
    const auto shift = [&] { return choose.one_in(3) ? choose.below(5) : 0; };
    OnDevice<float> first(device, x, shift()), second(device, y, shift()), to(device, n, shift());
    CHECK(operation.gpu(device.handle, out(to), in(first), in(second), k) == ENGINE_OK);
    CHECK(same_values(expected, to.read()));
    // the output may be any input
    CHECK(operation.gpu(device.handle, out(first), in(first), in(second), k) == ENGINE_OK);
    CHECK(same_values(expected, first.read()));
    if (operation.cpu == kOperations[0].cpu) continue;
    OnDevice<float> again(device, x, shift());
    CHECK(operation.gpu(device.handle, out(second), in(again), in(second), k) == ENGINE_OK);
    CHECK(same_values(expected, second.read()));
  }
}

void lengths(const Device &device) {
  OnDevice<float> a(device, 8, 0), b(device, 7, 0);
  engine_cuda *d = device.handle;
  CHECK(cuda().scale(d, out(a), in(b), 1) == ENGINE_BAD_LENGTH);
  CHECK(cuda().axpy(d, out(a), in(a), in(b), 1) == ENGINE_BAD_LENGTH);
  CHECK(cuda().axpy(d, out(a), in(b), in(a), 1) == ENGINE_BAD_LENGTH);
  CHECK(cuda().average(d, out(b), in(a), in(b)) == ENGINE_BAD_LENGTH);
  CHECK(cuda().lerp(d, out(a), in(a), in(b), 1) == ENGINE_BAD_LENGTH);
  CHECK(cuda().scale(d, {nullptr, 0}, {nullptr, 0}, 1) == ENGINE_OK);
}

void filled(const Device &device) {
  for (size_t n : {size_t{0}, size_t{1}, size_t{1000}}) {
    OnDevice<float> to(device, n, 3);
    CHECK(cuda().fill(device.handle, out(to), -2.5f) == ENGINE_OK);
    CHECK(same_values(to.read(), std::vector<float>(n, -2.5f)));
  }
}

}  // namespace

int main() {
  configure("");
  {
    Device device;
    uint64_t seed = 1;
    for (const Operation &operation : kOperations) against_cpu(device, operation, seed++);
    lengths(device);
    filled(device);
  }
  return finished();
}
