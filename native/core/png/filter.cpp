// Filters the rows of a picture on the pool, in bands that fit the second cache, and chooses the filters.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "png/png.h"
#include "runtime/runtime.h"

namespace latentkit::png {
namespace {

constexpr uint32_t kAdler = 65521;

/* The Adler-32 of two spans from their own: Mark Adler's rule. */
uint32_t joined(uint32_t first, uint32_t second, size_t second_len) {
  const uint64_t a = first & 0xFFFF, b = first >> 16, c = second & 0xFFFF, d = second >> 16, n = second_len % kAdler;
  const uint64_t low = (a + c + kAdler - 1) % kAdler, high = (b + d + n * (a + kAdler - 1)) % kAdler;
  return static_cast<uint32_t>(high << 16 | low);
}

/* make(band) fills the lines of each band. */
template <class Make>
Filtered in_bands(const uint8_t *lines, size_t height, size_t line, bool is_surveyed, Make &&make) {
  const size_t rows = std::max<size_t>(1, kBand / line), count = (height + rows - 1) / rows;
  Filtered result{nullptr, std::vector<Band>(count), std::vector<deflate::Unit>(count), std::vector<uint32_t>(count)};
  for_chunks(count, [&](size_t k) {
    const Band band = {k * rows, std::min(k * rows + rows, height)};
    make(band);
    deflate::Unit &unit = result.units[k];
    unit.raw = lines + band.first * line;
    unit.len = (band.last - band.first) * line;
    unit.line = line;
    result.bands[k] = band;
    result.sums[k] = libdeflate_adler32(1, unit.raw, unit.len);
    if (is_surveyed) deflate::survey(unit);
    else deflate::count_bytes(unit);
  });
  return result;
}

/* in_bands() for new lines, which write(lines, band) fills. */
template <class Write>
Filtered written(const Rows &rows, bool is_surveyed, Write &&write) {
  const size_t line = rows.picture().line(), height = rows.picture().height;
  Scratch memory = scratch(line * height);
  uint8_t *const lines = memory.get();
  const auto make = [&](const Band &band) { write(lines + band.first * line, band); };
  Filtered result = in_bands(lines, height, line, is_surveyed, make);
  result.memory = std::move(memory);
  return result;
}

}  // namespace

uint32_t Filtered::adler() const {
  uint32_t sum = 1;
  for (size_t k = 0; k < units.size(); k++) sum = joined(sum, sums[k], units[k].len);
  return sum;
}

Rows::Rows(const Picture &picture) : picture_(picture), zeros_(new uint8_t[picture.row_bytes]()) {}

void Rows::write_cheapest(uint8_t *line, size_t y) const {
  kernels().filter_row(line, row(y), above(y), picture_.row_bytes, picture_.step);
}

void Rows::write_by(int filter, uint8_t *line, size_t y) const {
  kernels().filter_row_by(filter, line, row(y), above(y), picture_.row_bytes, picture_.step);
}

void Rows::write_cheapest(uint8_t *lines, const Band &band) const {
  for (size_t y = band.first; y < band.last; y++) write_cheapest(lines + (y - band.first) * picture_.line(), y);
}

void Rows::write_by(int filter, uint8_t *lines, const Band &band) const {
  for (size_t y = band.first; y < band.last; y++) write_by(filter, lines + (y - band.first) * picture_.line(), y);
}

Filtered filter_rows(const Rows &rows, bool is_surveyed) {
  return written(rows, is_surveyed, [&](uint8_t *lines, const Band &band) { rows.write_cheapest(lines, band); });
}

Filtered filter_rows_by(const Rows &rows, int filter) {
  return written(rows, false, [&](uint8_t *lines, const Band &band) { rows.write_by(filter, lines, band); });
}

Filtered filtered_before(const uint8_t *lines, size_t height, size_t row_bytes, bool is_surveyed) {
  return in_bands(lines, height, row_bytes + 1, is_surveyed, [](const Band &) {});
}

// Bands of few colours stay unfiltered if a search of 16 KiB is smaller that way: a filter hides recurring strings.
/* ---- filters chosen by what a search makes of them: they spoil the strings of pictures of few colours ---- */
namespace {

constexpr int kCheapest = 5;       /* after the five filters: that of the least sum for each row */
constexpr size_t kSampleStep = 12; /* rows from one whose colours are counted to the next */
constexpr size_t kFewColours = 256;
constexpr size_t kFewGreys = 64;     /* for one channel, which has only 256 */
constexpr size_t kGroup = 8;         /* bands that share a filtering, chosen by one sample */
constexpr size_t kWideGroup = 16;    /* the same of prefer_plain(), which has less time */
constexpr uint64_t kLeastGain = 32;  /* one of so many bits: else bands keep their filters */
constexpr uint64_t kLeastTurn = 512; /* the same between filters */
constexpr uint64_t kEmpty = 400;     /* little to gain if a bit a byte and one of so many suffice */
constexpr size_t kSample = 16384;    /* bytes of a group's sample */
constexpr size_t kMostBits = 7;      /* halves for each byte: above, strings recur only by chance */

/* True if the sampled rows have few colours. */
bool has_few_colours(const Picture &picture, const Band &band) {
  // colours of 16 bits are many, or a picture of 8
  if (picture.step > sizeof(uint32_t)) return false;
  constexpr size_t kSlots = 1024;
  std::array<uint32_t, kSlots> colours;
  std::array<bool, kSlots> is_taken{};
  const size_t most = picture.step == 1 ? kFewGreys : kFewColours;
  size_t count = 0;
  uint32_t last = 0;
  bool has_last = false;
  for (size_t y = band.first; y < band.last; y += kSampleStep) {
    const uint8_t *pixel = picture.pixels + y * picture.row_bytes, *const end = pixel + picture.row_bytes;
    for (; pixel < end; pixel += picture.step) {
      uint32_t colour = 0;
      for (size_t k = 0; k < picture.step; k++) colour = colour << 8 | pixel[k];
      if (has_last && colour == last) continue;
      last = colour;
      has_last = true;
      size_t slot = colour * 0x9E3779B1u >> 22;
      while (is_taken[slot] && colours[slot] != colour) slot = (slot + 1) % kSlots;
      if (is_taken[slot]) continue;
      if (++count > most) return false;
      is_taken[slot] = true;
      colours[slot] = colour;
    }
  }
  return true;
}

deflate::Unit unit_of(const uint8_t *lines, size_t line, const Band &band) {
  deflate::Unit unit;
  unit.raw = lines;
  unit.len = (band.last - band.first) * line;
  unit.line = line;
  return unit;
}

/* A unit of a band of few colours that was not filtered. */
void survey_plain(deflate::Unit &unit) {
  deflate::count_bytes(unit);
  unit.repeats = unit.is_sure = true;
}

/* The bits of the first bytes of a unit after a quick search, in the units of deflate::cost(). False if memory is
 * short. */
bool try_search(const deflate::Unit &unit, uint64_t &bits) {
  deflate::Unit sample;
  sample.raw = unit.raw;
  sample.len = std::min(unit.len, kSample);
  sample.line = unit.line;
  sample.repeats = sample.is_sure = true;
  deflate::count_bytes(sample);
  if (!deflate::find_matches(sample, deflate::kQuick) || !deflate::find_runs(sample)) return false;
  bits = deflate::cost(sample.counts);
  return true;
}

/* Sets is_smaller if the first rows of the band are smaller without a filter. False if memory is short. */
bool try_plain(const Rows &rows, const Band &band, const deflate::Unit &filtered, bool &is_smaller) {
  const size_t line = rows.picture().line();
  const Band sample = {band.first, std::min(band.last, band.first + (kSample + line - 1) / line)};
  deflate::Unit plain = unit_of(nullptr, line, sample);
  const deflate::Workspace<uint8_t> lines(plain.len);
  if (lines.get() == nullptr) return false;
  plain.raw = lines.get();
  rows.write_by(kPlain, lines.get(), sample);
  uint64_t bits = 0, bits_plain = 0;
  if (!try_search(filtered, bits) || !try_search(plain, bits_plain)) return false;
  is_smaller = bits_plain < bits - bits / kLeastGain;
  return true;
}

/* True if the band has few colours, and bits to save. */
bool may_change(const Rows &rows, const Band &band, const deflate::Unit &unit) {
  return unit.plain_cost >> deflate::kBit >= unit.len + unit.len / kEmpty && has_few_colours(rows.picture(), band);
}

/* Gives a band of few colours the filter kUp if that makes its runs smaller. False if memory is short. */
bool turn_up(Filtered &filtered, const Rows &rows, size_t k) {
  const Band &band = filtered.bands[k];
  deflate::Unit &unit = filtered.units[k];
  const deflate::Workspace<uint8_t> lines(unit.len);
  if (lines.get() == nullptr) return false;
  rows.write_by(kUp, lines.get(), band);
  deflate::Unit other = unit_of(lines.get(), unit.line, band);
  deflate::survey(other);
  if (!deflate::find_runs(other) || !deflate::find_runs(unit)) return false;
  const uint64_t bits = deflate::cost(unit.counts);
  if (deflate::cost(other.counts) >= bits - bits / kLeastTurn) return true;
  uint8_t *const to = filtered.memory.get() + band.first * unit.line;
  std::memcpy(to, lines.get(), unit.len);
  other.raw = to;
  unit = std::move(other);
  filtered.sums[k] = libdeflate_adler32(1, to, unit.len);
  return true;
}

/* Decides for the bands [first, last) by the first of few colours. False if memory is short. */
bool decide(Filtered &filtered, const Rows &rows, size_t first, size_t last) {
  bool is_decided = false, is_plain = false;
  for (size_t k = first; k < last; k++) {
    deflate::Unit &unit = filtered.units[k];
    const Band &band = filtered.bands[k];
    if (!unit.repeats || !may_change(rows, band, unit)) continue;
    if (!is_decided && !try_plain(rows, band, unit, is_plain)) return false;
    is_decided = true;
    if (!is_plain) {
      if (!turn_up(filtered, rows, k)) return false;
      continue;
    }
    rows.write_by(kPlain, filtered.memory.get() + band.first * unit.line, band);
    filtered.sums[k] = libdeflate_adler32(1, unit.raw, unit.len);
    survey_plain(unit);
  }
  return true;
}

void write_by(const Rows &rows, int filtering, uint8_t *lines, const Band &band) {
  if (filtering == kCheapest) rows.write_cheapest(lines, band);
  else rows.write_by(filtering, lines, band);
}

/* Rows of some kSample bytes from the middle of the rows [first, last). */
Band sample_of(const Picture &picture, size_t first, size_t last) {
  const size_t rows = std::min((kSample + picture.line() - 1) / picture.line(), last - first);
  const size_t begin = first + (last - first - rows) / 2;
  return {begin, begin + rows};
}

/* A filtering of the sample. */
struct Candidate {
  const Rows &rows;
  const Band &sample;
  uint8_t *lines;
  bool is_few;
  deflate::Unit unit;

