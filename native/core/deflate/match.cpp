// The compressor of PNG files at levels 1 to 9: rows that PNG's filters have been through, bytes that do not depend
// on the number of threads, and no time for data without repetitions. Words not explained here are those of RFC 1951
// and zlib.
//
// Data come in units: bands of rows of at most 65,535 bytes. A thread searches stripes of kStripe units one after the
// other; matches may reach back 32 KiB into the units before. A unit whose survey (survey.cpp) finds few recurring
// strings is never searched. A unit is "sure" if its caller expects matches everywhere (few colours, no filter), and
// "dense" if its literals cost more than a bit and a half each.
//
//             sure, or short and not dense
//   start -----------------------------------> committed --> end of the unit
//     v       quick check    +-------------+ passed   ^
//   probe of the beginning ->| whole probe |----------+
//     v failed               +-------------+
//   probe of the middle, the same way
//     v failed
//   given up: literals, and the probe of the next dense unit begins in its middle
//
// A probe searches kProbe bytes and must save one of kProbeSaving bits: in photographs matches save next to nothing
// and take ten times as long as all the rest. A quick check ends the probe of a dense unit after a line and
// kQuickCheck bytes that saved less than one of kQuickSaving bits; until then the chains hold every kSparseStep-th
// position of the window before, and a probe that passes starts again with all of them. Units of fewer than four
// probes are not given up: a failed check commits them, with the faster skip. A committed search of a dense unit is
// reviewed every kProbe bytes for its speed alone.
//
// At each position the hash chains give the longest match. It pays with kAlwaysPays bytes, or if the literals that it
// replaces cost more than kMatchPrice and the extra bits of its distance. A match shorter than max_lazy gives way to
// a longer one at the next position; what is taken grows to the left over skipped bytes. After a byte without a match
// one more is skipped for every 2^kSkipShift literals since the last match, at most kMostSkipped; the chains hold
// skipped bytes too. The key has as many bytes as cost kKeyPrice as literals, 4 to kMostKey. The last distance is
// tried beside the chain.
//
// Measured, each constant halved and doubled, eight pictures at level 4 (size, instructions): kProbe and kProbeSaving
// are the balance for photographs: half of kProbeSaving makes enlarged pictures 38 % larger, twice kProbe takes soft
// ones 23 % more time. Twice kKeyPrice makes text 2 % smaller and tiled pictures 1 % larger; half makes text 20 %
// larger. Half of kAlwaysPays or twice kMatchPrice makes text 7 % larger. kQuickCheck and kSparseStep are worth a
// percent where units pass the survey and fail the probe. kQuickSaving, kFastSkipShift and kFewInMatches change
// nothing: leave them out when the bytes change for another reason. Any change of a constant changes the bytes of
// files and takes a new version of the package.
//
// This file is the search for matches in a unit.
#include <algorithm>
#include <array>
#include <new>

#include "deflate/deflate.h"
#include "deflate/search.h"

namespace latentkit::deflate {
namespace {

constexpr size_t kStripe = 4; /* units searched one after the other, with one set of chains */

/* Which matches pay. Prices are in 1/256 bits. */
constexpr size_t kAlwaysPays = 12;         /* bytes; a shorter match is compared with the literals it replaces */
constexpr uint32_t kMatchPrice = 11 * 256; /* of a match, before the distance's extra bits */
constexpr uint64_t kKeyPrice = 20 * 256;   /* of the bytes that are hashed, as literals */

/* Whether the search of a unit pays. */
constexpr size_t kProbe = 8192;       /* bytes searched before it is decided */
constexpr uint64_t kProbeSaving = 12; /* one of so many bits must be saved by then */
constexpr size_t kQuickCheck = 1024;  /* bytes past a line after which a probe of dense data may fail early */
constexpr uint64_t kQuickSaving = 48; /* one of so many bits must be saved by then */
constexpr size_t kSparseStep = 8;     /* until then the chains hold one of so many positions of the window */

/* How fast the search moves on without matches. */
constexpr int kSkipShift = 3;       /* skips one more byte for every 2^kSkipShift literals since the last match */
constexpr int kFastSkipShift = 2;   /* the same if few bytes are in matches */
constexpr size_t kFewInMatches = 8; /* fewer than one of so many of the last kProbe bytes */
constexpr size_t kMostSkipped = 64; /* bytes skipped at once; the chains still hold them */
constexpr size_t kLongMatch = 4;    /* of a match longer than so many tails only the tail goes into the chains */

class Matcher {
 public:
  /* base: the first byte that matches may reach; end: of all data. */
  Matcher(const uint8_t *base, const uint8_t *end) : base_(base), chains_(base, end) {}

  /* False if memory is short. */
  bool search(Unit &unit, const Effort &effort);

