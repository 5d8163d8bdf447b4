#include "levels.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "png.h"
#include "runtime/dispatch.h"

// decisions 67, 69
namespace latentkit::png {
namespace {

constexpr int kStored = 0, kFastest = 1, kDefault = 4;
constexpr int kFirstSearch = 3; /* levels below take runs alone */
constexpr deflate::Effort kHasty = {1, 12, 0, 4};
constexpr int kFirstSampled = 5; /* levels below filter by sums */
/* From the level after that on. With all before them they take less than eight times what the default takes. */
constexpr deflate::Effort kSearches[] = {{12, 64, 16, 64}, {16, 64, 16, 64}, {24, 64, 16, 64}, {32, 64, 16, 64}};
constexpr size_t kSmall = kBand; /* lines of fewer bytes are compressed at every level up to the default */
constexpr size_t kOverhead = 6;  /* of a zlib stream: header and Adler-32 */

struct FreeDeflater {
  void operator()(libdeflate_compressor *c) const { libdeflate_free_compressor(c); }
};

/* Lines and the stream that holds them. */
struct Packed {
  std::shared_ptr<uint8_t[]> lines;
  uint32_t adler;
  deflate::Stream stream;
};

/* Counted units without matches, so that each search starts from the same ones. */
std::vector<deflate::Unit> copies_of(const std::vector<deflate::Unit> &units) {
  std::vector<deflate::Unit> copies(units.size());
  for (size_t k = 0; k < units.size(); k++) {
    const deflate::Unit &from = units[k];
    deflate::Unit &to = copies[k];
    to.raw = from.raw;
    to.len = from.len;
    to.line = from.line;
    to.repeats = from.repeats;
    to.is_sure = from.is_sure;
    to.counts = from.counts;
    std::copy(std::begin(from.plain), std::end(from.plain), to.plain);
    to.plain_cost = from.plain_cost;
  }
  return copies;
}

Packed pack(Filtered filtered) {
  const uint32_t adler = filtered.adler();
  return {std::move(filtered.memory), adler, deflate::Stream(std::move(filtered.units))};
}

void keep_smaller(Packed &best, Packed other) {
  if (other.stream.size() < best.stream.size()) best = std::move(other);
}

/* Level 1 to 4. */
Packed pack_at(const Rows &rows, int level) {
  Filtered filtered = level == kFastest ? filter_rows_by(rows, kUp) : filter_rows(rows, level >= kFirstSearch);
  if (level < kFirstSearch) {
    if (level > kFastest) prefer_up(filtered, rows);
    deflate::find_runs(filtered.units);
  } else {
    prefer_plain(filtered, rows);
    if (level == kDefault) deflate::find_matches(filtered.units, deflate::kThorough, deflate::kBrisk);
    else deflate::find_matches(filtered.units, deflate::kQuick, kHasty);
    deflate::find_runs(filtered.units);
  }
  return pack(std::move(filtered));
}

/* Every level above the default goes on from the result of the one below, and keeps what is smaller. */
Packed pack_best(const Rows &rows, int level) {
  const bool is_small = rows.picture().line() * rows.picture().height <= kSmall;
  Packed best = pack_at(rows, is_small ? kFastest : std::min(level, kDefault));
  for (int lower = kFastest + 1; is_small && lower <= std::min(level, kDefault); lower++)
    keep_smaller(best, pack_at(rows, lower));
  if (level <= kDefault) return best;
  Filtered filtered = filter_by_sample(rows);
  const std::shared_ptr<uint8_t[]> lines = std::move(filtered.memory);
  const uint32_t adler = filtered.adler();
  for (int above = kFirstSampled; above <= level; above++) {
    std::vector<deflate::Unit> units = copies_of(filtered.units);
    if (above == kFirstSampled) {
      deflate::find_matches(units, deflate::kThorough, deflate::kBrisk);
    } else {
      const deflate::Effort &deep = kSearches[above - kFirstSampled - 1];
      deflate::find_matches(units, deep, deep);
    }
    keep_smaller(best, {lines, adler, deflate::Stream(std::move(units))});
  }
  return best;
}

size_t write(uint8_t *out, size_t room, Packed packed, int level) {
  const size_t len = packed.stream.size() + kOverhead;
  if (len > room) return 0;
  // a window of 32 KiB; the second byte holds the level in four steps
  out[0] = 0x78;
  out[1] = level < 2 ? 0x01 : level < 6 ? 0x5E : level == 6 ? 0x9C : 0xDA;
  packed.stream.write(out + 2);
  write32(out + len - 4, packed.adler);
  return len;
}

size_t store(uint8_t *out, size_t room, const Filtered &filtered) {
  const std::unique_ptr<libdeflate_compressor, FreeDeflater> deflater(libdeflate_alloc_compressor(kStored));
  if (deflater == nullptr) throw std::bad_alloc();
  const uint8_t *const lines = filtered.units.front().raw;
  const deflate::Unit &last = filtered.units.back();
  return libdeflate_zlib_compress(deflater.get(), lines, static_cast<size_t>(last.raw + last.len - lines), out, room);
}

/* The pixels of lines. */
Scratch unfiltered(const uint8_t *lines, size_t height, size_t row_bytes, size_t step) {
  Scratch pixels = scratch(row_bytes * height);
  const std::unique_ptr<uint8_t[]> zeros(new uint8_t[row_bytes]());
  const uint8_t *above = zeros.get();
  for (size_t y = 0; y < height; y++) {
    const uint8_t *const line = lines + y * (row_bytes + 1);
    uint8_t *const row = pixels.get() + y * row_bytes;
    kernels().unfilter(line[0], row, line + 1, above, row_bytes, step);
    above = row;
  }
  return pixels;
}

}  // namespace

size_t compress(uint8_t *out, size_t room, const Picture &picture, int level) {
  const Rows rows(picture);
  if (level == kStored) return store(out, room, filter_rows(rows, false));
  return write(out, room, pack_best(rows, level), level);
}

size_t compress_filtered(uint8_t *out, size_t room, const uint8_t *lines, size_t height, size_t row_bytes, size_t step,
                         int level) {
  const bool is_small = (row_bytes + 1) * height <= kSmall;
  if (level == kStored) return store(out, room, filtered_before(lines, height, row_bytes, false));
  if (level >= kFirstSearch && level <= kDefault && !is_small) {
    Filtered filtered = filtered_before(lines, height, row_bytes, true);
    const auto repeats = [](const deflate::Unit &unit) { return unit.repeats; };
    // where nothing comes again these levels keep the filters
    if (std::none_of(filtered.units.begin(), filtered.units.end(), repeats)) {
      deflate::find_runs(filtered.units);
      return write(out, room, pack(std::move(filtered)), level);
    }
  }
  const Scratch pixels = unfiltered(lines, height, row_bytes, step);
  return compress(out, room, {pixels.get(), height, row_bytes, step}, level);
}

}  // namespace latentkit::png
