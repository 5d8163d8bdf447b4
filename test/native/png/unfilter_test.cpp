#include <cstdlib>

#include "check.h"
#include "runtime/dispatch.h"

namespace {

using Bytes = std::vector<uint8_t>;

/* The PNG specification's words, byte by byte. */
Bytes expected(int filter, const Bytes &row, const Bytes &above, size_t step) {
  Bytes out(row.size());
  for (size_t i = 0; i < row.size(); i++) {
    const int left = i >= step ? out[i - step] : 0, up = above[i], corner = i >= step ? above[i - step] : 0;
    const int p = left + up - corner;
    const int by_left = std::abs(p - left), by_up = std::abs(p - up), by_corner = std::abs(p - corner);
    const int paeth = by_left <= by_up && by_left <= by_corner ? left : by_up <= by_corner ? up : corner;
    const int added[] = {0, left, up, (left + up) / 2, paeth};
    out[i] = static_cast<uint8_t>(row[i] + added[filter]);
  }
  return out;
}

Bytes octets(size_t n, uint32_t seed, bool extreme) {
  Bytes bytes(n);
  const std::vector<float> from = numbers(n, seed, 128.0f);
  for (size_t i = 0; i < n; i++) {
    bytes[i] = static_cast<uint8_t>(static_cast<int>(from[i]) + 128);
    if (extreme) bytes[i] = bytes[i] < 100 ? 0 : bytes[i] > 156 ? 255 : 128;
  }
  return bytes;
}

void rows() {
  uint32_t seed = 1;
  for (const std::string &isa : supported_isas()) {
    CHECK(engine_set_isa(isa.c_str()) == ENGINE_OK);
    const lk_kernels &kernels = latentkit::kernels();
    for (const size_t step : {1, 2, 3, 4, 6, 8})
      for (const size_t pixels : {1, 2, 3, 4, 5, 16, 21, 22, 64, 65, 333})
        for (int filter = 0; filter <= 4; filter++)
          for (const bool extreme : {false, true}) {
            const size_t n = step * pixels;
            const Bytes row = octets(n, seed++, extreme), above = octets(n, seed++, extreme);
            const Bytes reference = expected(filter, row, above, step);
            Bytes apart(n);
            kernels.unfilter(filter, apart.data(), row.data(), above.data(), n, step);
            CHECK(apart == reference);
            // over its own filter byte, as a row lies in the inflated data
            Bytes in_place(1 + n);
            std::memcpy(in_place.data() + 1, row.data(), n);
            kernels.unfilter(filter, in_place.data(), in_place.data() + 1, above.data(), n, step);
            CHECK(std::memcmp(in_place.data(), reference.data(), n) == 0);
          }
  }
}

}  // namespace

int main() {
  rows();
  return report();
}
