// The nine schedulers: falling sigmas that end in 0.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/runtime.h"
#include "sampling/sampling.h"

namespace latentkit {
namespace {

/* ---- the quantile of the beta scheduler ---- */
constexpr double kShape = 0.6;
constexpr double kComplete = 2.4153442080024714; /* B(0.6, 0.6) = gamma(0.6)^2 / gamma(1.2) */

/* I_x(a, a), 0 < x <= 1/2, by the power series around 0; each term is under half of the one before. */
double regularized(double x) {
  double sum = 1.0 / kShape, term = 1.0;
  for (int n = 1; n < 100; n++) {
    term *= (static_cast<double>(n) - kShape) / static_cast<double>(n) * x;
    double add = term / (kShape + static_cast<double>(n));
    sum += add;
    if (add < sum * 1e-17) break;
  }
  return lk_pow(x, kShape) * sum / kComplete;
}

double lower_quantile(double p) {
  if (p <= 0.0) return 0.0;
  // the leading term alone, then Halley's steps, which gain three times the digits each
  double x = lk_pow(p * kShape * kComplete, 1.0 / kShape);
  if (x > 0.5) x = 0.5;
  for (int i = 0; i < 20; i++) {
    double density = lk_pow(x * (1.0 - x), kShape - 1.0) / kComplete;
    double newton = (regularized(x) - p) / density;
    double curvature = (kShape - 1.0) * (1.0 / x - 1.0 / (1.0 - x));
    double step = newton / (1.0 - 0.5 * newton * curvature);
    double next = x - step;
    if (!(next > 0.0)) next = x * 0.5;
    if (next > 0.5) next = 0.5;
    bool settled = std::fabs(next - x) <= x * 1e-15;
    x = next;
    if (settled) break;
  }
  return x;
}

}  // namespace

double beta_quantile(double p) {
  // equal parameters: the distribution is its own mirror image; its middle is exact, for indices that are rounded
  if (p == 0.5) return 0.5;
  return p < 0.5 ? lower_quantile(p) : 1.0 - lower_quantile(1.0 - p);
}

/* ---- the schedulers ---- */
namespace {

using Sigmas = std::vector<float>;

constexpr int32_t kMaxSteps = 10000;
constexpr double kMaxComputedSteps = 1000000.0;
constexpr float kAboutZero = 0.00001f;

struct Context {
  const engine_sampling &sampling;
  engine_cf32 table;

