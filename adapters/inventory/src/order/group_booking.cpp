#include "order/group_booking.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "order/written_order.h"

namespace lockkeeper::inventory {

void GroupBooking::run() {
  try {
    if (database_.attempt([&] { book(); }, latest_)) return;
    for (PlacedOrder* each : orders_) each->result = Deduction::conflict;
  } catch (...) {
    fail(std::current_exception());
  }
}

void GroupBooking::book() {
  try {
    if (!bookAll()) bookExactly();
  } catch (const OutcomeUnknown& doubt) {
    lookUp(doubt);
  }
}

/// Two round trips. False when there is too little for all of them, or one of them is booked already.
bool GroupBooking::bookAll() {
  granted_.clear();
  std::unordered_set<std::string_view> ids;
  for (PlacedOrder* each : orders_) {
    const bool first = ids.insert(each->order.orderId).second;
    each->result = first ? Deduction::deducted : Deduction::duplicate;
    if (first) granted_.push_back(&each->order);
  }
  Transaction transaction = database_.begin(Access::write, latest_);
  const Source source = splits_.pick(granted_.front()->sku);
  if (!StockTables(transaction, database_.dialect()).book(granted_, source)) return false;
  commit(transaction);
  return true;
}

/// Holds the article's row, and its buckets, and then decides on one order after the other.
void GroupBooking::bookExactly() {
  Transaction transaction = database_.begin(Access::write, latest_);
  StockTables tables(transaction, database_.dialect());
  const std::string& sku = orders_.front()->order.sku;
  const auto article = tables.held(sku);
  const bool split = article && article->buckets > 1;
  const Buckets buckets = split ? tables.holdBuckets(sku) : Buckets{};
  splits_.note(sku, buckets.count);
  std::vector<std::string_view> ids;
  for (const PlacedOrder* each : orders_) ids.push_back(each->order.orderId);
  const std::vector<BookedOrder> booked = tables.bookedAmong(ids);
  const auto left = decide(article ? std::optional(article->level + buckets.level) : std::nullopt, booked);
  if (!granted_.empty()) {
    if (split) tables.spread(sku, buckets, left);
    // Not when another article's transaction has written one of the ids meanwhile.
    if (!tables.book(granted_, {.buckets = buckets.count}))
      throw Database::Undone(database_.display() + ": an order came in between");
    commit(transaction);
  } else if (!booked.empty()) {
    // Servers show a commit to others before they have flushed it: a later one flushes both.
    tables.rewriteOrder(booked.front().orderId);
    commitAgain(transaction);
  }
}

/// What is left of the level.
std::int64_t GroupBooking::decide(std::optional<std::int64_t> level, std::span<const BookedOrder> booked) {
  granted_.clear();
  std::unordered_map<std::string_view, std::int64_t> attempts;
  for (const BookedOrder& each : booked) attempts.emplace(each.orderId, each.attempt);
  std::int64_t left = level.value_or(0);
  for (PlacedOrder* each : orders_) {
    const Order& order = each->order;
    if (const auto found = attempts.find(order.orderId); found != attempts.end()) {
      each->result = found->second == order.attempt ? Deduction::deducted : Deduction::duplicate;
    } else if (!level) {
      each->result = Deduction::unknownSku;
    } else if (order.quantity > left) {
      each->result = Deduction::soldOut;
    } else {
      each->result = Deduction::deducted;
      left -= order.quantity;
      granted_.push_back(&order);
      attempts.emplace(order.orderId, 0);  // A second one of the same id is a duplicate.
    }
  }
  return left;
}

void GroupBooking::commit(Transaction& transaction) {
  const std::string reason = database_.display() + ": the COMMIT of several orders was broken off";
  undone_ = std::make_exception_ptr(StoreUnavailable(reason));
  doubt_ = std::make_exception_ptr(OutcomeUnknown(reason));
  try {
    transaction.commit();
  } catch (const StoreUnavailable&) {
    doubt_ = nullptr;  // it was not sent
    throw;
  }
  doubt_ = nullptr;
}

/// The transaction was done as a whole or not at all: the first order's row tells. Otherwise it is as if it
/// had not been sent.
void GroupBooking::lookUp(const OutcomeUnknown& doubt) {
  const Order& first = *granted_.front();
  const auto attempt = writtenDespite(doubt, database_, first.orderId, latest_);
  doubt_ = nullptr;
  if (attempt != first.attempt) throw Database::Undone(doubt.what());
}

void GroupBooking::fail(const std::exception_ptr& reason) {
  for (PlacedOrder* each : orders_) {
    const bool mayBeBooked = each->result == Deduction::deducted || each->result == Deduction::duplicate;
    each->failure = !doubt_ ? reason : mayBeBooked ? doubt_ : undone_;
  }
}

}  // namespace lockkeeper::inventory
