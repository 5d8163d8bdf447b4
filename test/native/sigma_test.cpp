// Tables, maps and schedules: shapes, edges and refusals. The numbers themselves are compared in the golden tests.
#include <cmath>
#include <limits>

#include "check.h"
#include "lk_libm.h"
#include "sampling/sampling.h"

namespace {

engine_sampling discrete(bool zsnr) { return {ENGINE_DISCRETE, zsnr, 0.00085, 0.012, 0, 0, 0, 0}; }
engine_sampling edm() { return {ENGINE_EDM, 0, 0, 0, 0.002, 80.0, 0, 0}; }
engine_sampling flow() { return {ENGINE_FLOW, 0, 0, 0, 0, 0, 3.0, 1000.0}; }
engine_sampling flux() { return {ENGINE_FLUX, 0, 0, 0, 0, 0, 1.15, 0}; }
engine_sampling cascade() { return {ENGINE_CASCADE, 0, 0, 0, 0, 0, 2.0, 0}; }

std::vector<float> table_of(const engine_sampling &sampling) {
  std::vector<float> table(engine_sampling_size(&sampling));
  CHECK(engine_sampling_table(&sampling, out(table)) == ENGINE_OK);
  return table;
}

std::vector<float> schedule(const engine_sampling &sampling, const std::vector<float> &table, int scheduler, int steps,
                            bool extra = false, double denoise = 1.0) {
  size_t need = 0;
  engine_status status = engine_schedule(&sampling, in(table), scheduler, steps, extra, denoise, {nullptr, 0}, &need);
  CHECK(status == (need == 0 ? ENGINE_OK : ENGINE_NO_SPACE));
  std::vector<float> sigmas(need);
  size_t written = 0;
  CHECK(engine_schedule(&sampling, in(table), scheduler, steps, extra, denoise, out(sigmas), &written) == ENGINE_OK);
  CHECK(written == need);
  return sigmas;
}

void every_schedule() {
  for (const engine_sampling &sampling : {discrete(false), discrete(true), edm(), flow(), flux(), cascade()}) {
    std::vector<float> table = table_of(sampling);
    for (size_t i = 1; i < table.size(); i++) CHECK(table[i] >= table[i - 1] && table[i - 1] > 0.0f);
    for (int scheduler = 0; scheduler < ENGINE_SCHEDULER_COUNT; scheduler++) {
      for (int steps : {0, 1, 2, 3, 20, 999, 1000, 1001, 10000}) {
        std::vector<float> sigmas = schedule(sampling, table, scheduler, steps);
        bool free_length = scheduler == ENGINE_DDIM_UNIFORM || scheduler == ENGINE_BETA;
        CHECK(steps == 0 || free_length || sigmas.size() == static_cast<size_t>(steps) + 1);
        CHECK(!sigmas.empty() && sigmas.back() == 0.0f);
        for (size_t i = 1; i < sigmas.size(); i++) CHECK(sigmas[i] <= sigmas[i - 1] * 1.001f);
        std::vector<float> extra = schedule(sampling, table, scheduler, steps, true);
        CHECK(steps == 0 || free_length || extra.size() == static_cast<size_t>(steps) + 1);
      }
      CHECK(schedule(sampling, table, scheduler, 20, false, 0.0).empty());
      CHECK(schedule(sampling, table, scheduler, 20, false, -1.0).empty());
      CHECK(schedule(sampling, table, scheduler, 20, false, 0.5).size() <= 21);
      // the tail of the longer schedule
      std::vector<float> half = schedule(sampling, table, scheduler, 20, false, 0.5);
      std::vector<float> whole = schedule(sampling, table, scheduler, 40);
      std::vector<float> tail(whole.end() - static_cast<long>(half.size()), whole.end());
      CHECK(same_bytes(half, tail));
    }
  }
}

void maps_invert() {
  // the others' timestep is a plain multiple of sigma or knows no shift
  for (const engine_sampling &sampling : {discrete(false), discrete(true), edm()}) {
    std::vector<float> table = table_of(sampling);
    for (size_t i = 5; i < table.size(); i += 97) {
      float timestep, sigma;
      CHECK(engine_sampling_timestep(&sampling, table[i], &timestep) == ENGINE_OK);
      CHECK(engine_sampling_sigma(&sampling, timestep, &sigma) == ENGINE_OK);
      CHECK(std::fabs(sigma / table[i] - 1.0f) < 1e-5f);
    }
  }
}

void hostile_numbers() {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  engine_sampling s = discrete(false);
  std::vector<float> table = table_of(s), sigmas(30);
  size_t written = 7;
  for (double bad : {nan, infinity, 0.0, -1.0}) {
    engine_sampling d = discrete(false), e = edm(), f = flow(), c = cascade();
    d.linear_start = e.sigma_min = f.multiplier = c.shift = bad;
    for (const engine_sampling &sampling : {d, e, f, c}) CHECK(engine_sampling_size(&sampling) == 0);
  }
  engine_sampling x = flux();
  x.shift = nan;
  CHECK(engine_sampling_size(&x) == 0);
  x.kind = 9;
  CHECK(engine_sampling_size(&x) == 0);
  CHECK(engine_sampling_table(&x, out(table)) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_sampling_table(&s, {table.data(), 999}) == ENGINE_BAD_LENGTH);
  float value;
  CHECK(engine_sampling_timestep(&s, 0.0f, &value) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_sampling_timestep(&s, NAN, &value) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_sampling_timestep(&x, 1.0f, &value) == ENGINE_BAD_ARGUMENT);
  CHECK(engine_sampling_sigma(&x, 1.0f, &value) == ENGINE_BAD_ARGUMENT);
  for (float t : {NAN, INFINITY, -INFINITY, -5.0f, 1e30f}) {
    CHECK(engine_sampling_sigma(&s, t, &value) == ENGINE_OK);
    CHECK(value >= table.front() * 0.999f && value <= table.back() * 1.001f);
  }
  auto refused = [&](int scheduler, int steps, double denoise) {
    return engine_schedule(&s, in(table), scheduler, steps, 0, denoise, out(sigmas), &written) == ENGINE_BAD_ARGUMENT;
  };
  CHECK(refused(-1, 20, 1) && refused(9, 20, 1) && refused(0, -1, 1) && refused(0, 10001, 1) && refused(0, 20, nan));
  CHECK(refused(0, 10000, 1e-9));
  CHECK(engine_schedule(&s, {table.data(), 1}, 0, 20, 0, 1, out(sigmas), &written) == ENGINE_BAD_LENGTH);
  CHECK(engine_schedule(&s, in(table), 0, 30, 0, 1, out(sigmas), &written) == ENGINE_NO_SPACE && written == 31);
  // a table of any length is read within its ends
  for (size_t length : {size_t{2}, size_t{3}, size_t{50}}) {
    for (int scheduler = 0; scheduler < ENGINE_SCHEDULER_COUNT; scheduler++) {
      for (int steps : {1, 2, 7, 200}) {
        std::vector<float> room(2000);
        const std::vector<float> few(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(length));
        CHECK(engine_schedule(&s, in(few), scheduler, steps, 1, 1, out(room), &written) == ENGINE_OK);
        CHECK(written > 0 && room[written - 1] == 0.0f);
      }
    }
  }
  std::vector<float> wrong(1000, NAN);
  for (int scheduler = 0; scheduler < ENGINE_SCHEDULER_COUNT; scheduler++) {
    std::vector<float> room(2000);
    CHECK(engine_schedule(&s, in(wrong), scheduler, 20, 0, 1, out(room), &written) == ENGINE_OK);
  }
  CHECK(std::string(engine_scheduler_name(ENGINE_BETA)) == "beta" && engine_scheduler_name(9) == nullptr);
}

void quantiles() {
  CHECK(latentkit::beta_quantile(0.0) == 0.0 && latentkit::beta_quantile(1.0) == 1.0);
  CHECK(latentkit::beta_quantile(0.5) == 0.5);
  // published by the reference for five steps over 1,000 sigmas
  const int expected[] = {999, 876, 637, 362, 123};
  for (int i = 0; i < 5; i++) {
    CHECK(static_cast<int>(std::nearbyint(latentkit::beta_quantile(1.0 - i / 5.0) * 999.0)) == expected[i]);
  }
  double previous = 0.0;
  for (int i = 1; i <= 10000; i++) {
    double x = latentkit::beta_quantile(i / 10000.0);
    CHECK(x > previous);
    previous = x;
  }
}

void evenly_spaced() {
  std::vector<float> values(5);
  CHECK(engine_linspace(999.0f, 0.0f, out(values)) == ENGINE_OK);
  CHECK((values == std::vector<float>{999.0f, 749.25f, 499.5f, 249.75f, 0.0f}));
  values.assign(1, NAN);
  CHECK(engine_linspace(2.5f, 7.0f, out(values)) == ENGINE_OK && values[0] == 2.5f);
  CHECK(engine_linspace(2.5f, 7.0f, {nullptr, 0}) == ENGINE_OK);
  CHECK(engine_linspace(0.0f, 1.0f, {values.data(), (size_t{1} << 24) + 1}) == ENGINE_BAD_LENGTH);
  // each step is fused
  values.resize(10);
  CHECK(engine_linspace(-6.2146081924438477f, 4.382026672363281f, out(values)) == ENGINE_OK);
  const float step = (4.382026672363281f + 6.2146081924438477f) / 9.0f;
  for (int i = 0; i < 5; i++) {
    CHECK(values[i] == std::fma(step, static_cast<float>(i), -6.2146081924438477f));
    CHECK(values[9 - i] == std::fma(-step, static_cast<float>(i), 4.382026672363281f));
  }
}

/* Within one unit in the last place or two of the system's, which is itself within one. */
void elementary() {
  auto close = [](double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 4e-16 * std::fabs(b) + 1e-320;
  };
  for (int i = -2000; i <= 2000; i++) {
    double x = i * 0.37 + 0.011;
    CHECK(close(lk_exp(x * 0.9), std::exp(x * 0.9)) && close(lk_expm1(x * 0.01), std::expm1(x * 0.01)));
    CHECK(close(lk_sin(x), std::sin(x)) && close(lk_cos(x), std::cos(x)) && close(lk_tan(x), std::tan(x)));
    CHECK(close(lk_sin(x * 1e9), std::sin(x * 1e9)) && close(lk_atan(x), std::atan(x)));
    double positive = std::fabs(x) + 1e-3, unit = x / 1000.0;
    CHECK(close(lk_log(positive), std::log(positive)) && close(lk_log1p(unit), std::log1p(unit)));
    CHECK(close(lk_pow(positive, 1.0 / 7.0), std::pow(positive, 1.0 / 7.0)) && close(lk_acos(unit), std::acos(unit)));
  }
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(lk_exp(-infinity) == 0.0 && lk_exp(1000.0) == infinity && lk_log(0.0) == -infinity && std::isnan(lk_log(-1.0)));
  CHECK(std::isnan(lk_acos(2.0)) && std::isnan(lk_sin(infinity)));
  CHECK(lk_pow(0.0, 0.0) == 1.0 && lk_pow(2.0, -2000.0) == 0.0);
}

void exponentials() {
  std::vector<float> x = {0.0f, -0.0f, 0x1p-55f, 1.0f, -1.0f, 87.0f, -87.0f, 88.0f, -87.5f, -103.0f, 89.0f, -800.0f};
  for (const float rare : {INFINITY, -INFINITY, NAN}) x.insert(x.end(), 300, rare), x.push_back(2.5f);
  const std::vector<float> many = numbers(200003, 7, 90.0f);
  x.insert(x.end(), many.begin(), many.end());
  const std::vector<float> result = everywhere([&] {
    std::vector<float> values = x;
    latentkit::exp32_all(values.data(), values.size());
    return values;
  });
  for (size_t i = 0; i < x.size(); i++) {
    const double exact = lk_exp(x[i]);
    const auto rounded = static_cast<float>(exact);
    const double ulp = std::nextafter(rounded, INFINITY) - static_cast<double>(rounded);
    if (std::isnan(x[i])) CHECK(std::isnan(result[i]));
    else if (std::fabs(x[i]) > 87.0f) CHECK(result[i] == rounded);
    else CHECK(std::fabs(result[i] - exact) <= 0.57 * ulp);
    // the bits do not depend on the neighbours
    const float one = latentkit::exp32(x[i]);
    CHECK(std::isnan(x[i]) || one == result[i]);
  }
}

}  // namespace

int main() {
  every_schedule();
  maps_invert();
  hostile_numbers();
  quantiles();
  evenly_spaced();
  elementary();
  exponentials();
  return report();
}
