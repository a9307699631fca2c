#include "fenced_row.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace lockkeeper::test {
namespace {

struct Content {
  unsigned long long claim = 0;
  unsigned long long value = 0;
};

/// The file, locked for as long as the object lives.
class Transaction {
 public:
  explicit Transaction(const std::filesystem::path& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (file_ < 0 || ::flock(file_, LOCK_EX) != 0) {
      throw std::system_error(errno, std::generic_category(), path.string());
    }
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() { ::close(file_); }

  Content read() const {
    std::array<char, 64> text{};
    const ssize_t length = ::pread(file_, text.data(), text.size() - 1, 0);
    Content content;
    if (length > 0 && std::sscanf(text.data(), "%llu %llu", &content.claim, &content.value) != 2) {
      throw std::runtime_error("a row that is not two numbers");
    }
    return content;
  }

  void write(const Content& content) const {
    const std::string text = std::to_string(content.claim) + " " + std::to_string(content.value);
    // Numbers only grow, and so does the text: nothing of the old one is left.
    if (::pwrite(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
      throw std::system_error(errno, std::generic_category(), "writing a row");
    }
  }

 private:
  const int file_;
};

}  // namespace

FencedRow::FencedRow(std::filesystem::path path) : path_(std::move(path)) {}

std::uint64_t FencedRow::claim() const {
  const Transaction transaction(path_);
  Content row = transaction.read();
  ++row.claim;
  transaction.write(row);
  return row.claim;
}

FencedRow::Write FencedRow::write(std::uint64_t claim, const std::function<bool()>& stillHeld) const {
  const Transaction transaction(path_);
  Content row = transaction.read();
  if (row.claim != claim) return Write::refused;
  if (!stillHeld()) return Write::unproven;
  ++row.value;
  transaction.write(row);
  return Write::accepted;
}

std::uint64_t FencedRow::value() const { return Transaction(path_).read().value; }

}  // namespace lockkeeper::test
