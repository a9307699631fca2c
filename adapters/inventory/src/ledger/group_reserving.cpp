#include "ledger/group_reserving.h"

#include <algorithm>
#include <string_view>

#include "combine/until_known.h"

namespace lockkeeper::inventory {
namespace {

/// The lines of the cart, of which those are held that `got` names.
void addLines(std::vector<ReservedLine>& lines, const PlacedReservation& cart,
              const std::vector<CartLine>& got) {
  auto next = got.begin();
  std::int64_t number = 0;
  for (const CartLine& each : cart.cart) {
    ReservedLine& line = lines.emplace_back(ReservedLine{
        .id = cart.id, .line = number++, .sku = each.sku, .wanted = each.quantity, .left = cart.ttl});
    if (next != got.end() && next->sku == each.sku) line.quantity = next++->quantity;
  }
}

}  // namespace

void GroupReserving::run() {
  writeUntilKnown(database_, carts_, latest_, [this] {
    if (!isScarce_ && !isRejected_ && takeAll()) return;
    // Its bucket has too little for this group. A cart of several articles leaves buckets alone if it can.
    const bool gather = carts_.front()->cart.size() == 1;
    if (takeEach(gather) || takeEach(true)) return;
    throw Database::Undone(database_.display() + ": an article was split meanwhile");
  });
}

/// Two round trips. False when there is too little for all of them, or one of them is there already. A cart
/// of several articles is decided on at once: one round trip more, but its articles are taken in order.
bool GroupReserving::takeAll() {
  if (carts_.front()->cart.size() > 1) return false;
  std::vector<ReservedLine> lines;
  std::map<std::string_view, const PlacedReservation*> first;
  for (PlacedReservation* each : carts_) {
    const auto [mine, isFirst] = first.emplace(each->id, each);
    each->result = Reservation{ReservationState::held, mine->second->cart};
    if (isFirst) addLines(lines, *each, each->cart);
  }
  ReservationWork work(database_, who_, latest_);
  if (!work.take(lines, splits_.pick(carts_.front()->sku()))) return false;
  commit(work);
  return true;
}

/// Holds the articles' rows, and then decides on one cart after the other. `gather`: holds the buckets of
/// those that are split as well. False when that is needed. Much that has expired goes back in portions, each
/// in a transaction of its own: all of it may take longer than a transaction may.
bool GroupReserving::takeEach(bool gather) {
  std::vector<std::string> skus;
  for (const CartLine& each : carts_.front()->cart) skus.push_back(each.sku);
  for (;;) {
    swept_.clear();
    gathered_.clear();
    lacksBuckets_ = false;
    ReservationWork work(database_, who_, latest_);
    work.stock.hold(skus);
    for (const std::string& each : skus) {
      if (gather && splits_.contains(each)) gathered_.emplace(each, work.stock.holdBuckets(each));
    }
    Articles articles = work.stock.articles(skus);
    for (auto& [sku, article] : articles) {
      splits_.note(sku, article.buckets);
      if (const auto found = gathered_.find(sku); found != gathered_.end())
        article.level += found->second.level;
    }
    const auto lines = answerEach(work, articles);
    if (lacksBuckets_) return false;
    if (lines && !lines->empty()) {
      for (const auto& [sku, buckets] : gathered_) {
        if (buckets.count > 1) work.stock.spread(sku, buckets, articles.at(sku).level);
      }
      if (!work.take(*lines, heldArticle)) {
        isRejected_ = true;
        throw Database::Undone(database_.display() + ": a reservation came in between");
      }
      commit(work);
      return true;
    }
    // What was put back stays so. And servers show a commit to others before they have flushed it: a later
    // one flushes both.
    if (work.linesPutBack() > 0 || tellsOfCommits_) commitAgain(work.transaction);
    if (lines) return true;
  }
}

/// What is to be taken; the levels are what is left then. Empty when more must be put back than one
/// transaction should.
std::optional<std::vector<ReservedLine>> GroupReserving::answerEach(ReservationWork& work,
                                                                    Articles& articles) {
  std::vector<std::string> ids;
  for (const PlacedReservation* each : carts_) ids.push_back(each->id);
  std::map<std::string, std::vector<ReservedLine>> known;
  for (ReservedLine& each : work.reservations.lines(ids)) known[each.id].push_back(std::move(each));
  tellsOfCommits_ = !known.empty();
  std::set<std::string> deleted;
  if (isRejected_) deleted = work.ledger.reservedAmong(ids);
  std::map<std::string_view, const Reservation*> taken;
  std::vector<ReservedLine> lines;
  for (PlacedReservation* each : carts_) {
    each->result.reset();
    each->failure = nullptr;
    if (const auto found = known.find(each->id); found != known.end()) {
      answer(*each, found->second);
      continue;
    }
    each->inDoubt = false;
    if (deleted.contains(each->id)) {
      each->failure = failureOfDeleted(each->id);
      continue;
    }
    if (const auto earlier = taken.find(each->id); earlier != taken.end()) {
      each->result = *earlier->second;
      continue;
    }
    each->result = decide(work, articles, *each);
    if (!each->result) return std::nullopt;
    if (each->result->state != ReservationState::held) continue;
    taken.emplace(each->id, &*each->result);
    for (const CartLine& got : each->result->lines) articles[got.sku].level -= got.quantity;
    addLines(lines, *each, each->result->lines);
  }
  return lines;
}

/// The cart is reserved already.
void GroupReserving::answer(PlacedReservation& cart, std::span<const ReservedLine> lines) {
  try {
    const ReservationState state = stateOf(lines);
    if (state != ReservationState::expired) cart.result = Reservation{state, cartOf(lines)};
  } catch (const ConfigError&) {
    cart.failure = std::current_exception();
  }
}

/// Its rows in the ledger stay for ever, so that its id would stand there twice.
std::exception_ptr GroupReserving::failureOfDeleted(const std::string& id) const {
  return std::make_exception_ptr(
      ConfigError(database_.display() + ": the ledger has a reservation " + quoted(id) +
                  " of which the rows in lockkeeper_reservations were deleted: its "
                  "id cannot be used again"));
}

bool GroupReserving::foundTooLittle() const {
  return std::ranges::any_of(carts_, [](const PlacedReservation* each) {
    return each->result && each->result->state == ReservationState::soldOut &&
           each->result->lines.front().sku == each->sku();
  });
}

/// With the lines that it gets, or those that are to blame. Empty as answerEach() says.
std::optional<Reservation> GroupReserving::decide(ReservationWork& work, Articles& articles,
                                                  const PlacedReservation& cart) {
  Reservation unknown{.state = ReservationState::unknownSku};
  Reservation lacking{.state = ReservationState::soldOut};
  Reservation got{.state = ReservationState::held};
  for (const CartLine& each : cart.cart) {
    const auto found = articles.find(each.sku);
    if (found == articles.end()) {
      unknown.lines.push_back({each.sku, 0});
      continue;
    }
    std::int64_t& left = found->second.level;
    if (left < each.quantity && found->second.buckets > 1 && !gathered_.contains(each.sku)) {
      lacksBuckets_ = true;
      return lacking;
    }
    while (left < each.quantity && !swept_.contains(each.sku)) {
      if (work.linesPutBack() >= ReservationWork::mostPutBack) return std::nullopt;
      const ReservationWork::PutBack back = work.putBack(each.sku);
      left += back.pieces;
      if (back.lines == 0) swept_.insert(each.sku);
    }
    if (left < each.quantity) lacking.lines.push_back({each.sku, left});
    if (left > 0) got.lines.push_back({each.sku, std::min(left, each.quantity)});
  }
  if (!unknown.lines.empty()) return unknown;
  const bool enough = cart.rule == CartRule::all ? lacking.lines.empty() : !got.lines.empty();
  return enough ? got : lacking;
}

void GroupReserving::commit(ReservationWork& work) {
  for (PlacedReservation* each : carts_) {
    if (each->result && each->result->state == ReservationState::held) each->inDoubt = true;
  }
  work.transaction.commit();
}

}  // namespace lockkeeper::inventory
