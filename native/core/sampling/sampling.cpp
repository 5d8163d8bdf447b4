#include "sampling.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/dispatch.h"
#include "runtime/spans.h"

// last: it renames functions of <cmath>
extern "C" {
#include "exp_data.h"
}

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

float flux_sigma(double mu, float t) {
  float e = static_cast<float>(lk_exp(mu));
  return e / (e + (1.0f / t - 1.0f));
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

void discrete_table(const engine_sampling &sampling, float *out) {
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
  for (size_t i = 0; i < kSteps; i++) {
    out[i] = static_cast<float>(std::sqrt((1.0 - cumulative[i]) / cumulative[i]));
  }
}

/* The table of Stable Diffusion 1, 2 and XL, computed once: nearly every call needs it. */
struct CommonTable {
  static constexpr engine_sampling kOf = {ENGINE_DISCRETE, 0, 0.00085, 0.012, 0, 0, 1, 1};
  std::array<float, kSteps> values;

  CommonTable() { discrete_table(kOf, values.data()); }
  static bool is(const engine_sampling &s) {
    return s.linear_start == kOf.linear_start && s.linear_end == kOf.linear_end && s.zsnr == 0;
  }
};

void edm_table(const engine_sampling &sampling, float *out) {
  double low = lk_log(sampling.sigma_min), high = lk_log(sampling.sigma_max);
  for (size_t i = 0; i < kSteps; i++) {
    double t = static_cast<double>(i) / (kSteps - 1);
    out[i] = exp32(static_cast<float>(low + (high - low) * t));
  }
}

bool positive(double x) { return std::isfinite(x) && x > 0.0; }

}  // namespace

void exp32_all(float *x, size_t n) {
  constexpr size_t kBlock = 256;
  for (size_t i = 0; i < n; i += kBlock) {
    const size_t count = std::min(n - i, kBlock);
    bool is_plain = true;  // no step overflows, and e^x is not 1 + x
    for (size_t k = i; k < i + count; k++) is_plain &= std::fabs(x[k]) >= 0x1p-54f && std::fabs(x[k]) < 512.0f;
    if (is_plain) kernels().exponentials(x + i, count, &__exp_data);
    else std::transform(x + i, x + i + count, x + i, exp32);
  }
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

SigmaMaps::SigmaMaps(const engine_sampling &sampling, engine_cf32 table) : sampling_(sampling) {
  if (sampling.kind != ENGINE_DISCRETE) return;
  log_sigmas_.resize(table.len);
  for (size_t i = 0; i < table.len; i++) log_sigmas_[i] = log32(table.data[i]);
}

float SigmaMaps::nearest_index(float sigma) const {
  float log_sigma = log32(sigma), best = INFINITY;
  size_t index = 0;
  for (size_t i = 0; i < log_sigmas_.size(); i++) {
    float distance = std::fabs(log_sigma - log_sigmas_[i]);
    if (distance < best) {
      best = distance;
      index = i;
    }
  }
  return static_cast<float>(index);
}

inline float SigmaMaps::interpolated_log(float timestep) const {
  const auto last = static_cast<int32_t>(log_sigmas_.size()) - 1;
  const float t = timestep > 0.0f ? std::min(timestep, static_cast<float>(last)) : 0.0f;
  const auto low = static_cast<int32_t>(t), high = std::min(low + 1, last);
  const float weight = t - static_cast<float>(low);
  const float *logs = log_sigmas_.data();
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
      if (!CommonTable::is(*sampling)) {
        discrete_table(*sampling, out.data);
      } else {
        static const CommonTable common;
        std::copy(common.values.begin(), common.values.end(), out.data);
      }
    } else if (sampling->kind == ENGINE_EDM) {
      edm_table(*sampling, out.data);
    } else {
      SigmaMaps maps(*sampling, {nullptr, 0});
      float scale = sampling->kind == ENGINE_FLOW ? static_cast<float>(sampling->multiplier) : 1.0f;
      for (size_t i = 0; i < size; i++) {
        out.data[i] = maps.sigma(static_cast<float>(i + 1) / static_cast<float>(size) * scale);
      }
    }
    return ENGINE_OK;
  });
}

engine_status engine_sampling_timestep(const engine_sampling *sampling, engine_cf32 table, float sigma, float *out) {
  using namespace latentkit;
  size_t size = engine_sampling_size(sampling);
  if (size == 0 || !(sigma > 0.0f)) return ENGINE_BAD_ARGUMENT;
  if (table.len != size) return ENGINE_BAD_LENGTH;
  return guarded([&] {
    *out = SigmaMaps(*sampling, table).timestep(sigma);
    return ENGINE_OK;
  });
}

engine_status engine_sampling_sigma(const engine_sampling *sampling, engine_cf32 table, float timestep, float *out) {
  using namespace latentkit;
  size_t size = engine_sampling_size(sampling);
  if (size == 0) return ENGINE_BAD_ARGUMENT;
  if (table.len != size) return ENGINE_BAD_LENGTH;
  return guarded([&] {
    *out = SigmaMaps(*sampling, table).sigma(timestep);
    return ENGINE_OK;
  });
}
