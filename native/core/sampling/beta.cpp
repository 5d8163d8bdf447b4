#include "beta.h"

#include <cmath>

#include "lk_libm.h"

namespace latentkit {
namespace {

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

}  // namespace latentkit
