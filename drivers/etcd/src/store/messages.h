#pragma once

#include <Poco/JSON/Object.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What is said over etcd's HTTP gateway: JSON, in which bytes are base64 and 64-bit numbers strings.

namespace lockkeeper::etcd {

/// Bytes as etcd takes them.
std::string base64(std::string_view bytes);

/// The end of the range of all keys that begin with `prefix`.
std::string endOf(std::string prefix);

/// Which keys a range is about.
struct KeyRange {
  std::string from;
  std::string to{};  ///< Not in it; empty: `from` alone.
};

/// What a transaction compares. Of a range, all of its keys must pass, and an empty one has revision 0.
/// @{
std::string createdAt(const KeyRange& keys, std::int64_t revision);
std::string createdAfter(const KeyRange& keys, std::int64_t revision);
/// That nothing has been done to the key since `revision`.
std::string modifiedAt(const std::string& key, std::int64_t revision);
std::string hasValue(const std::string& key, std::string_view value);
/// That it is the key that was created then, and nothing has been done to it since the other: two compares.
std::vector<std::string> unchangedSince(const std::string& key, std::int64_t created, std::int64_t modified);
/// @}

/// What a transaction does.
/// @{
std::string put(const std::string& key, std::string_view value, std::int64_t lease);
std::string remove(const std::string& key);
std::string get(const std::string& key);
/// The one created first,
std::string getFirst(const KeyRange& keys);
/// and those created last, at `before` or earlier.
std::string getLast(const KeyRange& keys, std::size_t count, std::optional<std::int64_t> before = {});
/// All that were created from `from` to `before`, in the order in which they were; `most` of them, if that is
/// not 0.
std::string getAll(const KeyRange& keys, std::optional<std::int64_t> before = {}, std::size_t most = 0,
                   std::int64_t from = 0);
/// The first ones in the order of the keys, `most` at most.
std::string getPage(const KeyRange& keys, std::size_t most);
/// How many there are.
std::string count(const KeyRange& keys);
/// @}

/// A transaction: `then` when all of `compares` hold, `otherwise` when not.
std::string transaction(const std::vector<std::string>& compares, const std::vector<std::string>& then,
                        const std::vector<std::string>& otherwise);

/// One key, as the store has it.
struct Entry {
  std::string key;
  std::string value;
  std::int64_t created = 0;   ///< Its create revision.
  std::int64_t modified = 0;  ///< That of the last change, such as a move to another lease.
  std::int64_t lease = 0;
};

/// The reply to a transaction.
struct TransactionReply {
  bool succeeded = false;
  std::int64_t revision = 0;
  std::vector<std::vector<Entry>> found;  ///< For each thing that was done; empty for what finds nothing.
  std::vector<std::int64_t> counted;      ///< For each, how many keys it has found.
};

/// The body of a reply; null when it is no JSON object.
Poco::JSON::Object::Ptr parsed(const std::string& body);

/// These throw Poco::Exception for a reply that is none of its kind.
/// @{
TransactionReply transactionReply(const Poco::JSON::Object& reply);
std::int64_t number(const Poco::JSON::Object& reply, const std::string& name);
std::string bytes(const Poco::JSON::Object& reply, const std::string& name);
/// @}

}  // namespace lockkeeper::etcd
