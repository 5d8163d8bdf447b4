// A model sampling: its table of sigmas and the maps between sigma and timestep. float32, one rounding an operation.
#pragma once

#include <cstddef>
#include <vector>

#include "engine.h"
#include "lk_libm.h"

namespace latentkit {

inline float log32(float x) { return static_cast<float>(lk_log(x)); }
inline float exp32(float x) { return static_cast<float>(lk_exp(x)); }

/* exp32 of each, in place. */
void exp32_all(float *x, size_t n);

/* Every number is within its range. */
bool valid(const engine_sampling &sampling);

/* The maps of a valid sampling and its table, which must outlive it. Throws std::bad_alloc. */
class SigmaMaps {
 public:
  SigmaMaps(const engine_sampling &sampling, engine_cf32 table);
  float timestep(float sigma) const;
  float sigma(float timestep) const;
  /* Timesteps to their sigmas, in place. */
  void to_sigmas(float *timesteps, size_t n) const;

 private:
  float nearest_index(float sigma) const;
  float interpolated_log(float timestep) const;

  const engine_sampling &sampling_;
  std::vector<float> log_sigmas_; /* discrete only */
};

}  // namespace latentkit
