#include "lockkeeper/libpq/fault.h"

#include <libpq-fe.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>

namespace lockkeeper::libpq {
namespace {

std::string field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? "" : text;
}

std::string oneLine(std::string text) {
  text.resize(std::min(text.size(), text.find('\n')));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

bool isOneOf(std::string_view state, std::initializer_list<std::string_view> states) {
  return std::ranges::find(states, state) != states.end();
}

// Classes: of authorisations, of databases and schemas that do not exist, and of what is not as the statement
// says: the table is of another kind, or a right is missing.
bool isMisconfigured(std::string_view state) { return isOneOf(state.substr(0, 2), {"28", "3D", "3F", "42"}); }

// Classes: of values that a column does not take, and of constraints.
bool isOfValues(std::string_view state) { return isOneOf(state.substr(0, 2), {"22", "23"}); }

// With PQERRORS_VERBOSE the words are such as "… failed: FATAL:  28P01: password authentication failed …".
std::string stateIn(const std::string& words) {
  constexpr std::size_t length = 5;
  for (auto at = words.find(":  "); at != words.npos; at = words.find(":  ", at + 1)) {
    const std::string state = words.substr(at + 3, length);
    const bool isState = state.size() == length && std::ranges::all_of(state, [](unsigned char c) {
                           return std::isdigit(c) != 0 || (c >= 'A' && c <= 'Z');
                         });
    if (isState && words.compare(at + 3 + length, 2, ": ") == 0) return state;
  }
  return "";
}

// The library has no numbers for what goes wrong before the server knows who asks.
bool neverPasses(const std::string& words) {
  const auto says = [&](const char* sign) { return words.find(sign) != words.npos; };
  return says("certificate") || says("does not support SSL") || says("no password supplied") ||
         says("authentication method") || says("private key");
}

}  // namespace

// A serialization failure, a deadlock, a row that others keep (NOWAIT or lock_timeout), and a statement that
// was broken off, by somebody or by statement_timeout.
bool isContention(std::string_view state) { return isOneOf(state, {"40001", "40P01", "55P03", "57014"}); }

bool endsSession(const PGresult* result) {
  const std::string severity = field(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  return severity == "FATAL" || severity == "PANIC" || severity.empty();
}

void throwFault(const PGresult* result, const StoreFaults& store) {
  const std::string state = field(result, PG_DIAG_SQLSTATE);
  std::string words = field(result, PG_DIAG_MESSAGE_PRIMARY);
  if (words.empty()) words = PQresultErrorMessage(result);
  const std::string line = store.display + ": " + oneLine(words) + (state.empty() ? "" : " (" + state + ")");
  if (endsSession(result)) throw LostSession(line);
  if (isContention(state)) throw Contention(line);
  if (state == "25006") throw NotPrimary(line);
  if (state == "42P01") throw ConfigError(line + store.missingTable);
  if (isMisconfigured(state) || (store.valuesAreChecked && isOfValues(state))) throw ConfigError(line);
  throw StoreUnavailable(line);
}

void throwLogInFault(const std::string& words, const std::string& display) {
  const std::string line = display + ": " + oneLine(words);
  const std::string state = stateIn(words);
  if (isMisconfigured(state) || (state.empty() && neverPasses(words))) throw ConfigError(line);
  throw StoreUnavailable(line);
}

}  // namespace lockkeeper::libpq
