// Operations element by element: the device against the CPU, bit for bit, on 200 random lengths each.
#include <functional>

#include "cuda-check.h"

namespace {

void scaled(const Device &device) {
  Choices choose(1);
  for (int round = 0; round < 200; round++) {
    const size_t n = choose.length(70000);
    const float k = choose.number();
    const std::vector<float> x = numbers(n, choose.seed());
    std::vector<float> wanted(n);
    CHECK(engine_scale(out(wanted), in(x), k) == ENGINE_OK);
    OnDevice<float> from(device, x, choose.below(5)), to(device, n, choose.below(5));
    CHECK(cuda().scale(device.handle, out(to), in(from), k) == ENGINE_OK);
    CHECK(same_values(wanted, to.read()));
  }
}

}  // namespace

int main() {
  configure("");
  Device device;
  scaled(device);
  CHECK(counted("misuses") == 0);
  return report();
}
