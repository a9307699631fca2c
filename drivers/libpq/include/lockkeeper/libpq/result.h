#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct pg_result;

namespace lockkeeper::libpq {

/// What the server answered to a statement. Rows and columns count from 0.
class Result {
 public:
  explicit Result(pg_result* result) : result_(result) {}

  const pg_result* get() const { return result_.get(); }
  /// Whether it is an error.
  bool isFault() const;

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
  /// What the server has done, such as COMMIT.
  std::string_view command() const;

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

}  // namespace lockkeeper::libpq
