// A price table in a file that many read and one writes, row by row. See README.md.

#include <lockkeeper/lock_manager.h>
#include <lockkeeper/redis/use.h>
#include <lockkeeper/store_registry.h>

#include <atomic>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using lockkeeper::Fence;
using lockkeeper::Lock;
using lockkeeper::LockManager;

constexpr const char* key = "price-table";
constexpr int articles = 200;

// All lines of the file are as long: "<fence> <price>", in the first one with the state in place of the
// price.
constexpr int lineLength = 42;
constexpr std::uint64_t complete = 1;
constexpr std::uint64_t beingWritten = 2;

struct Row {
  Fence writer = 0;  // the fence of who wrote it
  std::uint64_t price = 0;
};

class PriceTable {
 public:
  explicit PriceTable(const std::string& path)
      : file_(path, std::ios::in | std::ios::out | std::ios::binary) {
    if (!file_) throw std::runtime_error("there is no file " + path + ": make it, as by touch");
  }

  /// Empty where nobody has written yet.
  std::optional<Row> at(int line) {
    std::string text(lineLength, ' ');
    file_.clear();
    file_.seekg(line * lineLength);
    if (!file_.read(text.data(), lineLength)) return std::nullopt;
    return Row{std::stoull(text), std::stoull(text.substr(21))};
  }

  void set(int line, const Row& row) {
    std::string text = std::to_string(row.writer);
    text.resize(21, ' ');
    text += std::to_string(row.price);
    text.resize(lineLength - 1, ' ');
    file_.clear();
    file_.seekp(line * lineLength);
    if (!(file_ << text << '\n' << std::flush)) throw std::runtime_error("the file cannot be written");
  }

 private:
  std::fstream file_;
};

void write(PriceTable& table, const Lock* lock, Fence fence) {
  const auto before = table.at(0);
  // A writer that was away for longer than its lease finds that another one was here.
  if (before && before->writer >= fence) throw std::runtime_error("a newer writer has been here");
  table.set(0, {fence, beingWritten});
  for (int article = 1; article <= articles; ++article) {
    if (lock != nullptr && !lock->valid())
      throw std::runtime_error("the lock was lost while the table was written");
    table.set(article, {fence, fence * 1000 + static_cast<unsigned>(article)});
  }
  table.set(0, {fence, complete});
}

enum class Seen { nothing, table, halfWritten };

// `fence` is a reader's: that of the last writer, or a later one that no writer has.
Seen read(PriceTable& table, std::optional<Fence> fence) {
  const auto head = table.at(0);
  // Its writer has died on the way: the next one writes it anew.
  if (!head || head->price != complete) return Seen::nothing;
  // Written after this reader's turn, because its lease has ended unnoticed.
  if (fence && head->writer > *fence) return Seen::nothing;
  for (int article = 1; article <= articles; ++article) {
    const auto row = table.at(article);
    if (!row || row->writer != head->writer) return Seen::halfWritten;
  }
  return Seen::table;
}

/// Reads until it has seen `rounds` whole tables, or one that is not. Returns whether none was half-written.
/// Without `locks` it takes no lock.
bool readAll(LockManager* locks, const std::string& path, int rounds) {
  PriceTable table(path);
  for (int seen = 0; seen < rounds;) {
    std::optional<Lock> lock;
    if (locks != nullptr) lock = locks->lockShared(key);
    const Seen found = read(table, lock ? std::optional(lock->requireFence()) : std::nullopt);
    // What was read without a valid lease may be of two writers: it is not used.
    if (lock && !lock->valid()) continue;
    if (found == Seen::halfWritten) return false;
    if (found == Seen::table) ++seen;
    lock.reset();
    if (found == Seen::nothing) std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  return true;
}

void writeAll(LockManager* locks, const std::string& path, int rounds) {
  PriceTable table(path);
  for (int round = 1; round <= rounds; ++round) {
    std::optional<Lock> lock;
    if (locks != nullptr) lock = locks->lock(key);
    write(table, lock ? &*lock : nullptr, lock ? lock->requireFence() : static_cast<Fence>(round));
  }
}

int numberIn(std::string_view text) {
  int number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || end != text.data() + text.size() || number < 1 || number > 1'000'000) {
    throw std::invalid_argument("expected a number from 1 to 1000000, not " + std::string(text));
  }
  return number;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 4) {
    std::cerr << "usage: price_table STORE|unlocked FILE write ROUNDS\n"
                 "       price_table STORE|unlocked FILE read ROUNDS READERS\n";
    return 64;
  }
  lockkeeper::StoreRegistry stores;
  lockkeeper::redis::use(stores);
  std::optional<LockManager> manager;
  if (arguments[0] != "unlocked") manager.emplace(stores.open(arguments[0]));
  LockManager* const locks = manager ? &*manager : nullptr;
  const int rounds = numberIn(arguments[3]);
  if (arguments[2] == "write") {
    writeAll(locks, arguments[1], rounds);
    return 0;
  }
  std::atomic<int> fooled{0};
  {
    std::vector<std::jthread> readers;
    for (int reader = arguments.size() > 4 ? numberIn(arguments[4]) : 1; reader > 0; --reader) {
      readers.emplace_back([&] { fooled += readAll(locks, arguments[1], rounds) ? 0 : 1; });
    }
  }
  std::cout << fooled << " readers have seen a table that was half-written\n";
  return fooled == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    std::cerr << "price_table: " << error.what() << "\n";
    return 70;
  }
}
