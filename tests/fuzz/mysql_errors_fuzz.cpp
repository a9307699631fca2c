// Numbers and words of errors as a MySQL server may send any: each becomes one of lockkeeper's errors, in one
// line.

#include <string>

#include "fuzz_target.h"
#include "session/reply_fault.h"

namespace {

template <class Throw>
lockkeeper::ErrorCode thrown(Throw fault) {
  try {
    fault();
  } catch (const lockkeeper::Error& error) {
    requireOneLine(error);
    return error.code();
  }
  std::abort();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockkeeper;
  mysql::Reply reply;
  for (std::size_t i = 0; i < 2 && i < size; ++i) reply.error = reply.error * 256 + data[i];
  reply.reason.assign(reinterpret_cast<const char*>(data), size);
  if (reply.error == 0) return 0;
  const ErrorCode ofStatement = thrown([&] { mysql::throwFault(reply, "mysql", "getlock.sql"); });
  const ErrorCode ofPreparation = thrown([&] { mysql::throwPreparationFault(reply, "mysql"); });
  const ErrorCode ofLogIn = thrown([&] { mysql::throwConnectFault(reply.error, reply.reason, "mysql"); });
  require(!reply.lost() || ofStatement == ErrorCode::outcomeUnknown,
          "what a lost session has done is unknown");
  for (const ErrorCode each : {ofPreparation, ofLogIn})
    require(each == ErrorCode::config || each == ErrorCode::storeUnavailable, "nothing was claimed yet");
  thrown([&] { mysql::throwLockFault(reply, reply.reason, {reply.reason}, "mysql"); });
  return 0;
}

std::vector<std::string> fuzzSeeds() {
  const auto seed = [](unsigned error, const char* words) {
    return std::string{static_cast<char>(error / 256), static_cast<char>(error % 256)} + words;
  };
  return {seed(1213, "Deadlock found when trying to get lock; try restarting transaction"),
          seed(1205, "Lock wait timeout exceeded"),
          seed(1290, "The MySQL server is running with the --read-only option"),
          seed(2013, "Lost connection to server during query"),
          seed(2026, "TLS/SSL error: certificate verify failed"),
          seed(2026, "TLS/SSL error: unexpected eof while reading"),
          seed(1180, "Got error 28 \"No space left on device\" during COMMIT"),
          seed(3058, "Deadlock found when trying to get user-level lock")};
}
