// A model sampling: its table of sigmas and the maps between sigma and timestep. float32, one rounding an operation.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine.h"
#include "lk_libm.h"

namespace latentkit {

inline float log32(float x) { return static_cast<float>(lk_log(x)); }

/* e^x of each, in place, within 0.57 ulp. */
void exp32_all(float *x, size_t n);

inline float exp32(float x) {
  exp32_all(&x, 1);
  return x;
}

/* n values from start to end as torch.linspace has them; n at most 2^24. */
void linspace(float start, float end, float *out, size_t n);

/* x with I_x(0.6, 0.6) = p, 0 <= p <= 1: the quantile of the beta distribution that the beta scheduler uses. */
double beta_quantile(double p);

/* Every number is within its range. */
bool valid(const engine_sampling &sampling);

/* The table of a discrete sampling. Its logarithms are those of the unrounded sigmas. */
struct DiscreteTable {
  std::vector<float> sigmas, logs;

  explicit DiscreteTable(const engine_sampling &sampling);
};

/* The maps of a valid sampling, which must outlive it. Throws std::bad_alloc. */
class SigmaMaps {
 public:
  explicit SigmaMaps(const engine_sampling &sampling);
  float timestep(float sigma) const;
  float sigma(float timestep) const;
  /* Timesteps to their sigmas, in place. */
  void to_sigmas(float *timesteps, size_t n) const;

 private:
  float nearest_index(float sigma) const;
  float interpolated_log(float timestep) const;

  const engine_sampling &sampling_;
  std::shared_ptr<const DiscreteTable> table_; /* discrete only */
};

}  // namespace latentkit
