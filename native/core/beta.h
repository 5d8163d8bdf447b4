// Quantiles of the beta distribution with both parameters 0.6, the one the beta scheduler uses.
#ifndef LATENTKIT_BETA_H
#define LATENTKIT_BETA_H

namespace latentkit {

/* x with I_x(0.6, 0.6) = p, 0 <= p <= 1. */
double beta_quantile(double p);

}  // namespace latentkit

#endif
