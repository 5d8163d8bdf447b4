// The search for matches: where it pays, one step of laziness, prices instead of lengths.
#include <algorithm>
#include <array>
#include <new>

#include "deflate.h"
#include "chains.h"
#include "sequences.h"
#include "workspace.h"

namespace latentkit::deflate {
namespace {

constexpr size_t kStripe = 4;        /* units searched one after the other */
constexpr size_t kPriced = 12;       /* shorter: compared with the literals it replaces */
constexpr size_t kLong = 4;          /* a match is long from so many times the positions kept of it */
constexpr size_t kTrial = 8192;      /* bytes, twice in a unit, that decide whether the search goes on */
constexpr uint64_t kLeastShare = 12; /* one of so many bits must be saved there */
constexpr size_t kGlance = 1024;     /* bytes past a line, after which a trial may be without hope */
constexpr uint64_t kLeastHope = 48;  /* one of so many bits must be saved there */
constexpr size_t kSparse = 8;        /* before that, one of so many positions of the window can be found */
constexpr int kPatience = 3;         /* log2 of the literals without a match after which it leaps over one more byte */
constexpr int kTired = 2;            /* the same where few of the last kTrial bytes were in matches */
constexpr size_t kLeastCovered = 8;  /* one of so many must be */
constexpr size_t kLongestLeap = 64;  /* the bytes leapt over can be found again */
constexpr uint64_t kKeyPrice = 20 * 256;   /* of the bytes that are hashed */
constexpr uint32_t kMatchPrice = 11 * 256; /* of a match, before the distance's extra bits; 1/256 bits */

class Matcher {
 public:
  /* base: the first byte that matches may reach; end: of all data. */
  Matcher(const uint8_t *base, const uint8_t *end) : base_(base), chains_(base, end) {}

  /* False where memory is short. */
  bool search(Unit &unit, const Effort &effort);

 private:
  /* Where in a unit the search stands, and how long it goes on without matches. */
  struct Place {
    size_t begin, end, last; /* of the unit; positions below last can be hashed */
    size_t glance;           /* bytes of a trial's first look */
    size_t at, checkpoint;   /* judge() is asked when the search comes past the checkpoint */
    int patience;
    bool has_trials, is_dense, is_taken; /* is_taken: the search goes on to the end */

    size_t middle() const { return begin + (end - begin) / 2; }
  };

  void set_prices(const Unit &unit);
  Place place_of(const Unit &unit);
  bool judge(Place &place, Findings &findings);
  void start_at(Place &place, Findings &findings, size_t at) const;
  void go_on(Place &place, Findings &findings, int patience) const;
  void leap(Place &place, const Findings &findings);
  void take(Place &place, Findings &findings, Match match);
  bool pays(size_t at, const Match &match) const;

