#include "lockkeeper/libpq/rows.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace lockkeeper::libpq {
namespace {

bool isOfName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Behind the closing quote of what begins at `at`. A doubled one ends nothing.
std::size_t endOfQuoted(std::string_view sql, std::size_t at, bool hasEscapes) {
  const char quote = sql[at++];
  for (; at < sql.size(); ++at) {
    if (hasEscapes && sql[at] == '\\') {
      ++at;
    } else if (sql[at] == quote) {
      if (at + 1 == sql.size() || sql[at + 1] != quote) return at + 1;
      ++at;
    }
  }
  return sql.size();
}

// Comments may be in each other.
std::size_t endOfComment(std::string_view sql, std::size_t at) {
  int open = 0;
  while (at < sql.size()) {
    const std::string_view two = sql.substr(at, 2);
    if (two != "/*" && two != "*/") {
      ++at;
      continue;
    }
    at += 2;
    open += two == "/*" ? 1 : -1;
    if (open == 0) break;
  }
  return at;
}

// Of a text between two $tag$; `at` when none begins there.
std::size_t endOfDollarQuoted(std::string_view sql, std::size_t at) {
  std::size_t end = at + 1;
  while (end < sql.size() && sql[end] != '$' && isOfName(sql[end])) ++end;
  const bool isTag = end < sql.size() && sql[end] == '$' && !(sql[at + 1] >= '0' && sql[at + 1] <= '9');
  if (!isTag) return at;
  const std::string_view tag = sql.substr(at, end + 1 - at);
  const std::size_t closing = sql.find(tag, end + 1);
  return closing == std::string_view::npos ? sql.size() : closing + tag.size();
}

// Behind the text, the name in quotes or the comment that begins at `at`; `at` when none does.
std::size_t endOfCopied(std::string_view sql, std::size_t at) {
  const std::string_view rest = sql.substr(at);
  const bool isInName = at > 0 && isOfName(sql[at - 1]);
  if (rest[0] == '\'') {
    const bool isAfterE = isInName && (sql[at - 1] == 'e' || sql[at - 1] == 'E');
    return endOfQuoted(sql, at, isAfterE && (at < 2 || !isOfName(sql[at - 2])));
  }
  if (rest[0] == '"') return endOfQuoted(sql, at, false);
  if (rest[0] == '$' && !isInName) return endOfDollarQuoted(sql, at);
  if (rest.starts_with("--")) return std::min(sql.find('\n', at), sql.size());
  return rest.starts_with("/*") ? endOfComment(sql, at) : at;
}

// The numbers of types, which no server changes.
bool isWholeNumber(unsigned type) {
  constexpr unsigned int8 = 20, int2 = 21, int4 = 23;
  return type == int8 || type == int2 || type == int4;
}

}  // namespace

std::string withParameters(const std::string& statement, std::size_t values,
                           const std::function<std::string(std::size_t)>& parameter) {
  std::string text;
  std::size_t used = 0;
  for (std::size_t at = 0; at < statement.size();) {
    const std::size_t end = endOfCopied(statement, at);
    if (end > at) {
      text.append(statement, at, end - at);
      at = end;
      continue;
    }
    const char c = statement[at++];
    if (c == '?') {
      if (used < values) text += parameter(used);
      ++used;
    } else if (c == '`') {
      const std::size_t closing = std::min(statement.find('`', at), statement.size());
      text += '"' + statement.substr(at, closing - at) + '"';
      at = closing + 1;
    } else {
      text += c;
    }
  }
  if (used == values) return text;
  throw std::invalid_argument(std::to_string(values) + " values are given for: " + statement);
}

SqlValue valueIn(const Result& result, std::size_t row, std::size_t column) {
  if (result.isNull(row, column)) return std::monostate();
  if (isWholeNumber(result.typeOf(column))) return result.number(row, column);
  return std::string(result.text(row, column));
}

}  // namespace lockkeeper::libpq
