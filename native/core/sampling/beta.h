// Quantiles of the beta distribution with both parameters 0.6, the one the beta scheduler uses.
#pragma once

namespace latentkit {

/* x with I_x(0.6, 0.6) = p, 0 <= p <= 1. */
double beta_quantile(double p);

}  // namespace latentkit
