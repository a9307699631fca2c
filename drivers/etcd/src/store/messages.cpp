#include "store/messages.h"

#include <Poco/Base64Decoder.h>
#include <Poco/Base64Encoder.h>
#include <Poco/JSON/Array.h>
#include <Poco/JSON/Parser.h>

#include <iterator>
#include <sstream>

namespace lockkeeper::etcd {

namespace {

std::string quotedBytes(std::string_view bytes) { return "\"" + base64(bytes) + "\""; }

std::string quotedNumber(std::int64_t number) { return "\"" + std::to_string(number) + "\""; }

std::string fields(const KeyRange& keys) {
  std::string text = R"("key":)" + quotedBytes(keys.from);
  if (!keys.to.empty()) text += R"(,"range_end":)" + quotedBytes(keys.to);
  return text;
}

std::string compared(const KeyRange& keys, const char* result, std::int64_t revision) {
  return std::string(R"({"target":"CREATE","result":")") + result + R"(",)" + fields(keys) +
         R"(,"create_revision":)" + quotedNumber(revision) + "}";
}

// 0: no limit.
std::string sorted(const KeyRange& keys, const char* order, std::size_t count,
                   std::optional<std::int64_t> before = {}, std::int64_t from = 0) {
  std::string text = R"({"request_range":{)" + fields(keys) + R"(,"sort_target":"CREATE","sort_order":")" +
                     order + R"(","limit":)" + quotedNumber(static_cast<std::int64_t>(count));
  if (before) text += R"(,"max_create_revision":)" + quotedNumber(*before);
  if (from > 0) text += R"(,"min_create_revision":)" + quotedNumber(from);
  return text + "}}";
}

std::string joined(const std::vector<std::string>& items) {
  std::string text = "[";
  for (const std::string& item : items) text.append(text.size() > 1 ? "," : "").append(item);
  return text + "]";
}

std::vector<Entry> entriesIn(const Poco::JSON::Object& range) {
  std::vector<Entry> entries;
  const auto found = range.getArray("kvs");
  for (std::size_t i = 0; found && i < found->size(); ++i) {
    const auto entry = found->getObject(static_cast<unsigned>(i));
    if (!entry) throw Poco::DataFormatException("an entry that is no object");
    entries.push_back({.key = bytes(*entry, "key"),
                       .value = bytes(*entry, "value"),
                       .created = number(*entry, "create_revision"),
                       .modified = number(*entry, "mod_revision"),
                       .lease = number(*entry, "lease")});
  }
  return entries;
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::ostringstream text;
  Poco::Base64Encoder encoder(text);
  encoder.rdbuf()->setLineLength(0);
  encoder.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  encoder.close();
  return text.str();
}

std::string endOf(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xFF') prefix.pop_back();
  if (prefix.empty()) return std::string(1, '\0');  // to the end of all keys
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

std::string createdAt(const KeyRange& keys, std::int64_t revision) {
  return compared(keys, "EQUAL", revision);
}

std::string createdAfter(const KeyRange& keys, std::int64_t revision) {
  return compared(keys, "GREATER", revision);
}

std::string modifiedAt(const std::string& key, std::int64_t revision) {
  return R"({"target":"MOD","result":"EQUAL",)" + fields({.from = key}) + R"(,"mod_revision":)" +
         quotedNumber(revision) + "}";
}

std::string hasValue(const std::string& key, std::string_view value) {
  return R"({"target":"VALUE","result":"EQUAL",)" + fields({.from = key}) + R"(,"value":)" +
         quotedBytes(value) + "}";
}

std::vector<std::string> unchangedSince(const std::string& key, std::int64_t created, std::int64_t modified) {
  return {createdAt({.from = key}, created), modifiedAt(key, modified)};
}

std::string put(const std::string& key, std::string_view value, std::int64_t lease) {
  return R"({"request_put":{)" + fields({.from = key}) + R"(,"value":)" + quotedBytes(value) +
         R"(,"lease":)" + quotedNumber(lease) + "}}";
}

std::string remove(const std::string& key) {
  return R"({"request_delete_range":{)" + fields({.from = key}) + "}}";
}

std::string get(const std::string& key) { return R"({"request_range":{)" + fields({.from = key}) + "}}"; }

std::string getFirst(const KeyRange& keys) { return sorted(keys, "ASCEND", 1); }

std::string getLast(const KeyRange& keys, std::size_t count, std::optional<std::int64_t> before) {
  return sorted(keys, "DESCEND", count, before);
}

std::string getAll(const KeyRange& keys, std::optional<std::int64_t> before, std::size_t most,
                   std::int64_t from) {
  return sorted(keys, "ASCEND", most, before, from);
}

std::string count(const KeyRange& keys) {
  return R"({"request_range":{)" + fields(keys) + R"(,"count_only":true}})";
}

std::string getPage(const KeyRange& keys, std::size_t most) {
  return R"({"request_range":{)" + fields(keys) + R"(,"limit":)" +
         quotedNumber(static_cast<std::int64_t>(most)) + "}}";
}

std::string transaction(const std::vector<std::string>& compares, const std::vector<std::string>& then,
                        const std::vector<std::string>& otherwise) {
  return R"({"compare":)" + joined(compares) + R"(,"success":)" + joined(then) + R"(,"failure":)" +
         joined(otherwise) + "}";
}

Poco::JSON::Object::Ptr parsed(const std::string& body) {
  try {
    return Poco::JSON::Parser().parse(body).extract<Poco::JSON::Object::Ptr>();
  } catch (const std::exception&) {
    return nullptr;
  }
}

TransactionReply transactionReply(const Poco::JSON::Object& reply) {
  TransactionReply result;
  result.succeeded = reply.optValue("succeeded", false);
  const auto header = reply.getObject("header");
  if (!header) throw Poco::DataFormatException("a reply without a header");
  result.revision = number(*header, "revision");
  const auto responses = reply.getArray("responses");
  for (std::size_t i = 0; responses && i < responses->size(); ++i) {
    const auto response = responses->getObject(static_cast<unsigned>(i));
    if (!response) throw Poco::DataFormatException("a response that is no object");
    const auto range = response->getObject("response_range");
    result.found.push_back(range ? entriesIn(*range) : std::vector<Entry>{});
    result.counted.push_back(range ? number(*range, "count") : 0);
  }
  return result;
}

std::int64_t number(const Poco::JSON::Object& reply, const std::string& name) {
  return reply.has(name) ? reply.getValue<Poco::Int64>(name) : 0;
}

std::string bytes(const Poco::JSON::Object& reply, const std::string& name) {
  if (!reply.has(name)) return {};
  std::istringstream text(reply.getValue<std::string>(name));
  Poco::Base64Decoder decoder(text);
  std::string result(std::istreambuf_iterator<char>(decoder), {});
  if (decoder.bad()) throw Poco::DataFormatException("bytes that are not base64");
  return result;
}

}  // namespace lockkeeper::etcd
