// The standard deviation and injectNoise, whose noise is in memory or drawn on the way: the device against the CPU, bit
// for bit, on 200 random shapes each.
#include "cuda-check.h"

namespace {

void deviations(const Device &device) {
  Choices choose(31);
  for (int round = 0; round < 200; round++) {
    // a leaf has 4096 elements, a group 8 leaves
    const size_t n = choose.one_in(8) ? choose.from(30000, 200000) : choose.from(0, 9000);
    const std::vector<float> x = choose.one_in(10) ? awkward(n, choose.seed()) : numbers(n, choose.seed());
    std::vector<float> expected(1), got(1);
    CHECK(engine_std(in(x), expected.data()) == ENGINE_OK);
    OnDevice<float> from(device, x, choose.below(3));
    CHECK(cuda().std(device.handle, in(from), got.data()) == ENGINE_OK);
    CHECK(same_values(expected, got));
  }
}

/* More groups than one block adds at once. */
void many_groups(const Device &device) {
  const size_t n = size_t{260} * 8 * 4096 + 4097;
  const std::vector<float> x = numbers(n, 5);
  std::vector<float> expected(1), got(1);
  CHECK(engine_std(in(x), expected.data()) == ENGINE_OK);
  OnDevice<float> from(device, x, 0);
  CHECK(cuda().std(device.handle, in(from), got.data()) == ENGINE_OK);
  CHECK(same_values(expected, got));
}

/* Normals of a launch of PyTorch's: small, or with several rows of counters, the last of them not full. */
engine_cuda_draw draws(Choices &choose) {
  const uint32_t grids[] = {0, 256, 512, 4096, 270336};
  const uint64_t offset = choose.one_in(10) ? (uint64_t{1} << 34) - 8 : choose.below(1000) * 4;
  return {choose.state * 0x9e3779b97f4a7c15u, offset, grids[choose.below(5)],
          choose.one_in(2) ? 1.0f : choose.number()};
}

std::vector<float> drawn_normals(const engine_cuda_draw &draw, size_t n) {
  std::vector<float> values(n);
  uint64_t offset = draw.offset;
  CHECK(engine_philox_randn(out(values), draw.seed, &offset, draw.threads, draw.k) == ENGINE_OK);
  return values;
}

void injected(const Device &device, bool drawn) {
  Choices choose(drawn ? 33 : 32);
  for (int round = 0; round < 200; round++) {
    const engine_shape4 shape = {choose.from(1, 4), choose.from(1, 4), choose.from(1, 40),
                                 choose.one_in(2) ? choose.from(1, 40) : 4 * choose.from(1, 10)};
    const size_t n = shape.n * shape.c * shape.h * shape.w;
    engine_inject_options options = {};
    options.strength = choose.number();
    options.average = choose.one_in(2);
    options.normalize = choose.one_in(2);
    options.shape = shape;
    options.mix = choose.one_in(2) ? 0.0 : static_cast<double>(choose.below(100)) / 100.0;
    const bool resized = choose.one_in(2), masked = choose.one_in(2);
    options.mask_n = choose.from(1, shape.n);
    options.mask_h = resized ? choose.from(1, 30) : shape.h;
    options.mask_w = resized ? choose.from(1, 30) : shape.w;
    const auto values = [&](size_t count) {
      return choose.one_in(5) ? awkward(count, choose.seed()) : numbers(count, choose.seed());
    };
    const engine_cuda_draw draw = draws(choose), *how = drawn ? &draw : nullptr;
    const std::vector<float> base = values(n), noise = values(n), random = drawn ? drawn_normals(draw, n) : values(n),
                             mask = values(masked ? options.mask_n * options.mask_h * options.mask_w : 0);
    engine_inject_options on_gpu = options;
    options.mask = in(mask), options.random = in(random);
    std::vector<float> expected(n);
    CHECK(engine_inject_noise(out(expected), in(base), in(noise), &options) == ENGINE_OK);

    const size_t shift = choose.below(2);
    OnDevice<float> b(device, base, shift), e(device, noise, 0), r(device, random, 0), m(device, mask, shift),
        to(device, n, shift);
    on_gpu.mask = in(m);
    if (!drawn) on_gpu.random = in(r);
    CHECK(cuda().inject_noise(device.handle, out(to), in(b), in(e), &on_gpu, how) == ENGINE_OK);
    CHECK(same_values(expected, to.read()));
    // out may be base or noise
    const OnDevice<float> &input = choose.one_in(2) ? b : e;
    CHECK(cuda().inject_noise(device.handle, out(input), in(b), in(e), &on_gpu, how) == ENGINE_OK);
    CHECK(same_values(expected, input.read()));
  }
  // both ways were taken
  if (drawn && on_gpu() == nullptr) CHECK(counted("lk_inject_drawn") > 20 && counted("lk_philox_normals") > 20);
}

void zero_deviation(const Device &device) {
  const std::vector<float> same(9000, 1.5f), zeros(9000, 0.0f);
  OnDevice<float> base(device, same, 0), noise(device, zeros, 0), to(device, same, 0);
  engine_inject_options options = {};
  options.strength = 1.0;
  options.normalize = 1;
  const engine_cuda_draw draw = {1, 0, 256, 1.0f};
  for (const engine_cuda_draw *drawn : {static_cast<const engine_cuda_draw *>(nullptr), &draw}) {
    options.mix = drawn == nullptr ? 0.0 : 0.5;
    const engine_status status = cuda().inject_noise(device.handle, out(to), in(base), in(noise), &options, drawn);
    CHECK(status == ENGINE_ZERO_DEVIATION && same_values(same, to.read()));
  }
  float deviation = -1.0f;
  CHECK(cuda().std(device.handle, in(base), &deviation) == ENGINE_OK && deviation == 0.0f);
  // and the device goes on
  options.normalize = 0, options.mix = 0.0;
  CHECK(cuda().inject_noise(device.handle, out(to), in(base), in(noise), &options, nullptr) == ENGINE_OK);
}

void refused(const Device &device) {
  OnDevice<float> eight(device, 8, 0), four(device, 4, 0);
  std::vector<float> a(8), b(4);
  const auto both = [&](engine_inject_options on_cpu, bool random, bool mask, size_t length) {
    engine_inject_options on_gpu = on_cpu;
    if (random) on_cpu.random = in(b), on_gpu.random = in(four);
    if (mask) on_cpu.mask = in(b), on_gpu.mask = in(four);
    const engine_status expected = engine_inject_noise({a.data(), length}, in(a), in(a), &on_cpu);
    CHECK(cuda().inject_noise(device.handle, {eight.data(), length}, in(eight), in(eight), &on_gpu, nullptr) ==
          expected);
    return expected;
  };
  engine_inject_options options = {};
  CHECK(both(options, false, false, 4) == ENGINE_BAD_LENGTH);
  options.mix = 0.5;
  CHECK(both(options, true, false, 8) == ENGINE_BAD_LENGTH);
  options.mix = NAN;
  CHECK(both(options, false, false, 8) == ENGINE_BAD_ARGUMENT);
  options.mix = 0.0;
  options.strength = INFINITY;
  CHECK(both(options, false, false, 8) == ENGINE_BAD_ARGUMENT);
  options.strength = 1.0;
  options.shape = {1, 2, 2, 2};
  options.mask_n = 1, options.mask_h = 2, options.mask_w = 1;
  CHECK(both(options, false, true, 8) == ENGINE_BAD_LENGTH);
  options.mask_n = 2;
  CHECK(both(options, false, true, 8) == ENGINE_BAD_LENGTH);
  options.mask_n = 1, options.mask_w = 2;
  CHECK(both(options, false, true, 8) == ENGINE_OK);
  options.normalize = 1;
  CHECK(cuda().inject_noise(device.handle, {nullptr, 0}, {nullptr, 0}, {nullptr, 0}, &options, nullptr) == ENGINE_OK);
  // what is drawn has the right length, and the rest is checked all the same
  engine_inject_options mixing = {};
  mixing.mix = 0.5;
  const auto drawing = [&](engine_cuda_draw draw, size_t length) {
    return cuda().inject_noise(device.handle, {eight.data(), length}, in(eight), in(eight), &mixing, &draw);
  };
  CHECK(drawing({1, 4, 256, 1.0f}, 8) == ENGINE_OK && drawing({1, 4, 0, 1.0f}, 4) == ENGINE_BAD_LENGTH);
  CHECK(drawing({1, 3, 256, 1.0f}, 8) == ENGINE_BAD_ARGUMENT && drawing({1, 4, 255, 1.0f}, 8) == ENGINE_BAD_ARGUMENT);
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
    deviations(device);
    many_groups(device);
    injected(device, false);
    injected(device, true);
    zero_deviation(device);
    refused(device);
    deviations_of_items(device);
    error_norms(device);
  }
  return finished();
}
