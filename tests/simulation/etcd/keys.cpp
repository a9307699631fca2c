#include "simulation/etcd/keys.h"

#include <Poco/Base64Decoder.h>
#include <Poco/Base64Encoder.h>
#include <Poco/JSON/Array.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "simulation/machine/scheduler.h"

namespace lockkeeper::simulation {
namespace {

using Poco::JSON::Array;
using Poco::JSON::Object;

// What a cluster with etcd's own election timeout grants at least, in s.
constexpr std::int64_t leastTtl = 2;
const char* const noLease = "etcdserver: requested lease not found";
constexpr int notFound = 5;
constexpr int failedPrecondition = 9;

std::string bytesIn(const Object& object, const char* name) {
  std::istringstream text(object.optValue<std::string>(name, ""));
  Poco::Base64Decoder decoder(text);
  return {std::istreambuf_iterator<char>(decoder), {}};
}

std::int64_t numberIn(const Object& object, const char* name) {
  return object.has(name) ? object.getValue<Poco::Int64>(name) : 0;
}

// As in JSON made from protocol buffers, a field with its default value is left out.
std::string field(const char* name, std::int64_t number) {
  return number == 0 ? "" : ",\"" + std::string(name) + "\":\"" + std::to_string(number) + "\"";
}

std::string field(const char* name, const std::string& bytes) {
  return bytes.empty() ? "" : ",\"" + std::string(name) + "\":\"" + base64Of(bytes) + "\"";
}

std::string object(std::string fields) {
  if (fields.starts_with(',')) fields.erase(0, 1);
  return "{" + fields + "}";
}

// What of a key is compared.
std::int64_t revisionIn(const EtcdKeys::Key& key, const std::string& target) {
  return target == "CREATE" ? key.created : key.modified;
}

}  // namespace

std::string base64Of(const std::string& bytes) {
  std::ostringstream text;
  Poco::Base64Encoder encoder(text);
  encoder.rdbuf()->setLineLength(0);
  encoder << bytes;
  encoder.close();
  return text.str();
}

std::string EtcdKeys::header() const {
  return R"("header":{"cluster_id":"1","member_id":"1","revision":")" + std::to_string(revision_) +
         R"(","raft_term":"2"})";
}

std::string EtcdKeys::call(const std::string& path, const Object& request) {
  if (path == "/v3/kv/txn") return transaction(request);
  if (path == "/v3/lease/grant") return grant(request);
  if (path == "/v3/lease/keepalive") return keepAlive(numberIn(request, "ID"));
  if (path == "/v3/lease/revoke") return revoke(numberIn(request, "ID"));
  if (path == "/v3/lease/timetolive") return timeToLive(numberIn(request, "ID"));
  throw EtcdRefusal(notFound, "Not Found");
}

std::string EtcdKeys::transaction(const Object& request) {
  const auto operationsOf = [&](const char* branch) {
    std::vector<Object::Ptr> all;
    const Array::Ptr found = request.getArray(branch);
    for (unsigned i = 0; found && i < found->size(); ++i) all.push_back(found->getObject(i));
    return all;
  };
  const auto compares = operationsOf("compare");
  const bool succeeded = std::ranges::all_of(compares, [&](const auto& each) { return holds(*each); });
  const auto operations = operationsOf(succeeded ? "success" : "failure");
  for (const auto& each : operations) {
    const Object::Ptr put = each->getObject("request_put");
    const std::int64_t lease = put ? numberIn(*put, "lease") : 0;
    if (lease != 0 && !leases_.contains(lease)) throw EtcdRefusal(notFound, noLease);
  }
  const std::int64_t before = revision_;
  Removal removal{.keys = {}, .revision = before + 1};
  std::string responses;
  for (const auto& each : operations) {
    if (const Object::Ptr wanted = each->getObject("request_put")) {
      put(*wanted, before + 1);
      revision_ = before + 1;
      responses += R"(,{"response_put":{)" + header() + "}}";
    } else if (const Object::Ptr removed = each->getObject("request_delete_range")) {
      const std::vector<std::string> keys = remove(*removed);
      if (!keys.empty()) revision_ = before + 1;
      removal.keys.insert(removal.keys.end(), keys.begin(), keys.end());
      responses += R"(,{"response_delete_range":{)" + header() +
                   field("deleted", static_cast<std::int64_t>(keys.size())) + "}}";
    } else {
      responses += R"(,{"response_range":{)" + header() + range(*each->getObject("request_range")) + "}}";
    }
  }
  if (!responses.empty()) responses.replace(0, 1, ",\"responses\":[") += "]";
  std::string reply = "{" + header() + (succeeded ? R"(,"succeeded":true)" : "") + responses + "}";
  if (!removal.keys.empty()) onRemoval_(removal);
  return reply;
}

bool EtcdKeys::holds(const Object& compare) const {
  const auto target = compare.getValue<std::string>("target");
  const auto result = compare.optValue<std::string>("result", "EQUAL");
  const Selected keys = select(compare);
  if (target == "VALUE") {
    const std::string wanted = bytesIn(compare, "value");
    return !keys.empty() &&
           std::ranges::all_of(keys, [&](const auto& each) { return each->second.value == wanted; });
  }
  const std::int64_t wanted = numberIn(compare, target == "CREATE" ? "create_revision" : "mod_revision");
  const auto passes = [&](const Key& key) {
    const std::int64_t revision = revisionIn(key, target);
    return result == "GREATER" ? revision > wanted
           : result == "LESS"  ? revision < wanted
                               : revision == wanted;
  };
  if (keys.empty()) return passes({});
  return std::ranges::all_of(keys, [&](const auto& each) { return passes(each->second); });
}

