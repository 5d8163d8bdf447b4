// e^x of many floats: the steps of lk_exp as a loop without branches, vectors of the same doubles, so the same bits.
#include "table.h"

extern "C" {
#include "exp_data.h"
}

namespace {

constexpr uint64_t kEntries = 1 << EXP_TABLE_BITS;

void exponentials(float *x, size_t n, const struct exp_data *data) {
  const double inverse = data->invln2N, shift = data->shift, high = data->negln2hiN, low = data->negln2loN;
  const double c2 = data->poly[0], c3 = data->poly[1], c4 = data->poly[2], c5 = data->poly[3];
  for (size_t i = 0; i < n; i++) {
    double v = (double)x[i], shifted = inverse * v + shift, k = shifted - shift;
    uint64_t bits = __builtin_bit_cast(uint64_t, shifted), entry = 2 * (bits % kEntries);
    double r = v + k * high + k * low, square = r * r;
    double tail = __builtin_bit_cast(double, data->tab[entry]);
    double scale = __builtin_bit_cast(double, data->tab[entry + 1] + (bits << (52 - EXP_TABLE_BITS)));
    double part = tail + r + square * (c2 + r * c3) + square * square * (c4 + r * c5);
    x[i] = (float)(scale + scale * part);
  }
}

}  // namespace

extern "C" void LK_JOIN(exponential, LK_ISA)(lk_kernels *table) { table->exponentials = exponentials; }
