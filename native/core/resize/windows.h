// Windows of a resize with antialias: the values that make one, and what each of them weighs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace latentkit {

/* One side of a resize of `in` values to `whole`, of which `count` are made, those from `from` on. */
struct Side {
  size_t in, whole, from, count;
};

/* The weight of what lies x away, in values of the smaller side, and how far it reaches: 0 for the nearest value alone.
 * Real is what each step is rounded to. */
template <class Real>
struct Filter {
  double reach;
  Real (*at)(Real x);
};

/* Keys, "Cubic convolution interpolation for digital image processing", 1981, a = -0.5. Each product with its sum is
 * rounded once. */
template <class Real>
Real cubic(Real x) {
  const double t = std::fabs(x);
  const auto next = [t](Real sum, double term) { return static_cast<Real>(sum * t + term); };
  if (t < 1.0) return next(next(next(1.5, -2.5), 0.0), 1.0);
  return t < 2.0 ? next(next(next(-0.5, 2.5), -4.0), 2.0) : 0;
}

/* Calls put(first, shares, taps) for each value that is made: the positions from `first` on, and what they weigh, 1 in
 * all. Throws std::bad_alloc. */
template <class Real, class Put>
void each_window(const Side &side, const Filter<Real> &filter, Put &&put) {
  const auto in = static_cast<double>(side.in), whole = static_cast<double>(side.whole);
  const Real scale = static_cast<Real>(in / whole), wide = std::max(scale, Real{1});
  const Real reach = static_cast<Real>(filter.reach * wide), inverse = 1 / wide;
  // far beyond 2^24 positions a float steps over values
  const auto position = [in](double at) { return static_cast<size_t>(std::clamp(at, 0.0, in)); };
  std::vector<Real> shares;
  // Pillow adds step to step for the nearest: a sum may fall short of a whole number
  const double step = in / whole;
  double nearest = step * 0.5;
  if (filter.reach == 0.0) {
    for (size_t i = 0; i < side.from; i++) nearest += step;
  }
  for (size_t i = 0; i < side.count; i++) {
    const double centre = static_cast<double>(side.from + i) + 0.5;
    if (filter.reach == 0.0) {
      const Real all = 1;
      put(std::min(position(nearest), side.in - 1), &all, size_t{1});
      nearest += step;
      continue;
    }
    const Real middle = static_cast<Real>(scale * centre);
    const size_t first = position(static_cast<double>(middle - reach) + 0.5);
    const size_t end = std::max(first, position(static_cast<double>(middle + reach) + 0.5));
    shares.resize(end - first);
    Real total = 0;
    for (size_t k = 0; k < shares.size(); k++) {
      const Real from_middle = static_cast<Real>(static_cast<double>(k + first) - middle);
      shares[k] = filter.at(static_cast<Real>((from_middle + 0.5) * inverse));
      total += shares[k];
    }
    for (Real &share : shares) share = total == 0 ? share : share / total;
    put(first, shares.data(), shares.size());
  }
}

}  // namespace latentkit
