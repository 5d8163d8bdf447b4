#include "sampling/sampling.h"

#include <algorithm>
#include <cmath>

#include "runtime/runtime.h"

namespace latentkit {
namespace {

constexpr size_t kSteps = 1000;
constexpr size_t kFineSteps = 10000;
constexpr float kPi = 3.14159265358979f;
constexpr float kCosineOffset = 8e-3f;

/* alpha t / (1 + (alpha - 1) t) */
float shifted(double alpha, float t) {
  if (alpha == 1.0) return t;
  return static_cast<float>(alpha) * t / (1.0f + static_cast<float>(alpha - 1.0) * t);
}

/* e^mu / (e^mu + (1 / t - 1)); PyTorch divides a number by a tensor by multiplying with the reciprocal. */
float flux_sigma(double mu, float t) {
  // powers of 2 whose reciprocals are exact: beyond them e would be 0 or infinite, and sigma NaN
  float e = std::clamp(static_cast<float>(lk_exp(mu)), 0x1p-126f, 0x1p126f);
  return e * (1.0f / (e + (1.0f / t - 1.0f)));
}

float squared_cosine(float angle) {
  float c = static_cast<float>(lk_cos(angle));
  return c * c;
}

float cascade_start() { return squared_cosine(kCosineOffset / (1.0f + kCosineOffset) * kPi * 0.5f); }

float cascade_sigma(double shift, float t) {
  float a = squared_cosine((t + kCosineOffset) / (1.0f + kCosineOffset) * kPi * 0.5f) / cascade_start();
  if (shift != 1.0) {
    float log_snr = log32(a / (1.0f - a)) + 2.0f * log32(1.0f / static_cast<float>(shift));
    a = 1.0f / (1.0f + exp32(-log_snr));
  }
  a = std::clamp(a, 0.0001f, 0.9999f);
  return std::sqrt((1.0f - a) / a);
}

float cascade_timestep(float sigma) {
  float variance = std::clamp(1.0f / (sigma * sigma + 1.0f), 0.0f, 1.0f);
  float angle = static_cast<float>(lk_acos(std::sqrt(variance * cascade_start())));
  return angle / (kPi * 0.5f) * (1.0f + kCosineOffset) - kCosineOffset;
}

/* The sigmas of a discrete sampling, not yet rounded. */
std::vector<double> discrete_sigmas(const engine_sampling &sampling) {
  double start = std::sqrt(sampling.linear_start), end = std::sqrt(sampling.linear_end);
  double step = (end - start) / (kSteps - 1);
  double product = 1.0;
  std::vector<double> cumulative(kSteps);
  for (size_t i = 0; i < kSteps; i++) {
    bool low_half = i < kSteps / 2;
    double root = low_half ? start + step * static_cast<double>(i) : end - step * static_cast<double>(kSteps - 1 - i);
    product *= 1.0 - root * root;
    cumulative[i] = product;
  }
  if (sampling.zsnr != 0) {
    double first = std::sqrt(cumulative.front()), last = std::sqrt(cumulative.back());
    for (double &a : cumulative) {
      double root = (std::sqrt(a) - last) * (first / (first - last));
      a = root * root;
    }
    cumulative.back() = 4.8973451890853435e-08;
  }
  for (double &a : cumulative) a = std::sqrt((1.0 - a) / a);
  return cumulative;
}

/* The table of a discrete sampling: that of Stable Diffusion 1, 2 and XL is kept, nearly every call needs it. */
std::shared_ptr<const DiscreteTable> discrete_table(const engine_sampling &sampling) {
  static constexpr engine_sampling kCommon = {ENGINE_DISCRETE, 0, 0.00085, 0.012, 0, 0, 1, 1};
  static const auto common = std::make_shared<const DiscreteTable>(kCommon);
  const bool is_common = sampling.linear_start == kCommon.linear_start && sampling.linear_end == kCommon.linear_end;
  return is_common && sampling.zsnr == 0 ? common : std::make_shared<const DiscreteTable>(sampling);
}

bool positive(double x) { return std::isfinite(x) && x > 0.0; }

lk_powers powers_of_two() {
  lk_powers powers;
  for (size_t i = 0; i < LK_POWERS; i++) {
    const double power = lk_pow(2.0, static_cast<double>(i) / LK_POWERS);
    powers.high[i] = static_cast<float>(power);
    powers.low[i] = static_cast<float>(power - powers.high[i]);
  }
  return powers;
}

/* What the kernel takes; it excludes overflow, subnormal results and NaN. */
bool is_plain(float x) { return std::fabs(x) <= 87.0f; }

}  // namespace

void exp32_all(float *x, size_t n) {
  static const lk_powers powers = powers_of_two();
  if (std::all_of(x, x + n, is_plain)) return kernels().exponentials(x, n, &powers);
  for (size_t i = 0; i < n; i++) {
    if (is_plain(x[i])) kernels().exponentials(x + i, 1, &powers);
    else x[i] = static_cast<float>(lk_exp(x[i]));
  }
}

// PyTorch's kernel counts the first half from the start and the second from the end, and fuses each step.
void linspace(float start, float end, float *out, size_t n) {
  if (n == 0) return;
  const float step = n > 1 ? (end - start) / static_cast<float>(static_cast<int32_t>(n - 1)) : 0.0f;
  const size_t half = n == 1 ? 1 : n / 2;
  kernels().ramp(out, half, start, step, 0);
  kernels().ramp(out + half, n - half, end, step, static_cast<int32_t>(half) - static_cast<int32_t>(n - 1));
}

bool valid(const engine_sampling &sampling) {
  switch (sampling.kind) {
    case ENGINE_DISCRETE:
      return positive(sampling.linear_start) && positive(sampling.linear_end) && sampling.linear_start < 1.0 &&
             sampling.linear_end < 1.0;
    case ENGINE_EDM:
      return positive(sampling.sigma_min) && positive(sampling.sigma_max) && sampling.sigma_min < sampling.sigma_max;
    case ENGINE_FLOW: return positive(sampling.shift) && positive(sampling.multiplier);
    case ENGINE_FLUX: return std::isfinite(sampling.shift);
    case ENGINE_CASCADE: return positive(sampling.shift);
    default: return false;
  }
}

DiscreteTable::DiscreteTable(const engine_sampling &sampling) {
  for (const double sigma : discrete_sigmas(sampling)) {
    sigmas.push_back(static_cast<float>(sigma));
    logs.push_back(static_cast<float>(lk_log(sigma)));
  }
}

SigmaMaps::SigmaMaps(const engine_sampling &sampling)
    : sampling_(sampling), table_(sampling.kind == ENGINE_DISCRETE ? discrete_table(sampling) : nullptr) {}

float SigmaMaps::nearest_index(float sigma) const {
  float log_sigma = log32(sigma), best = INFINITY;
  size_t index = 0;
  for (size_t i = 0; i < kSteps; i++) {
    float distance = std::fabs(log_sigma - table_->logs[i]);
    if (distance < best) {
      best = distance;
      index = i;
    }
  }
  return static_cast<float>(index);
}

inline float SigmaMaps::interpolated_log(float timestep) const {
  const auto last = static_cast<int32_t>(kSteps) - 1;
  const float t = timestep > 0.0f ? std::min(timestep, static_cast<float>(last)) : 0.0f;
  const auto low = static_cast<int32_t>(t), high = std::min(low + 1, last);
  const float weight = t - static_cast<float>(low);
  const float *logs = table_->logs.data();
  return (1.0f - weight) * logs[low] + weight * logs[high];
}

float SigmaMaps::timestep(float sigma) const {
  switch (sampling_.kind) {
    case ENGINE_DISCRETE: return nearest_index(sigma);
    case ENGINE_EDM: return 0.25f * log32(sigma);
    case ENGINE_FLOW: return sigma * static_cast<float>(sampling_.multiplier);
    case ENGINE_CASCADE: return cascade_timestep(sigma);
    default: return sigma;
  }
}

void SigmaMaps::to_sigmas(float *timesteps, size_t n) const {
  const bool has_logs = sampling_.kind == ENGINE_DISCRETE;
  for (size_t i = 0; i < n; i++) timesteps[i] = has_logs ? interpolated_log(timesteps[i]) : sigma(timesteps[i]);
  if (has_logs) exp32_all(timesteps, n);
}

float SigmaMaps::sigma(float timestep) const {
  switch (sampling_.kind) {
    case ENGINE_DISCRETE: return exp32(interpolated_log(timestep));
    case ENGINE_EDM: return exp32(timestep / 0.25f);
    case ENGINE_FLOW: return shifted(sampling_.shift, timestep / static_cast<float>(sampling_.multiplier));
    case ENGINE_CASCADE: return cascade_sigma(sampling_.shift, timestep);
    default: return flux_sigma(sampling_.shift, timestep);
  }
}

}  // namespace latentkit

