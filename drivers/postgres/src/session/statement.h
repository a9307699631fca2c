#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct pg_result;

namespace lockkeeper::postgres {

/// What is sent for a '$n' of a statement.
struct Value {
  Value(std::nullptr_t) {}                                      // NOLINT: NULL
  Value(std::string text) : data(std::move(text)) {}            // NOLINT: as the server reads its type
  Value(const char* text) : data(text) {}                       // NOLINT
  Value(std::int64_t number) : data(std::to_string(number)) {}  // NOLINT
  /// For a BYTEA: any bytes.
  static Value bytes(std::string_view bytes) {
    Value value{std::string(bytes)};
    value.isBinary = true;
    return value;
  }

  std::optional<std::string> data{};
  bool isBinary = false;
};

/// One statement. Its text must not change from call to call: what differs stands in its values, so that the
/// server plans it once for each session.
struct Statement {
  std::string_view text;
  std::vector<Value> values{};
};

/// What the server answered to a statement that succeeded. Rows and columns count from 0.
class Result {
 public:
  explicit Result(pg_result* result) : result_(result) {}

  std::size_t rows() const;
  std::size_t columns() const;
  /// The number of the column's type in pg_type.
  unsigned typeOf(std::size_t column) const;
  bool isNull(std::size_t row, std::size_t column) const;
  /// Empty for NULL. Lives as long as the result.
  std::string_view text(std::size_t row, std::size_t column) const;
  /// 0 for NULL. Throws ProtocolError for what is no whole number.
  std::int64_t number(std::size_t row, std::size_t column) const;
  bool isTrue(std::size_t row, std::size_t column) const { return text(row, column) == "t"; }
  /// What a statement has returned by encode(…, 'hex'), which no setting of the session changes. Throws
  /// ProtocolError for what is none.
  std::string bytes(std::size_t row, std::size_t column) const;
  /// How many rows were inserted, updated or deleted.
  std::size_t changed() const;

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

}  // namespace lockkeeper::postgres
