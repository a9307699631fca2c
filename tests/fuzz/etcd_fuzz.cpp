// Replies of etcd's gateway of arbitrary bytes: they are read, or refused by an exception of Poco.

#include <Poco/Exception.h>
#include <Poco/JSON/Object.h>

#include <string>

#include "fuzz_target.h"
#include "store/messages.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockkeeper::etcd;
  const std::string body(reinterpret_cast<const char*>(data), size);
  const Poco::JSON::Object::Ptr reply = parsed(body);
  if (!reply) return 0;
  try {
    const TransactionReply done = transactionReply(*reply);
    require(done.found.size() == done.counted.size(), "each thing that was done has found so many");
  } catch (const Poco::Exception&) {
  }
  for (const char* name : {"ID", "TTL", "value", "key"}) {
    try {
      number(*reply, name);
    } catch (const Poco::Exception&) {
    }
    try {
      bytes(*reply, name);
    } catch (const Poco::Exception&) {
    }
  }
  return 0;
}

std::vector<std::string> fuzzSeeds() {
  return {
      R"({"header":{"revision":"7"},"succeeded":true,"responses":[{"response_put":{"header":{"revision":"7"}}}]})",
      R"({"header":{"revision":"9"},"responses":[{"response_range":{"kvs":[{"key":"a2V5","create_revision":"3",)"
      R"("mod_revision":"9","version":"2","value":"dmFsdWU=","lease":"1234567890123456789"}],"count":"1"}},)"
      R"({"response_delete_range":{"deleted":"1"}}]})",
      R"({"header":{"revision":"7"},"ID":"1234567890123456789","TTL":"30"})",
      R"({"error":"etcdserver: leader changed","code":14})",
      R"({"ID":-1,"TTL":1e99,"key":"%%%","value":null})"};
}