 private:
  /* The state of the search in one unit. */
  struct Search {
    size_t begin, end, last; /* of the unit; positions below last can be hashed */
    size_t at, checkpoint;   /* the search is reviewed when `at` reaches the checkpoint */
    size_t first_check;      /* bytes of a probe up to its first checkpoint */
    int skip_shift;
    bool may_give_up;  /* the unit is long enough for probes */
    bool is_dense;     /* its literals cost more than a bit and a half each */
    bool is_committed; /* the search continues to the end */

    size_t middle() const { return begin + (end - begin) / 2; }
  };
  enum class Check { kPassed, kPassedQuick, kFailed };

  void set_prices(const Unit &unit);
  Search start(const Unit &unit) const;
  void enter_window(const Search &search);
  bool review(Search &search, Sequences &sequences);
  static Check check(const Search &search, const Sequences &sequences);
  void lengthen_probe(Search &search, Sequences &sequences);
  static void start_probe(Search &search, Sequences &sequences, size_t at);
  static void commit(Search &search, Sequences &sequences, int skip_shift);
  void step(Search &search, Sequences &sequences);
  bool pays(size_t at, const Match &match) const;
  void skip(Search &search, const Sequences &sequences);
  void take(Search &search, Sequences &sequences, Match match);
  size_t prefer_later(const Search &search, Match &match, size_t &entered);
  void extend_back(size_t &at, Match &match, size_t first) const;

