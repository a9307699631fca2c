#include "session/reply_fault.h"

#include "lockkeeper/error.h"

#include <gtest/gtest.h>

namespace lockkeeper::mysql {
namespace {

struct Case {
  unsigned error;
  ErrorCode code;
};

ErrorCode codeOfLockFault(unsigned error) {
  try {
    throwLockFault({.error = error, .reason = "words"}, "key", {"held"}, "store");
  } catch (const Error& fault) {
    EXPECT_NE(std::string(fault.what()).find("error " + std::to_string(error)), std::string::npos)
        << fault.what();
    return fault.code();
  }
}

ErrorCode codeOfConnectFault(unsigned error, const std::string& words = "words") {
  try {
    throwConnectFault(error, words, "store");
  } catch (const Error& fault) {
    return fault.code();
  }
}

TEST(ReplyFault, OfALockIsWhatTheServersNumberSays) {
  for (const Case& each :
       {Case{1317, ErrorCode::storeUnavailable},  // KILL QUERY
        Case{3024, ErrorCode::storeUnavailable},  // MySQL: statement took too long
        Case{1969, ErrorCode::storeUnavailable},  // MariaDB: the same
        Case{3058, ErrorCode::deadlock},         Case{1213, ErrorCode::deadlock},
        Case{2006, ErrorCode::outcomeUnknown},   Case{2013, ErrorCode::outcomeUnknown},
        Case{4031, ErrorCode::outcomeUnknown},   Case{1927, ErrorCode::outcomeUnknown},
        Case{1290, ErrorCode::storeUnavailable},  // a planned switch: it is a replica now
        Case{1836, ErrorCode::storeUnavailable}, Case{3101, ErrorCode::storeUnavailable},
        Case{1114, ErrorCode::storeUnavailable},  // the table is full
        Case{1021, ErrorCode::storeUnavailable},  // the disk is full
        Case{1037, ErrorCode::storeUnavailable},  // out of memory
        Case{1206, ErrorCode::storeUnavailable},  // more row locks than there is memory for
        Case{1226, ErrorCode::storeUnavailable},  // max_queries_per_hour
        Case{9001, ErrorCode::storeUnavailable},  // a proxy has no server
        Case{1180, ErrorCode::outcomeUnknown},    // a commit that failed
        Case{1598, ErrorCode::outcomeUnknown},   Case{1064, ErrorCode::config},
        Case{1142, ErrorCode::config},           Case{1146, ErrorCode::config}}) {
    EXPECT_EQ(codeOfLockFault(each.error), each.code) << each.error;
  }
}

// With it nothing is claimed yet. A reason that nobody has thought of must not keep us from other hosts.
TEST(ReplyFault, OfAPreparationIsForTheAdministratorOnlyWhereItIsKnownToBe) {
  const auto code = [](unsigned error) {
    try {
      throwPreparationFault({.error = error, .reason = "words"}, "store");
    } catch (const Error& fault) {
      return fault.code();
    }
  };
  for (const unsigned each : {1142U, 1146U, 1049U}) EXPECT_EQ(code(each), ErrorCode::config) << each;
  for (const unsigned each : {65000U, 2013U, 3799U, 1205U, 1180U}) {
    EXPECT_EQ(code(each), ErrorCode::storeUnavailable) << each;
  }
}

TEST(ReplyFault, OfAGroupThatIsStoppedOrElectsIsThatOfAFormerPrimary) {
  for (const unsigned each : {3781U, 3782U, 3783U, 3796U, 3797U, 3798U, 3799U}) {
    EXPECT_EQ(kindOf(each), FaultKind::notPrimary) << each;
  }
}

TEST(ReplyFault, OfAConnectionTellsWhatPassesFromWhatMustBeMended) {
  for (const Case& each :
       {Case{1040, ErrorCode::storeUnavailable}, Case{1203, ErrorCode::storeUnavailable},
        Case{3032, ErrorCode::storeUnavailable},  // offline mode: it has left its group
        Case{1135, ErrorCode::storeUnavailable},  // no thread for us
        Case{1041, ErrorCode::storeUnavailable},  // out of memory
        Case{9001, ErrorCode::storeUnavailable},  // a proxy has no server
        Case{2002, ErrorCode::storeUnavailable}, Case{2003, ErrorCode::storeUnavailable},
        Case{2013, ErrorCode::storeUnavailable}, Case{1044, ErrorCode::config}, Case{1045, ErrorCode::config},
        Case{1049, ErrorCode::config}, Case{1130, ErrorCode::config}, Case{1698, ErrorCode::config},
        Case{3118, ErrorCode::config}, Case{4151, ErrorCode::config}, Case{3159, ErrorCode::config},
        Case{2026, ErrorCode::config}, Case{2059, ErrorCode::config}}) {
    EXPECT_EQ(codeOfConnectFault(each.error), each.code) << each.error;
  }
}

TEST(ReplyFault, OfTlsTellsABrokenConnectionFromAServerThatMustNotBeTrusted) {
  for (const char* const broken :
       {"TLS/SSL error: unexpected eof while reading", "TLS/SSL error: Connection timed out (110)",
        "TLS/SSL error: Connection reset by peer (104)"}) {
    EXPECT_EQ(codeOfConnectFault(2026, broken), ErrorCode::storeUnavailable) << broken;
  }
  for (const char* const refused : {"TLS/SSL error: self-signed certificate in certificate chain",
                                    "TLS/SSL error: Validation of SSL server certificate failed",
                                    "SSL is required, but the server does not support it"}) {
    EXPECT_EQ(codeOfConnectFault(2026, refused), ErrorCode::config) << refused;
  }
}

TEST(ReplyFault, SaysOnOneLineWhatTheServerSaid) {
  try {
    throwFault({.error = 1146, .reason = "no\ntable"}, "mysql+getlock://db", "getlock.sql");
  } catch (const ConfigError& fault) {
    const std::string said = fault.what();
    EXPECT_EQ(said.find('\n'), std::string::npos);
    EXPECT_EQ(said.find("mysql+getlock://db: no table"), 0U) << said;
    EXPECT_NE(said.find("schema/getlock.sql"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace lockkeeper::mysql
