#include "database/postgres/fault.h"

#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace lockkeeper::inventory {
namespace {

std::string fieldOf(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? "" : text;
}

std::string firstLine(std::string text) {
  text.resize(std::min(text.size(), text.find('\n')));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

template <std::size_t N>
bool isAmong(std::string_view state, const std::array<std::string_view, N>& states) {
  return std::ranges::find(states, state) != states.end();
}

// A serialization failure, a deadlock, a row that others keep for longer than lock_timeout, and a statement
// that was broken off, by somebody or by statement_timeout.
bool tellsOthers(std::string_view state) {
  return isAmong(state, std::array<std::string_view, 4>{"40001", "40P01", "55P03", "57014"});
}

// Classes: of values that a column does not take, of authorisations, of databases and schemas that do not
// exist, and of what is not as the statement says: the table is of another kind, or a right is missing.
bool needsAdministrator(std::string_view state) {
  return isAmong(state.substr(0, 2), std::array<std::string_view, 6>{"22", "23", "28", "3D", "3F", "42"});
}

// With PQERRORS_VERBOSE the words are such as "… failed: FATAL:  28P01: password authentication failed …".
std::string sqlStateIn(const std::string& words) {
  constexpr std::size_t length = 5;
  for (auto at = words.find(":  "); at != std::string::npos; at = words.find(":  ", at + 1)) {
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
  constexpr std::array<std::string_view, 5> signs{
      "certificate", "does not support SSL", "no password supplied", "authentication method", "private key"};
  return std::ranges::any_of(signs,
                             [&](std::string_view sign) { return words.find(sign) != std::string::npos; });
}

}  // namespace

void throwFault(const PGresult* result, const std::string& display) {
  const std::string state = fieldOf(result, PG_DIAG_SQLSTATE);
  const std::string severity = fieldOf(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  std::string words = fieldOf(result, PG_DIAG_MESSAGE_PRIMARY);
  if (words.empty()) words = PQresultErrorMessage(result);
  const std::string line = display + ": " + firstLine(words) + (state.empty() ? "" : " (" + state + ")");
  if (severity != "ERROR") throw LostSession(line);
  if (tellsOthers(state)) throw PostgresContention(line);
  if (state == "25006") throw NotPrimary(line);
  if (needsAdministrator(state)) throw ConfigError(line);
  throw StoreUnavailable(line);
}

void throwLogInFault(const std::string& words, const std::string& display) {
  const std::string line = display + ": " + firstLine(words);
  const std::string state = sqlStateIn(words);
  if (needsAdministrator(state) || (state.empty() && neverPasses(words))) throw ConfigError(line);
  throw StoreUnavailable(line);
}

}  // namespace lockkeeper::inventory