  const uint8_t *base_;
  Effort effort_ = kThorough;
  size_t last_distance_ = 1;
  bool gave_up_ = false; /* on the unit before */
  Chains chains_;
  std::array<uint16_t, 256> prices_;
};

/* The key takes so many bytes that literals would cost more than a match: chains hold nothing that is not worth it. */
void Matcher::set_prices(const Unit &unit) {
  literal_prices(unit.plain, prices_.data());
  uint64_t sum = 0;
  for (size_t i = 0; i < 256; i++) sum += uint64_t{prices_[i]} * unit.plain[i];
  chains_.set_key(std::clamp<size_t>(kKeyPrice * unit.len / sum, kMinMatch, kMostKey));
}

Matcher::Search Matcher::start(const Unit &unit) const {
  Search search{};
  search.begin = search.at = static_cast<size_t>(unit.raw - base_);
  search.end = search.begin + unit.len;
  search.last = std::min(search.end, chains_.hashed());
  search.may_give_up = !unit.is_sure && unit.len >= 4 * kProbe;
  search.is_dense = !unit.is_sure && 2 * (unit.plain_cost >> kBit) >= 3 * unit.len;
  search.is_committed = !search.may_give_up && !search.is_dense;
  search.first_check = search.is_dense ? std::min(kProbe, unit.line + kQuickCheck) : kProbe;
  search.checkpoint = search.is_committed ? search.end : search.begin + search.first_check;
  search.skip_shift = kSkipShift;
  return search;
}

/* Before a quick check, a few positions are enough. */
void Matcher::enter_window(const Search &search) {
  const bool has_quick_check = !search.is_committed && search.first_check < kProbe;
  chains_.enter_window(search.begin, has_quick_check ? kSparseStep : 1);
}

/* Decides at a checkpoint how the search continues; false if it is given up. */
bool Matcher::review(Search &search, Sequences &sequences) {
  if (search.is_committed) {
    const bool are_few = sequences.take_covered() * kFewInMatches < kProbe;
    commit(search, sequences, are_few ? kFastSkipShift : kSkipShift);
    return true;
  }
  sequences.add_literals(search.at);
  const Check result = check(search, sequences);
  if (result == Check::kPassed) commit(search, sequences, kSkipShift);
  else if (result == Check::kPassedQuick) lengthen_probe(search, sequences);
  else if (!search.may_give_up) commit(search, sequences, kFastSkipShift);
  else if (search.at < search.middle()) start_probe(search, sequences, search.middle());
  else gave_up_ = true;
  return !gave_up_;
}

Matcher::Check Matcher::check(const Search &search, const Sequences &sequences) {
  const bool is_whole = search.at >= sequences.begin() + kProbe;
  if (!sequences.saves(is_whole ? kProbeSaving : kQuickSaving)) return Check::kFailed;
  return is_whole ? Check::kPassed : Check::kPassedQuick;
}

/* On to the end of the probe. If the chains held only part of the window, it starts again with all of it. */
void Matcher::lengthen_probe(Search &search, Sequences &sequences) {
  search.checkpoint = sequences.begin() + kProbe;
  if (chains_.has_window()) return;
  chains_.enter_window(search.begin, 1);
  start_probe(search, sequences, sequences.begin());
}

void Matcher::start_probe(Search &search, Sequences &sequences, size_t at) {
  sequences.restart(at);
  search.at = at;
  search.checkpoint = at + search.first_check;
}

/* Continues to the end of the unit; dense data are reviewed again and again, only for speed. */
void Matcher::commit(Search &search, Sequences &sequences, int skip_shift) {
  search.is_committed = true;
  search.skip_shift = skip_shift;
  sequences.take_covered();
  search.checkpoint = search.is_dense ? search.at + kProbe : search.end;
}

bool Matcher::pays(size_t at, const Match &match) const {
  if (match.length >= kAlwaysPays) return true;
  uint32_t literals = 0;
  for (size_t k = 0; k < match.length; k++) literals += prices_[base_[at + k]];
  return literals > kMatchPrice + 256 * distance_symbol(match.distance).extra_bits;
}

void Matcher::step(Search &search, Sequences &sequences) {
  const Match match = chains_.find(search.at, search.end, 0, last_distance_);
  if (match.length == 0 || !pays(search.at, match)) skip(search, sequences);
  else take(search, sequences, match);
}

/* Moves past a byte that no match begins with, and farther the longer there was none. */
void Matcher::skip(Search &search, const Sequences &sequences) {
  const size_t skipped = std::min((search.at - sequences.counted()) >> search.skip_shift, kMostSkipped);
  const size_t next = search.at + 1 + skipped;
  chains_.enter(search.at + 1, next);
  search.at = next;
}

void Matcher::take(Search &search, Sequences &sequences, Match match) {
  size_t entered = search.at + 1;
  size_t at = prefer_later(search, match, entered);
  extend_back(at, match, std::max(sequences.counted(), match.distance));
  sequences.add_match(at, match);
  last_distance_ = match.distance;
  search.at = at + match.length;
  if (match.length > kLongMatch * effort_.tail) entered = std::max(entered, search.at - effort_.tail);
  chains_.enter(entered, search.at);
}

/* Lazy matching: as long as the next position has a longer match, that one. Returns its position. Positions below
 * `entered` are in the chains. */
size_t Matcher::prefer_later(const Search &search, Match &match, size_t &entered) {
  size_t at = search.at;
  while (match.length < effort_.max_lazy && at + 1 < search.last) {
    const Match later = chains_.find(at + 1, search.end, match.length, last_distance_);
    entered = at + 2;
    if (later.length == 0 || !pays(at + 1, later)) break;
    match = later;
    at++;
  }
  return at;
}

/* Lengthens the match to the left, over bytes that were skipped. */
void Matcher::extend_back(size_t &at, Match &match, size_t first) const {
  while (at > first && match.length < kMaxMatch && base_[at - 1] == base_[at - 1 - match.distance]) {
    at--;
    match.length++;
  }
}

bool Matcher::search(Unit &unit, const Effort &effort) {
  const Workspace<lk_sequence> memory(unit.len / kMinMatch + 1);
  if (memory.get() == nullptr) return false;
  effort_ = effort;
  chains_.set_effort(effort);
  set_prices(unit);
  Search search = start(unit);
  Sequences sequences(base_, search.begin, memory.get());
  // after a unit that was given up, one probe decides
  if (search.may_give_up && search.is_dense && gave_up_) start_probe(search, sequences, search.middle());
  else if (!chains_.has_window()) enter_window(search);
  gave_up_ = false;
  while (search.at < search.last) {
    if (search.at >= search.checkpoint && !review(search, sequences)) return true;
    step(search, sequences);
  }
  return sequences.finish(unit);
}

/* Searches units[first, last) for matches, which reach back over what precedes them. */
bool search_stripe(std::vector<Unit> &units, size_t first, size_t last, const Effort &effort,
                   const Effort &where_sure) {
  const Workspace<Matcher> memory(1);
  if (memory.get() == nullptr) return false;
  Matcher *matcher = nullptr;
  for (size_t u = first; u < last; u++) {
    if (!units[u].repeats) {
      matcher = nullptr;
      continue;
    }
    if (matcher == nullptr) {
      const uint8_t *base = units[u].raw;
      const size_t before = std::min(static_cast<size_t>(base - units[0].raw), kWindow);
      matcher = new (memory.get()) Matcher(base - before, units.back().raw + units.back().len);
    }
    if (!matcher->search(units[u], units[u].is_sure ? where_sure : effort)) return false;
  }
  return true;
}

}  // namespace

void find_matches(std::vector<Unit> &units, const Effort &effort, const Effort &where_sure) {
  in_stripes(units.size(), kStripe,
             [&](size_t first, size_t last) { return search_stripe(units, first, last, effort, where_sure); });
}

bool find_matches(Unit &unit, const Effort &effort) {
  if (!unit.repeats) return true;
  const Workspace<Matcher> memory(1);
  return memory.get() != nullptr && (new (memory.get()) Matcher(unit.raw, unit.raw + unit.len))->search(unit, effort);
}

}  // namespace latentkit::deflate
