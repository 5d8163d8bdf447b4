// This package's deflate, read back by zlib: units of any size over data that the input spells out or repeats.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "deflate/deflate.h"
#include "engine.h"
#include "expect.h"

using namespace latentkit;
using Bytes = std::vector<uint8_t>;

namespace {

constexpr size_t kMostUnits = 48;
constexpr const char *kSets[] = {"baseline", "avx2", "avx512"};

/* The input as orders: n bytes as they are, n bytes again from a distance before, or n bytes of a generator. */
Bytes spell_out(const uint8_t *order, size_t len, size_t most) {
  Bytes out;
  uint32_t state = 1;
  const auto next = [&] { return len > 0 ? (len--, *order++) : uint8_t{0}; };
  while (len > 0 && out.size() < most) {
    const uint8_t kind = next();
    size_t n = (size_t{next()} + 1) << (kind >> 2 & 7);
    if ((kind & 3) == 0) {
      for (n = std::min(n, len); n > 0; n--) out.push_back(next());
    } else if ((kind & 3) == 1 && !out.empty()) {
      size_t distance = next();
      distance = std::min<size_t>((distance | size_t{next()} << 8) + 1, out.size());
      for (; n > 0; n--) out.push_back(out[out.size() - distance]);
    } else {
      const uint8_t mask = next();
      for (; n > 0; n--) out.push_back(static_cast<uint8_t>((state = state * 1664525u + 1013904223u) >> 24 & mask));
    }
  }
  return out;
}

/* search: 0 runs, 1 quick, 2 thorough, 3 sure to pay. */
Bytes compress(const Bytes &raw, size_t unit, int search) {
  std::vector<deflate::Unit> units;
  for (size_t at = 0; at < raw.size(); at += unit) {
    deflate::Unit u;
    u.raw = raw.data() + at;
    u.len = std::min(unit, raw.size() - at);
    deflate::survey(u);
    if (search >= 3) u.repeats = u.is_sure = true;
    units.push_back(std::move(u));
  }
  if (search == 0) deflate::find_runs(units);
  else deflate::find_matches(units, search == 1 ? deflate::kQuick : deflate::kThorough, deflate::kBrisk);
  deflate::Stream stream(std::move(units));
  Bytes out(stream.size());
  stream.write(out.data());
  return out;
}

void reads_back(const Bytes &raw, Bytes packed) {
  Bytes read(raw.size() + 1);
  z_stream z{};
  EXPECT(inflateInit2(&z, -15) == Z_OK);
  z.next_in = packed.data();
  z.avail_in = static_cast<uInt>(packed.size());
  z.next_out = read.data();
  z.avail_out = static_cast<uInt>(read.size());
  EXPECT(inflate(&z, Z_FINISH) == Z_STREAM_END);
  EXPECT(z.avail_in == 0 && z.avail_out == 1);
  inflateEnd(&z);
  EXPECT(std::equal(raw.begin(), raw.end(), read.begin()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
  if (len < 3) return 0;
  // an exact allocation: the sanitizer sees the first byte past the end
  const Bytes spelled = spell_out(data + 2, len - 2, size_t{1024} << (data[1] >> 5)),
              raw(spelled.begin(), spelled.end());
  if (raw.empty()) return 0;
  const size_t requested = data[0] < 128 ? 65535 - data[0] : (size_t{data[0]} - 127) << (data[1] & 7);
  const size_t unit = std::max(requested, raw.size() / kMostUnits + 1);
  const char *set = kSets[data[1] % 3];
  if (engine_isa_supported(set)) EXPECT(engine_set_isa(set) == ENGINE_OK);
  EXPECT(engine_set_threads(1 + (data[1] >> 3 & 1)) == ENGINE_OK);
  const int search = (data[1] + data[0]) % 4;
  const Bytes packed = compress(raw, unit, search);
  reads_back(raw, packed);
  // every set of instructions gives the same bytes
  EXPECT(engine_set_isa(kSets[0]) == ENGINE_OK);
  if (set != kSets[0]) EXPECT(compress(raw, unit, search) == packed);
  return 0;
}
