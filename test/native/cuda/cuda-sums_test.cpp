// Arithmetic of samplers and guidance: the device against the CPU, bit for bit, on 200 random shapes each.
#include <memory>

#include "cuda-check.h"

namespace {

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

void masked_sums(const Device &device) {
  Choices choose(52);
  for (int round = 0; round < 200; round++) {
    const engine_shape4 shape = {choose.from(1, 4), choose.from(1, 4), choose.from(1, 20), choose.from(1, 20)};
    engine_area area = {0, 0, choose.from(0, shape.h), choose.from(0, shape.w)};
    area.y = choose.from(0, shape.h - area.h), area.x = choose.from(0, shape.w - area.w);
    const size_t masks = choose.one_in(2) ? 1 : shape.n;
    const std::vector<float> d = awkward(shape.n * shape.c * shape.h * shape.w, choose.seed()),
                             s = awkward(shape.n * shape.c * area.h * area.w, choose.seed()),
                             m = numbers(masks * area.h * area.w, choose.seed());
    std::vector<float> expected = d;
    CHECK(engine_add_masked(out(expected), shape, in(s), area, in(m), masks) == ENGINE_OK);
    OnDevice<float> destination(device, d, choose.below(3)), source(device, s, 0), mask(device, m, 0);
    CHECK(cuda().add_masked(device.handle, out(destination), shape, in(source), area, in(mask), masks) == ENGINE_OK);
    CHECK(same_values(expected, destination.read()));
  }
}

/* The device refuses what the CPU refuses. */
void refused_areas(const Device &device) {
  OnDevice<float> eight(device, 8, 0), four(device, 4, 0);
  std::vector<float> a(8), b(4);
  const size_t sizes[] = {0, 1, 2, 3, SIZE_MAX / 2};
  for (size_t p : sizes) {
    for (size_t q : sizes) {
      for (size_t r : sizes) {
        for (size_t masks : sizes) {
          const engine_area area = {p, q, r, 2};
          const auto mask = [&](const float *data) { return engine_cf32{data, masks < 3 ? masks * 2 : 4}; };
          CHECK(cuda().add_masked(device.handle, out(eight), {2, 1, 2, 2}, in(four), area, mask(four.data()), masks) ==
                engine_add_masked(out(a), {2, 1, 2, 2}, in(b), area, mask(b.data()), masks));
        }
      }
    }
  }
}

void deviations_of_items(const Device &device) {
  Choices choose(53);
  for (int round = 0; round < 200; round++) {
    const size_t items = choose.from(1, 5), n = choose.one_in(8) ? choose.from(30000, 80000) : choose.from(0, 9000);
    const std::vector<float> x =
        choose.one_in(10) ? awkward(items * n, choose.seed()) : numbers(items * n, choose.seed());
    std::vector<float> expected(items), got(items);
    CHECK(engine_std_items(out(expected), in(x)) == ENGINE_OK);
    OnDevice<float> from(device, x, choose.below(3));
    CHECK(cuda().std_items(device.handle, out(got), in(from)) == ENGINE_OK);
    CHECK(same_values(expected, got));
  }
  OnDevice<float> eight(device, 8, 0);
  std::vector<float> three(3);
  CHECK(cuda().std_items(device.handle, out(three), in(eight)) == ENGINE_BAD_LENGTH);
  CHECK(cuda().std_items(device.handle, {nullptr, 0}, in(eight)) == ENGINE_BAD_LENGTH);
  CHECK(cuda().std_items(device.handle, {nullptr, 0}, {nullptr, 0}) == ENGINE_OK);
}

void error_norms(const Device &device) {
  Choices choose(54);
  for (int round = 0; round < 200; round++) {
    const size_t n = choose.one_in(8) ? choose.from(30000, 200000) : choose.from(0, 9000);
    const bool odd = choose.one_in(10);
    const auto values = [&] { return odd ? awkward(n, choose.seed()) : numbers(n, choose.seed()); };
    const std::vector<float> low = values(), high = values(), previous = values();
    const double atol = static_cast<double>(choose.below(100)) / 1000, rtol = static_cast<double>(choose.number());
    double expected = 0, got = 0;
    CHECK(engine_scaled_error(in(low), in(high), in(previous), atol, rtol, &expected) == ENGINE_OK);
    OnDevice<float> l(device, low, choose.below(3)), h(device, high, 0), p(device, previous, choose.below(3));
    CHECK(cuda().scaled_error(device.handle, in(l), in(h), in(p), atol, rtol, &got) == ENGINE_OK);
    CHECK(std::isnan(expected) ? std::isnan(got) : std::memcmp(&expected, &got, sizeof got) == 0);
    CHECK(odd || n == 0 || !std::isnan(expected));
  }
  OnDevice<float> eight(device, 8, 0), seven(device, 7, 0);
  double norm = 0;
  const auto status = [&](const OnDevice<float> &high, const OnDevice<float> &previous) {
    return cuda().scaled_error(device.handle, in(eight), in(high), in(previous), 1, 1, &norm);
  };
  CHECK(status(seven, eight) == ENGINE_BAD_LENGTH && status(eight, seven) == ENGINE_BAD_LENGTH);
}

}  // namespace

int main() {
  configure("");
  {
    Device device;
    weighted_sums(device);
    refused_sums(device);
    masked_sums(device);
    refused_areas(device);
    deviations_of_items(device);
    error_norms(device);
  }
  return finished();
}