size_t engine_sampling_size(const engine_sampling *sampling) {
  if (!latentkit::valid(*sampling)) return 0;
  bool fine = sampling->kind == ENGINE_FLUX || sampling->kind == ENGINE_CASCADE;
  return fine ? latentkit::kFineSteps : latentkit::kSteps;
}

engine_status engine_sampling_table(const engine_sampling *sampling, engine_f32 out) {
  using namespace latentkit;
  size_t size = engine_sampling_size(sampling);
  if (size == 0) return ENGINE_BAD_ARGUMENT;
  if (out.len != size) return ENGINE_BAD_LENGTH;
  return guarded([&] {
    if (sampling->kind == ENGINE_DISCRETE) {
      const auto table = discrete_table(*sampling);
      std::copy(table->sigmas.begin(), table->sigmas.end(), out.data);
    } else if (sampling->kind == ENGINE_EDM) {
      linspace(static_cast<float>(lk_log(sampling->sigma_min)), static_cast<float>(lk_log(sampling->sigma_max)),
               out.data, size);
      exp32_all(out.data, size);
    } else {
      SigmaMaps maps(*sampling);
      float scale = sampling->kind == ENGINE_FLOW ? static_cast<float>(sampling->multiplier) : 1.0f;
      for (size_t i = 0; i < size; i++) {
        out.data[i] = maps.sigma(static_cast<float>(i + 1) / static_cast<float>(size) * scale);
      }
    }
    return ENGINE_OK;
  });
}

engine_status engine_sampling_timestep(const engine_sampling *sampling, float sigma, float *out) {
  using namespace latentkit;
  if (!valid(*sampling) || !(sigma > 0.0f)) return ENGINE_BAD_ARGUMENT;
  return guarded([&] {
    *out = SigmaMaps(*sampling).timestep(sigma);
    return ENGINE_OK;
  });
}

engine_status engine_sampling_sigma(const engine_sampling *sampling, float timestep, float *out) {
  using namespace latentkit;
  if (!valid(*sampling)) return ENGINE_BAD_ARGUMENT;
  return guarded([&] {
    *out = SigmaMaps(*sampling).sigma(timestep);
    return ENGINE_OK;
  });
}

engine_status engine_linspace(float start, float end, engine_f32 out) {
  if (out.len > size_t{1} << 24) return ENGINE_BAD_LENGTH;
  latentkit::linspace(start, end, out.data, out.len);
  return ENGINE_OK;
}
