#include "ledger/group_reserving.h"

#include <algorithm>
#include <string_view>
#include <utility>

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

/// What the first cart has got, as the answer to a cart with the same id.
Reservation answerTo(const PlacedReservation& again, const PlacedReservation& first,
                     std::vector<CartLine> got) {
  const auto areSame = [](const CartLine& one, const CartLine& other) {
    return one.sku == other.sku && one.quantity == other.quantity;
  };
  const bool isSame = std::ranges::equal(again.cart, first.cart, areSame);
  return {isSame ? ReservationState::held : ReservationState::differs, std::move(got)};
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
  if (carts_.front()->cart.size() > 1 || carts_.front()->replaces()) return false;
  std::vector<ReservedLine> lines;
  std::map<std::string_view, const PlacedReservation*> first;
  for (PlacedReservation* each : carts_) {
    const auto [mine, isFirst] = first.emplace(each->id, each);
    each->result = answerTo(*each, *mine->second, mine->second->cart);
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
  const std::vector<std::string> skus = skusToHold();
  for (;;) {
    former_.clear();
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
      const std::int64_t entry = former_.empty() ? 0 : work.ledger.nextLine(former_.front().id);
      if (!former_.empty()) work.remove(former_, entry);
      for (const auto& [sku, buckets] : gathered_) {
        if (buckets.count > 1) work.stock.spread(sku, buckets, articles.at(sku).level);
      }
      if (!work.take(*lines, heldArticle, entry)) {
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
  std::map<std::string_view, const PlacedReservation*> taken;
  std::vector<ReservedLine> lines;
  for (PlacedReservation* each : carts_) {
    each->result.reset();
    each->failure = nullptr;
    const auto found = known.find(each->id);
    if (found != known.end() && answer(*each, found->second)) continue;
    // Unless the lines are of this cart, no former COMMIT has replaced them; without lines, none has made
    // any.
    each->inDoubt = each->inDoubt && found != known.end() && areOf(found->second, each->cart);
    if (each->replaces() && found == known.end()) {
      each->result = Reservation{.state = ReservationState::unknownId};
      continue;
    }
    if (each->replaces()) countFormer(found->second, articles);
    if (deleted.contains(each->id)) {
      each->failure = failureOfDeleted(each->id);
      continue;
    }
    if (const auto earlier = taken.find(each->id); earlier != taken.end()) {
      each->result = answerTo(*each, *earlier->second, earlier->second->result->lines);
      continue;
    }
    each->result = decide(work, articles, *each);
    if (!each->result) return std::nullopt;
    if (each->result->state != ReservationState::held) continue;
    taken.emplace(each->id, each);
    for (const CartLine& got : each->result->lines) articles[got.sku].level -= got.quantity;
    addLines(lines, *each, each->result->lines);
  }
  return lines;
}

/// There is a reservation of that id. False when the cart is to replace its lines.
bool GroupReserving::answer(PlacedReservation& cart, std::span<const ReservedLine> lines) {
  try {
    const ReservationState state = stateOf(lines);
    const bool isHeld = state == ReservationState::held;
    if (isHeld && cart.replaces()) return false;
    const bool differs = isHeld && !areOf(lines, cart.cart);
    if (state != ReservationState::expired) {
      cart.result = Reservation{differs ? ReservationState::differs : state, cartOf(lines)};
    }
  } catch (const ConfigError&) {
    cart.failure = std::current_exception();
  }
  return true;
}

/// The articles of the cart, and of the lines that it is to replace.
std::vector<std::string> GroupReserving::skusToHold() {
  PlacedReservation& cart = *carts_.front();
  std::set<std::string> skus;
  for (const CartLine& each : cart.cart) skus.insert(each.sku);
  if (cart.replaces()) {
    // Those of a former attempt stay: its COMMIT may have been carried out.
    Transaction transaction = database_.begin(Access::read, latest_);
    ReservationTables reservations(transaction, database_.dialect());
    for (ReservedLine& each : reservations.lines({&cart.id, 1})) {
      skus.insert(each.sku);
      cart.formerSkus->push_back(std::move(each.sku));
    }
  }
  return {skus.begin(), skus.end()};
}

/// What the reservation holds counts for the cart that replaces it.
void GroupReserving::countFormer(std::span<const ReservedLine> lines, Articles& articles) {
  for (const ReservedLine& each : lines) {
    const auto found = articles.find(each.sku);
    if (found == articles.end()) {
      throw Database::Undone(database_.display() + ": the reservation has got other articles meanwhile");
    }
    found->second.level += each.quantity;
  }
  former_.assign(lines.begin(), lines.end());
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
