#include "stores/marked_store.h"

#include <deque>

namespace lockkeeper::migration {

namespace {

constexpr char mark = '~';
constexpr std::size_t longestLabel = 64;    // as Claim says
constexpr unsigned char highestBit = 0x80;  // in no printable character

bool endsInHighestBit(std::string_view label) {
  return label.size() == longestLabel && (static_cast<unsigned char>(label.back()) & highestBit) != 0;
}

std::string withLastByteChanged(std::string_view label) {
  std::string changed(label);
  changed.back() = static_cast<char>(static_cast<unsigned char>(label.back()) ^ highestBit);
  return changed;
}

}  // namespace

std::string markedLabel(std::string_view label) {
  if (label.empty()) return {};
  return label.size() < longestLabel ? std::string(label) + mark : withLastByteChanged(label);
}

bool isMarked(std::string_view label) { return label.ends_with(mark) || endsInHighestBit(label); }

std::string unmarkedLabel(std::string_view label) {
  if (endsInHighestBit(label)) return withLastByteChanged(label);
  if (label.ends_with(mark)) label.remove_suffix(1);
  return std::string(label);
}

AcquireResult MarkedStore::acquire(const AcquireRequest& request) {
  const std::string owner = markedLabel(request.claim.owner);
  AcquireRequest marked = request;
  marked.claim.owner = owner;
  return store_->acquire(marked);
}

void MarkedStore::renew(std::span<Renewal> renewals, Instant deadline) {
  struct Marked {
    Claim& claim;
    std::string_view plain;
    std::string owner;

    explicit Marked(Claim& its) : claim(its), plain(its.owner), owner(markedLabel(plain)) {
      claim.owner = owner;
    }
    Marked(const Marked&) = delete;
    Marked& operator=(const Marked&) = delete;
    ~Marked() { claim.owner = plain; }
  };
  std::deque<Marked> marked;
  for (Renewal& each : renewals) marked.emplace_back(each.claim);
  store_->renew(renewals, deadline);
}

ReleaseOutcome MarkedStore::release(const Claim& claim, Instant deadline) {
  const std::string owner = markedLabel(claim.owner);
  Claim marked = claim;
  marked.owner = owner;
  return store_->release(marked, deadline);
}

std::optional<Holder> MarkedStore::holder(std::string_view key, Instant deadline) {
  return store_->holder(key, deadline);
}

Promises MarkedStore::promises() const { return store_->promises(); }

std::string MarkedStore::name() const { return store_->name(); }

void* MarkedStore::findCapability(const std::type_info& type) noexcept {
  return store_->findCapability(type);
}

std::string_view MarkedStore::whyNot(const std::type_info& type) const noexcept {
  return store_->whyNot(type);
}

}  // namespace lockkeeper::migration
