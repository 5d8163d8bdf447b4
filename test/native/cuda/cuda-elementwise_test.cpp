// Operations element by element: the device against the CPU, bit for bit, on 200 random lengths each.
#include <memory>

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

void weighted_sums(const Device &device) {
  Choices choose(51);
  for (int round = 0; round < 200; round++) {
    const size_t n = choose.length(70000), count = choose.from(1, ENGINE_MAX_TERMS);
    double coefficients[ENGINE_MAX_TERMS];
    std::vector<std::vector<float>> x(count);
    std::vector<std::unique_ptr<OnDevice<float>>> there(count);
    std::vector<engine_cf32> operands(count), on_gpu(count);
    for (size_t k = 0; k < count; k++) {
      coefficients[k] = static_cast<double>(choose.number()) / 3;
      x[k] = awkward(n, choose.seed()), operands[k] = in(x[k]);
      there[k] = std::make_unique<OnDevice<float>>(device, x[k], choose.one_in(3) ? choose.below(5) : 0);
      on_gpu[k] = in(*there[k]);
    }
    std::vector<float> expected(n);
    CHECK(engine_weighted_sum(out(expected), operands.data(), coefficients, count) == ENGINE_OK);
    OnDevice<float> to(device, n, choose.one_in(3) ? choose.below(5) : 0);
    // the output may be any operand
    for (const OnDevice<float> *result : {&to, there[choose.below(count)].get()}) {
      CHECK(cuda().weighted_sum(device.handle, out(*result), on_gpu.data(), coefficients, count) == ENGINE_OK);
      CHECK(same_values(expected, result->read()));
    }
    const size_t copies = choose.from(2, 4);
    std::vector<float> repeated(copies * n);
    CHECK(engine_weighted_sum(out(repeated), operands.data(), coefficients, count) == ENGINE_OK);
    OnDevice<float> several(device, copies * n, choose.one_in(3) ? choose.below(5) : 0);
    // outputs that are operands are behind them: their values have changed
    for (size_t k = 0; k < count; k++)
      there[k] = std::make_unique<OnDevice<float>>(device, x[k], 0), on_gpu[k] = in(*there[k]);
    CHECK(cuda().weighted_sum(device.handle, out(several), on_gpu.data(), coefficients, count) == ENGINE_OK);
    CHECK(same_values(repeated, several.read()));
  }
}

void refused_sums(const Device &device) {
  OnDevice<float> a(device, 8, 0), b(device, 7, 0);
  const double coefficients[9] = {};
  const std::vector<engine_cf32> equal(9, in(a)), unequal = {in(a), in(b)};
  const auto status = [&](engine_f32 to, const std::vector<engine_cf32> &x, size_t count) {
    return cuda().weighted_sum(device.handle, to, x.data(), coefficients, count);
  };
  CHECK(status(out(a), equal, 0) == ENGINE_BAD_ARGUMENT && status(out(a), equal, 9) == ENGINE_BAD_ARGUMENT);
  CHECK(status(out(a), unequal, 2) == ENGINE_BAD_LENGTH && status(out(b), equal, 1) == ENGINE_BAD_LENGTH);
  CHECK(status({nullptr, 0}, {{nullptr, 0}}, 1) == ENGINE_OK);
  CHECK(status({a.data(), 0}, equal, 1) == ENGINE_BAD_LENGTH && status(out(a), {{nullptr, 0}}, 1) == ENGINE_BAD_LENGTH);
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
    weighted_sums(device);
    refused_sums(device);
  }
  return finished();
}