  const uint8_t *base_;
  Effort effort_ = kThorough;
  size_t last_distance_ = 1;
  bool was_vain_ = false; /* the unit before was given up */
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

bool Matcher::pays(size_t at, const Match &match) const {
  if (match.length >= kPriced) return true;
  uint32_t literals = 0;
  for (size_t k = 0; k < match.length; k++) literals += prices_[base_[at + k]];
  return literals > kMatchPrice + 256 * distance_symbol(match.distance).extra_bits;
}

Matcher::Place Matcher::place_of(const Unit &unit) {
  const auto begin = static_cast<size_t>(unit.raw - base_), end = begin + unit.len;
  const bool is_dense = !unit.is_sure && 2 * (unit.plain_cost >> kBit) >= 3 * unit.len;
  Place place{};
  place.begin = place.at = begin;
  place.end = end;
  place.last = std::min(end, chains_.hashed());
  place.has_trials = !unit.is_sure && unit.len >= 4 * kTrial;
  place.is_dense = is_dense;
  place.is_taken = !place.has_trials && !is_dense;
  place.glance = is_dense ? std::min(kTrial, unit.line + kGlance) : kTrial;
  place.checkpoint = place.is_taken ? end : begin + place.glance;
  place.patience = kPatience;
  return place;
}

void Matcher::start_at(Place &place, Findings &findings, size_t at) const {
  findings.start_at(at);
  place.at = at;
  place.checkpoint = at + place.glance;
}

void Matcher::go_on(Place &place, Findings &findings, int patience) const {
  place.is_taken = true;
  place.patience = patience;
  findings.take_covered();
  place.checkpoint = place.is_dense ? place.at + kTrial : place.end;
}

/* Decides at a checkpoint how the search goes on; false where it is given up. */
bool Matcher::judge(Place &place, Findings &findings) {
  if (place.is_taken) {
    go_on(place, findings, findings.take_covered() * kLeastCovered < kTrial ? kTired : kPatience);
    return true;
  }
  findings.add_literals(place.at);
  const size_t trial_end = findings.from() + kTrial;
  if (place.at < trial_end && findings.saves(kLeastHope)) {
    place.checkpoint = trial_end;
    // only now it is worth while to know all of what lies before
    if (!chains_.has_window()) {
      chains_.enter_window(place.begin, 1);
      start_at(place, findings, findings.from());
    }
  } else if (place.at >= trial_end && findings.saves(kLeastShare)) {
    go_on(place, findings, kPatience);
  } else if (!place.has_trials) {
    go_on(place, findings, kTired);  // what is short is searched to the end
  } else if (place.at < place.middle()) {
    start_at(place, findings, place.middle());
  } else {
    was_vain_ = true;
    return false;
  }
  return true;
}

/* On past a byte that no match begins with, and farther the longer there was none. */
void Matcher::leap(Place &place, const Findings &findings) {
  const size_t next = place.at + 1 + std::min((place.at - findings.counted()) >> place.patience, kLongestLeap);
  chains_.enter(place.at + 1, next);
  place.at = next;
}

/* Takes the match, or a better one that begins a little later, and goes on behind it. */
void Matcher::take(Place &place, Findings &findings, Match match) {
  size_t at = place.at, entered = at + 1;
  while (match.length < effort_.lazy && at + 1 < place.last) {
    const Match later = chains_.find(at + 1, place.end, match.length, last_distance_);
    entered = at + 2;
    if (later.length == 0 || !pays(at + 1, later)) break;
    match = later;
    at++;
  }
  // back over what was skipped
  const size_t first = std::max(findings.counted(), match.distance);
  while (at > first && match.length < kMaxMatch && base_[at - 1] == base_[at - 1 - match.distance]) at--, match.length++;
  findings.add_match(at, match);
  last_distance_ = match.distance;
  place.at = at + match.length;
  if (match.length > kLong * effort_.kept) entered = std::max(entered, place.at - effort_.kept);
  chains_.enter(entered, place.at);
}

bool Matcher::search(Unit &unit, const Effort &effort) {
  const Room<lk_sequence> room(unit.len / kMinMatch + 1);
  if (room.get() == nullptr) return false;
  effort_ = effort;
  chains_.set_effort(effort);
  set_prices(unit);
  Place place = place_of(unit);
  Findings findings(base_, place.begin, room.get());
  // where the unit above gave up, one look is enough
  if (place.has_trials && place.is_dense && was_vain_) start_at(place, findings, place.middle());
  else if (!chains_.has_window())
    chains_.enter_window(place.begin, !place.is_taken && place.glance < kTrial ? kSparse : 1);
  was_vain_ = false;
  while (place.at < place.last) {
    if (place.at >= place.checkpoint && !judge(place, findings)) return true;
    const Match match = chains_.find(place.at, place.end, 0, last_distance_);
    if (match.length == 0 || !pays(place.at, match)) leap(place, findings);
    else take(place, findings, match);
  }
  return findings.finish(unit);
}

/* Searches units[first, last) for matches, which reach back over what precedes them. */
bool search_stripe(std::vector<Unit> &units, size_t first, size_t last, const Effort &effort, const Effort &where_sure) {
  const Room<Matcher> room(1);
  if (room.get() == nullptr) return false;
  Matcher *matcher = nullptr;
  for (size_t u = first; u < last; u++) {
    if (!units[u].repeats) {
      matcher = nullptr;
      continue;
    }
    if (matcher == nullptr) {
      const uint8_t *base = units[u].raw;
      const size_t before = std::min(static_cast<size_t>(base - units[0].raw), kWindow);
      matcher = new (room.get()) Matcher(base - before, units.back().raw + units.back().len);
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
  const Room<Matcher> room(1);
  return room.get() != nullptr && (new (room.get()) Matcher(unit.raw, unit.raw + unit.len))->search(unit, effort);
}

}  // namespace latentkit::deflate
