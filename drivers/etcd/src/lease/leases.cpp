#include "lease/leases.h"

#include <Poco/Exception.h>

#include <algorithm>

namespace lockkeeper::etcd {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::int64_t wholeSeconds(milliseconds ttl) {
  return std::max<std::int64_t>(1, std::chrono::ceil<seconds>(ttl).count());
}

// Those in doubt beyond that end with their ttl.
constexpr std::size_t mostDoubted = 4096;

std::string idOnly(std::int64_t id) { return R"({"ID":")" + std::to_string(id) + R"("})"; }

}  // namespace

Lease Leases::grant(milliseconds ttl, Instant deadline) {
  const std::int64_t asked = wholeSeconds(ttl);
  const Answer answer =
      store_.call("/v3/lease/grant", R"({"TTL":")" + std::to_string(asked) + R"("})", deadline, Effect::none);
  std::int64_t id = 0;
  std::int64_t given = 0;
  try {
    id = number(*answer.json, "ID");
    given = number(*answer.json, "TTL");
  } catch (const Poco::Exception&) {
  }
  if (id == 0 || given <= 0) store_.unexpected();
  if (given > asked || asked < least_) least_ = given;
  return {.id = id, .from = answer.sentAt, .length = seconds{given}};
}

void Leases::keep(std::span<KeptLease> leases, Instant deadline) {
  std::vector<BatchedCall> calls;
  for (const KeptLease& each : leases) calls.push_back({.body = idOnly(each.id)});
  store_.callAll("/v3/lease/keepalive", calls, deadline);
  for (std::size_t i = 0; i < leases.size(); ++i) {
    KeptLease& each = leases[i];
    if (!calls[i].answer) {
      each.error = calls[i].error;
      each.cause = calls[i].cause;
      continue;
    }
    if (calls[i].answer->noLease) continue;
    try {
      const auto result = calls[i].answer->json->getObject("result");
      if (!result || number(*result, "ID") != each.id) throw Poco::DataFormatException("not of this lease");
      const std::int64_t left = number(*result, "TTL");
      if (left > 0)
        each.kept = Lease{.id = each.id, .from = calls[i].answer->sentAt, .length = seconds{left}};
    } catch (const Poco::Exception&) {
      each.error = ErrorCode::protocol;
      each.cause = store_.name() + ": a reply that etcd does not give";
    }
  }
}

void Leases::end(std::int64_t id) { store_.send("/v3/lease/revoke", idOnly(id)); }

void Leases::withdraw(const std::string& claim, std::int64_t id) {
  BatchedCall call{.body = idOnly(id)};
  store_.callAll("/v3/lease/revoke", std::span(&call, 1), store_.oneTimeout());
  if (call.answer) return;
  remember(claim, id);
  throw OutcomeUnknown(call.cause + "; the claim may still be there");
}

TransactionReply Leases::attach(const std::string& claim, const Lease& lease,
                                const EtcdStore::Transaction& transaction, Instant deadline) {
  try {
    TransactionReply reply = store_.execute(transaction, deadline);
    if (reply.succeeded) endDoubted(claim, deadline);
    return reply;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::outcomeUnknown || error.code() == ErrorCode::protocol) {
      remember(claim, lease.id);
    } else {
      end(lease.id);
    }
    throw;
  }
}

void Leases::remember(const std::string& claim, std::int64_t id) {
  const std::lock_guard guard(mutex_);
  remember(claim, Doubted{.id = id, .age = ++lastAge_});
}

// Under the mutex.
void Leases::remember(const std::string& claim, const Doubted& lease) {
  if (doubted_.size() >= mostDoubted) {
    doubted_.erase(std::min_element(
        doubted_.begin(), doubted_.end(),
        [](const auto& left, const auto& right) { return left.second.age < right.second.age; }));
  }
  doubted_.emplace(claim, lease);
}

void Leases::endDoubted(const std::string& claim, Instant deadline) {
  std::vector<Doubted> leases;
  std::vector<BatchedCall> calls;
  {
    const std::lock_guard guard(mutex_);
    const auto [from, to] = doubted_.equal_range(claim);
    for (auto each = from; each != to; ++each) {
      leases.push_back(each->second);
      calls.push_back({.body = idOnly(each->second.id)});
    }
    doubted_.erase(from, to);
  }
  if (leases.empty()) return;
  store_.callAll("/v3/lease/revoke", calls, std::min(deadline, store_.oneTimeout()));
  const std::lock_guard guard(mutex_);
  for (std::size_t i = 0; i < leases.size(); ++i) {
    if (!calls[i].answer) remember(claim, leases[i]);  // it may live on
  }
}

bool Leases::fits(const Lease& lease, milliseconds ttl) const {
  return lease.length == seconds{std::max(wholeSeconds(ttl), least_.load())};
}

std::vector<std::optional<milliseconds>> Leases::remaining(std::span<const std::int64_t> ids,
                                                           Instant deadline) {
  std::vector<BatchedCall> calls;
  for (const std::int64_t id : ids) calls.push_back({.body = idOnly(id)});
  store_.callAll("/v3/lease/timetolive", calls, deadline);
  std::vector<std::optional<milliseconds>> all;
  for (const BatchedCall& call : calls) {
    auto& left = all.emplace_back();
    try {
      const std::int64_t told = call.answer && !call.answer->noLease ? number(*call.answer->json, "TTL") : -1;
      if (told >= 0) left = seconds{told};
    } catch (const Poco::Exception&) {  // not told
    }
  }
  return all;
}

}  // namespace lockkeeper::etcd