  void filter(int filtering) {
    write_by(rows, filtering, lines, sample);
    unit = unit_of(lines, rows.picture().line(), sample);
    unit.len = std::min(unit.len, kSample);
    if (filtering == kPlain && is_few) survey_plain(unit);
    else deflate::survey(unit);
  }
};

/* The filtering whose lines of the sample are the smallest after a search. False if memory is short. */
bool choose(const Rows &rows, const Band &sample, int &choice) {
  const deflate::Workspace<uint8_t> lines((sample.last - sample.first) * rows.picture().line());
  if (lines.get() == nullptr) return false;
  Candidate candidate = {rows, sample, lines.get(), has_few_colours(rows.picture(), sample), {}};
  uint64_t least = UINT64_MAX, least_searched = UINT64_MAX;
  bool may_repeat = false;
  for (int filtering = kCheapest; filtering >= 0; filtering--) {
    candidate.filter(filtering);
    const uint64_t bits = deflate::cost(candidate.unit.counts);
    may_repeat = may_repeat || candidate.unit.repeats || 2 * (bits >> deflate::kBit) < kMostBits * candidate.unit.len;
    if (bits < least) least = bits, choice = filtering;
  }
  if (!may_repeat) return true;
  for (int filtering = kCheapest; filtering >= 0; filtering--) {
    candidate.filter(filtering);
    if (!deflate::find_matches(candidate.unit, deflate::kQuick)) return false;
    const uint64_t bits = deflate::cost(candidate.unit.counts);
    if (bits < least_searched) least_searched = bits, choice = filtering;
  }
  return true;
}

}  // namespace

void prefer_up(Filtered &filtered, const Rows &rows) {
  deflate::in_stripes(filtered.bands.size(), 1, [&](size_t k, size_t) {
    return !may_change(rows, filtered.bands[k], filtered.units[k]) || turn_up(filtered, rows, k);
  });
}

void prefer_plain(Filtered &filtered, const Rows &rows) {
  deflate::in_stripes(filtered.bands.size(), kWideGroup,
                      [&](size_t first, size_t last) { return decide(filtered, rows, first, last); });
}

Filtered filter_by_sample(const Rows &rows) {
  const size_t line = rows.picture().line(), height = rows.picture().height;
  const size_t band_rows = std::max<size_t>(1, kBand / line), count = (height + band_rows - 1) / band_rows;
  Filtered result{scratch(line * height), std::vector<Band>(count), std::vector<deflate::Unit>(count),
                  std::vector<uint32_t>(count)};
  for (size_t k = 0; k < count; k++) result.bands[k] = {k * band_rows, std::min(k * band_rows + band_rows, height)};
  deflate::in_stripes(count, kGroup, [&](size_t first, size_t last) {
    int filtering = kCheapest;
    const Band sample = sample_of(rows.picture(), result.bands[first].first, result.bands[last - 1].last);
    if (!choose(rows, sample, filtering)) return false;
    for (size_t k = first; k < last; k++) {
      const Band &band = result.bands[k];
      uint8_t *const lines = result.memory.get() + band.first * line;
      write_by(rows, filtering, lines, band);
      deflate::Unit &unit = result.units[k] = unit_of(lines, line, band);
      result.sums[k] = libdeflate_adler32(1, lines, unit.len);
      if (filtering == kPlain && has_few_colours(rows.picture(), band)) survey_plain(unit);
      else deflate::survey(unit);
    }
    return true;
  });
  return result;
}

}  // namespace latentkit::png
