// Writes PNG files by hand, valid or not: chunks with right check sums, data stored without compression.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace png_files {

using Bytes = std::vector<uint8_t>;

inline void put32(Bytes &to, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<uint8_t>(value >> shift));
}

inline uint32_t crc(const uint8_t *data, size_t len) {
  uint32_t c = ~0u;
  for (size_t i = 0; i < len; i++) {
    c ^= data[i];
    for (int k = 0; k < 8; k++) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
  }
  return ~c;
}

inline Bytes signature() { return {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'}; }

inline void chunk(Bytes &to, const char *type, const Bytes &data) {
  put32(to, static_cast<uint32_t>(data.size()));
  const size_t start = to.size();
  to.insert(to.end(), type, type + 4);
  to.insert(to.end(), data.begin(), data.end());
  put32(to, crc(to.data() + start, to.size() - start));
}

inline Bytes header(uint32_t width, uint32_t height, uint8_t depth, uint8_t colour, uint8_t interlace = 0) {
  Bytes data;
  put32(data, width);
  put32(data, height);
  data.insert(data.end(), {depth, colour, 0, 0, interlace});
  return data;
}

/* A zlib stream of stored blocks. */
inline Bytes stored(const Bytes &raw) {
  Bytes out = {0x78, 0x01};
  size_t at = 0;
  do {
    const size_t n = raw.size() - at < 65535 ? raw.size() - at : 65535;
    out.push_back(at + n == raw.size());
    for (const size_t v : {n, ~n}) {
      out.push_back(static_cast<uint8_t>(v));
      out.push_back(static_cast<uint8_t>(v >> 8));
    }
    out.insert(out.end(), raw.begin() + static_cast<long>(at), raw.begin() + static_cast<long>(at + n));
    at += n;
  } while (at < raw.size());
  uint32_t a = 1, b = 0;
  for (const uint8_t byte : raw) a = (a + byte) % 65521, b = (b + a) % 65521;
  put32(out, b << 16 | a);
  return out;
}

/* Repairs every check sum, so that a change reaches what lies behind them. */
inline void repair(Bytes &file) {
  size_t at = 8;
  while (at + 12 <= file.size()) {
    const size_t len = size_t{file[at]} << 24 | size_t{file[at + 1]} << 16 | size_t{file[at + 2]} << 8 | file[at + 3];
    if (len > file.size() - at - 12) return;
    const uint32_t sum = crc(&file[at + 4], len + 4);
    for (size_t k = 0; k < 4; k++) file[at + 8 + len + k] = static_cast<uint8_t>(sum >> (24 - 8 * k));
    at += len + 12;
  }
}

}  // namespace png_files
