// Every answer a driver can give, and memory: blocks, their reuse, copies, and what happens when there is no more.
#include <cstring>

#include "cuda-check.h"

namespace {

void opening() {
  configure("");
  {
    Device device;
    CHECK(device.status == ENGINE_OK && device.why[0] == '\0');
  }
  CHECK(counted("leaked") == 0 && counted("misuses") == 0 && counted("bytes") == 0);
}

void copies() {
  configure("");
  Device device;
  // larger than the pieces that copies are cut into
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{511}, size_t{4} << 20, (size_t{9} << 20) + 3}) {
    std::vector<uint8_t> data(bytes), back(bytes, 1);
    for (size_t i = 0; i < bytes; i++) data[i] = static_cast<uint8_t>(i * 2654435761u >> 13);
    void *a = nullptr, *b = nullptr;
    CHECK(cuda().take(device.handle, bytes, &a) == ENGINE_OK && cuda().take(device.handle, bytes, &b) == ENGINE_OK);
    CHECK((a == nullptr) == (bytes == 0));
    std::vector<uint8_t> source = data;
    CHECK(cuda().upload(device.handle, a, source.data(), bytes) == ENGINE_OK);
    std::fill(source.begin(), source.end(), 0);
    CHECK(cuda().copy(device.handle, b, a, bytes) == ENGINE_OK);
    CHECK(cuda().download(device.handle, back.data(), b, bytes) == ENGINE_OK);
    CHECK(same_bytes(data, back));
    cuda().give(device.handle, a);
    cuda().give(device.handle, b);
  }
  CHECK(counted("misuses") == 0);
}

}  // namespace

int main() {
  opening();
  copies();
  return report();
}
