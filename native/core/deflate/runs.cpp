// Runs of one byte as matches at distance 1: what filters leave of flat areas, found without a table.
#include <algorithm>
#include <new>

#include "chains.h"
#include "deflate.h"
#include "runtime/little_endian.h"
#include "workspace.h"

namespace latentkit::deflate {
namespace {

constexpr size_t kStripe = 1;
constexpr uint64_t kFavour = 16; /* bits */
constexpr size_t kLeastRun = 12; /* bytes after the first: fewer may cost less as literals */

/* Bytes from p on that equal the one before each. */
size_t run_from(const uint8_t *p, const uint8_t *end) { return common(p, p - 1, static_cast<size_t>(end - p)); }

}  // namespace

bool find_runs(Unit &unit) {
  if (2 * (unit.plain_cost >> kBit) >= 3 * unit.len) return true;
  Counts counts;
  std::copy_n(unit.plain, 256, counts.literal);
  const Workspace<lk_sequence> memory(unit.len / kLeastRun + unit.len / kMaxMatch + 2);
  if (memory.get() == nullptr) return false;
  size_t size = 0;
  const uint8_t *const end = unit.raw + unit.len, *done = unit.raw;
  // eight equal bytes at a multiple of eight lie in every run that is long enough
  for (const uint8_t *p = unit.raw + 8; p + 8 <= end;) {
    if (little64(p) != little64(p - 1)) {
      p += 8;
      continue;
    }
    const uint8_t *first = p, *stop = p + run_from(p, end);
    while (first - 1 > done && first[-1] == first[-2]) first--;
    if (static_cast<size_t>(stop - first) >= kLeastRun) {
      const auto run = static_cast<size_t>(stop - first);
      for (size_t left = run; left >= 3;) {
        // the last match of a run is never shorter than the shortest there is
        const size_t length = left > kMaxMatch && left < kMaxMatch + 3 ? kMaxMatch - 3 : std::min(left, kMaxMatch);
        const Symbol symbol = length_symbol(length);
        counts.literal[symbol.symbol]++;
        counts.distance[0]++;
        counts.extra_bits += symbol.extra_bits;
        memory.get()[size++] = {static_cast<uint32_t>(first - done), static_cast<uint16_t>(length), 1};
        first += length;
        done = first;
        left -= length;
      }
      counts.literal[stop[-1]] -= static_cast<uint32_t>(run);
    }
    p += std::max<size_t>(8, static_cast<size_t>(stop - p) & ~size_t{7});
  }
  // a header with one distance is smaller than estimated
  const uint64_t favour = unit.sequence_count > 0 ? kFavour << kBit : 0;
  if (cost(counts) >= cost(unit.counts) + favour) return true;
  unit.sequences.reset(new (std::nothrow) lk_sequence[size]);
  if (unit.sequences == nullptr) return false;
  std::copy_n(memory.get(), size, unit.sequences.get());
  unit.counts = counts;
  unit.sequence_count = size;
  return true;
}

void find_runs(std::vector<Unit> &units) {
  in_stripes(units.size(), kStripe, [&](size_t u, size_t) { return units[u].is_sure || find_runs(units[u]); });
}

}  // namespace latentkit::deflate