EtcdKeys::Selected EtcdKeys::select(const Object& range) const {
  const std::string from = bytesIn(range, "key");
  const std::string to = bytesIn(range, "range_end");
  Selected found;
  for (auto each = keys_.lower_bound(from); each != keys_.end(); ++each) {
    const bool isIn = to.empty() ? each->first == from : to == std::string(1, '\0') || each->first < to;
    if (!isIn) break;
    found.push_back(each);
  }
  return found;
}

std::string EtcdKeys::range(const Object& request) const {
  Selected keys = select(request);
  const std::string count = field("count", static_cast<std::int64_t>(keys.size()));
  if (request.optValue("count_only", false)) return count;
  const std::int64_t least = numberIn(request, "min_create_revision");
  const std::int64_t most = numberIn(request, "max_create_revision");
  std::erase_if(keys, [&](const auto& each) {
    return each->second.created < least || (most != 0 && each->second.created > most);
  });
  const auto order = request.optValue<std::string>("sort_order", "");
  if (!order.empty()) {
    std::ranges::stable_sort(keys, [&](const auto& left, const auto& right) {
      return order == "DESCEND" ? left->second.created > right->second.created
                                : left->second.created < right->second.created;
    });
  }
  const auto limit = static_cast<std::size_t>(numberIn(request, "limit"));
  const bool more = limit != 0 && keys.size() > limit;
  if (more) keys.resize(limit);
  std::string entries;
  for (const auto& each : keys) {
    const Key& key = each->second;
    entries += "," + object(field("key", each->first) + field("create_revision", key.created) +
                            field("mod_revision", key.modified) + field("version", key.version) +
                            field("value", key.value) + field("lease", key.lease));
  }
  if (!entries.empty()) entries.replace(0, 1, ",\"kvs\":[") += "]";
  return entries + (more ? R"(,"more":true)" : "") + count;
}

void EtcdKeys::put(const Object& request, std::int64_t revision) {
  const std::string name = bytesIn(request, "key");
  Key& key = keys_[name];
  detach(name, key.lease);
  if (key.version == 0) key.created = revision;
  key.modified = revision;
  ++key.version;
  key.value = bytesIn(request, "value");
  key.lease = numberIn(request, "lease");
  if (key.lease != 0) leases_[key.lease].keys.insert(name);
}

std::vector<std::string> EtcdKeys::remove(const Object& request) {
  std::vector<std::string> removed;
  for (const auto& each : select(request)) {
    removed.push_back(each->first);
    detach(each->first, each->second.lease);
    keys_.erase(each);
  }
  return removed;
}

void EtcdKeys::detach(const std::string& key, std::int64_t lease) {
  const auto found = leases_.find(lease);
  if (found != leases_.end()) found->second.keys.erase(key);
}

std::string EtcdKeys::grant(const Object& request) {
  std::int64_t id = numberIn(request, "ID");
  if (leases_.contains(id)) throw EtcdRefusal(failedPrecondition, "etcdserver: lease already exists");
  if (id == 0) id = ++lastLease_;
  const std::int64_t ttl = std::max(leastTtl, numberIn(request, "TTL"));
  leases_[id] = {.ttl = ttl, .end = now_() + ttl * second};
  return "{" + header() + field("ID", id) + field("TTL", ttl) + "}";
}

// One that has ended is not renewed, although it may still be there.
std::string EtcdKeys::keepAlive(std::int64_t id) {
  const auto found = leases_.find(id);
  const bool runs = found != leases_.end() && found->second.end > now_();
  if (runs) found->second.end = now_() + found->second.ttl * second;
  return R"({"result":{)" + header() + field("ID", id) + field("TTL", runs ? found->second.ttl : 0) + "}}\n";
}

std::string EtcdKeys::timeToLive(std::int64_t id) const {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return "{" + header() + field("ID", id) + R"(,"TTL":"-1"})";
  return "{" + header() + field("ID", id) + field("TTL", (found->second.end - now_()) / second) +
         field("grantedTTL", found->second.ttl) + "}";
}

std::string EtcdKeys::revoke(std::int64_t id) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) throw EtcdRefusal(notFound, noLease);
  const std::set<std::string> keys = std::move(found->second.keys);
  leases_.erase(found);
  for (const std::string& each : keys) keys_.erase(each);
  if (!keys.empty()) ++revision_;
  std::string reply = "{" + header() + "}";
  if (!keys.empty()) onRemoval_({.keys = {keys.begin(), keys.end()}, .revision = revision_});
  return reply;
}

void EtcdKeys::endLeases() {
  std::vector<std::int64_t> ended;
  for (const auto& [id, lease] : leases_)
    if (lease.end <= now_()) ended.push_back(id);
  for (const std::int64_t id : ended) revoke(id);
}

void EtcdKeys::startLeasesAnew() {
  for (auto& [id, lease] : leases_) lease.end = now_() + lease.ttl * second;
}

}  // namespace lockkeeper::simulation