  float smallest() const { return table.data[0]; }
  float largest() const { return table.data[table.len - 1]; }
};

/* Evenly spaced, with room for one more. */
Sigmas spaced(float start, float end, size_t n) {
  Sigmas values;
  values.reserve(n + 1);
  values.resize(n);
  linspace(start, end, values.data(), n);
  return values;
}

Sigmas simple(const Context &at, size_t steps) {
  Sigmas out(steps + 1);
  for (size_t i = 0; i < steps; i++) out[i] = at.table.data[at.table.len - 1 - i * at.table.len / steps];
  return out;
}

Sigmas sgm_uniform(const Context &at, size_t steps) {
  SigmaMaps maps(at.sampling);
  Sigmas out = spaced(maps.timestep(at.largest()), maps.timestep(at.smallest()), steps + 1);
  maps.to_sigmas(out.data(), out.size());
  out.back() = 0.0f;
  return out;
}

Sigmas normal(const Context &at, size_t steps) {
  SigmaMaps maps(at.sampling);
  float first = maps.timestep(at.largest()), last = maps.timestep(at.smallest());
  bool ends_in_zero = std::fabs(maps.sigma(last)) <= kAboutZero;
  Sigmas out = spaced(first, last, ends_in_zero ? steps + 1 : steps);
  maps.to_sigmas(out.data(), out.size());
  if (!ends_in_zero) out.push_back(0.0f);
  return out;
}

Sigmas karras(const Context &at, size_t steps) {
  const double low = lk_pow(at.smallest(), 1.0 / 7.0), root = lk_pow(at.largest(), 1.0 / 7.0);
  // torch rounds the roots when it meets float32: their difference once, not each of them before it
  const float high = static_cast<float>(root), span = static_cast<float>(low - root);
  Sigmas out = spaced(0.0f, 1.0f, steps);
  for (float &value : out) {
    float x = high + value * span;
    // as exact as torch's power: each float32 product would add an error
    const double wide = x, square = wide * wide;
    value = static_cast<float>(square * square * square * wide);
  }
  out.push_back(0.0f);
  return out;
}

Sigmas exponential(const Context &at, size_t steps) {
  Sigmas out = spaced(log32(at.largest()), log32(at.smallest()), steps);
  exp32_all(out.data(), out.size());
  out.push_back(0.0f);
  return out;
}

Sigmas ddim_uniform(const Context &at, size_t steps) {
  bool ends_in_zero = std::fabs(at.table.data[1]) <= kAboutZero;
  size_t stride = std::max<size_t>(at.table.len / (ends_in_zero ? steps + 1 : steps), 1);
  Sigmas out;
  if (!ends_in_zero) out.push_back(0.0f);
  for (size_t i = 1; i < at.table.len; i += stride) out.push_back(at.table.data[i]);
  std::reverse(out.begin(), out.end());
  return out;
}

Sigmas beta(const Context &at, size_t steps) {
  Sigmas out;
  size_t previous = at.table.len;
  for (size_t i = 0; i < steps; i++) {
    double quantile = beta_quantile(1.0 - static_cast<double>(i) / static_cast<double>(steps));
    size_t index = static_cast<size_t>(std::nearbyint(quantile * static_cast<double>(at.table.len - 1)));
    if (index != previous) out.push_back(at.table.data[index]);
    previous = index;
  }
  out.push_back(0.0f);
  return out;
}

Sigmas linear_quadratic(const Context &at, size_t steps) {
  if (steps == 1) return {at.largest(), 0.0f};
  constexpr double h = 0.025;
  size_t linear = steps / 2;
  double n = static_cast<double>(steps), l = static_cast<double>(linear), q = n - l;
  double d = l - h * n, a = d / (l * q * q), b = h / l - 2.0 * d / (q * q);
  Sigmas out(steps + 1);
  for (size_t i = 0; i < steps; i++) {
    double x = static_cast<double>(i);
    double y = i < linear ? x * h / l : a * (x * x) + b * x + a * (l * l);
    out[i] = static_cast<float>(1.0 - y) * at.largest();
  }
  return out;
}

Sigmas kl_optimal(const Context &at, size_t steps) {
  if (steps == 1) return {at.largest(), 0.0f};
  float low = static_cast<float>(lk_atan(at.smallest())), high = static_cast<float>(lk_atan(at.largest()));
  Sigmas out(steps + 1);
  for (size_t i = 0; i < steps; i++) {
    float x = static_cast<float>(i) / static_cast<float>(steps - 1);
    out[i] = static_cast<float>(lk_tan(x * low + (1.0f - x) * high));
  }
  return out;
}

struct Scheduler {
  const char *name;
  Sigmas (*compute)(const Context &at, size_t steps); /* steps at least 1 */
};

// in the order of engine_scheduler
constexpr Scheduler kSchedulers[ENGINE_SCHEDULER_COUNT] = {
    {"simple", simple},           {"sgm_uniform", sgm_uniform},           {"karras", karras},
    {"exponential", exponential}, {"ddim_uniform", ddim_uniform},         {"beta", beta},
    {"normal", normal},           {"linear_quadratic", linear_quadratic}, {"kl_optimal", kl_optimal},
};

Sigmas schedule(const Context &at, const Scheduler &scheduler, size_t steps, bool extra_step) {
  if (steps == 0) return {0.0f};
  Sigmas out = scheduler.compute(at, extra_step ? steps + 1 : steps);
  if (extra_step && out.size() > 1) out.erase(out.end() - 2);
  return out;
}

/* floor(steps / denoise), or steps if all are computed. */
double computed_steps(int32_t steps, double denoise) { return denoise > 0.9999 ? steps : std::floor(steps / denoise); }

}  // namespace
}  // namespace latentkit

const char *engine_scheduler_name(int scheduler) {
  return scheduler >= 0 && scheduler < ENGINE_SCHEDULER_COUNT ? latentkit::kSchedulers[scheduler].name : nullptr;
}

engine_status engine_schedule(const engine_sampling *sampling, engine_cf32 table, int scheduler, int32_t steps,
                              int extra_step, double denoise, engine_f32 out, size_t *written) {
  using namespace latentkit;
  *written = 0;
  if (engine_sampling_size(sampling) == 0 || engine_scheduler_name(scheduler) == nullptr) return ENGINE_BAD_ARGUMENT;
  if (steps < 0 || steps > kMaxSteps || std::isnan(denoise)) return ENGINE_BAD_ARGUMENT;
  if (table.len < 2) return ENGINE_BAD_LENGTH;
  if (denoise <= 0.0) return ENGINE_OK;
  double computed = computed_steps(steps, denoise);
  if (computed > kMaxComputedSteps) return ENGINE_BAD_ARGUMENT;
  return guarded([&] {
    Context at{*sampling, table};
    Sigmas sigmas = schedule(at, kSchedulers[scheduler], static_cast<size_t>(computed), extra_step != 0);
    size_t count = sigmas.size();
    if (denoise <= 0.9999) count = std::min(count, static_cast<size_t>(steps) + 1);
    *written = count;
    if (count > out.len) return ENGINE_NO_SPACE;
    std::memcpy(out.data, sigmas.data() + (sigmas.size() - count), count * sizeof(float));
    return ENGINE_OK;
  });
}
