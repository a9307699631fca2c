// A cache of several files that many read, and that one rebuilds while the others go on reading. See
// README.md.

#include <lockkeeper/lock_manager.h>
#include <lockkeeper/permit/shared_mutex.h>
#include <lockkeeper/permit/upgradeable_lock.h>
#include <lockkeeper/redis/use.h>
#include <lockkeeper/store_registry.h>

#include <atomic>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using lockkeeper::LockManager;
using lockkeeper::SharedMutex;
using lockkeeper::UpgradeableLock;

constexpr const char* key = "cache";
constexpr int pages = 50;

/// A folder with a file for each page, which has the number of the rebuild that it is of.
class Cache {
 public:
  explicit Cache(std::filesystem::path folder) : folder_(std::move(folder)) {
    if (!std::filesystem::is_directory(folder_))
      throw std::runtime_error("there is no folder " + folder_.string());
  }

  /// The last rebuild that has come to its end. 0: none, or one was killed while it put its pages in.
  int rebuilt() const { return numberAt("rebuilt"); }

  int page(int index) const { return numberAt(name("page", index)); }

  /// Makes the pages of a rebuild, which nobody reads yet.
  void build(int rebuild) const {
    for (int index = 0; index < pages; ++index) put(name("new", index), rebuild);
  }

  /// Puts one of them in the place of the former one.
  void replace(int index) const {
    std::filesystem::rename(folder_ / name("new", index), folder_ / name("page", index));
  }

  void setRebuilt(int rebuild) const {
    put("next", rebuild);
    std::filesystem::rename(folder_ / "next", folder_ / "rebuilt");
  }

 private:
  static std::string name(const char* kind, int index) { return kind + std::to_string(index); }

  int numberAt(const std::string& file) const {
    int number = 0;
    std::ifstream(folder_ / file) >> number;
    return number;
  }

  void put(const std::string& file, int number) const {
    std::ofstream out(folder_ / file);
    if (!(out << number << std::flush)) throw std::runtime_error(file + " cannot be written");
  }

  const std::filesystem::path folder_;
};

// Readers see the former pages or the new ones, as long as nobody reads meanwhile.
void putIn(const Cache& cache, int rebuild, const UpgradeableLock* lock) {
  cache.setRebuilt(0);
  for (int index = 0; index < pages; ++index) {
    if (lock != nullptr && !lock->valid())
      throw std::runtime_error("the lock was lost: the cache has no end");
    cache.replace(index);
  }
  cache.setRebuilt(rebuild);
}

/// Rebuilds until that was done `rounds` times, by whichever process. Returns how often it was this one.
int rebuildAll(LockManager* locks, const Cache& cache, int rounds) {
  int built = 0;
  while (cache.rebuilt() < rounds) {
    // One at a time has the key so, beside the readers. So nobody else rebuilds.
    std::optional<UpgradeableLock> lock;
    if (locks != nullptr) lock = UpgradeableLock::lock(*locks, key);
    const int next = cache.rebuilt() + 1;
    if (next > rounds) break;  // another one has done it while this one waited
    cache.build(next);         // slow, and nobody waits for it
    if (lock) lock->upgrade();
    putIn(cache, next, lock ? &*lock : nullptr);
    ++built;
  }
  return built;
}

enum class Seen { nothing, cache, mixture };

Seen read(const Cache& cache) {
  const int rebuilt = cache.rebuilt();
  if (rebuilt == 0) return Seen::nothing;
  for (int index = 0; index < pages; ++index) {
    if (cache.page(index) != rebuilt) return Seen::mixture;
  }
  return Seen::cache;
}

/// Reads until it has seen `rounds` whole caches, or one that is not. Returns whether none was a mixture.
bool readAll(LockManager* locks, const Cache& cache, int rounds) {
  std::unique_ptr<SharedMutex> mutex;
  if (locks != nullptr) mutex = std::make_unique<SharedMutex>(*locks, key);
  for (int seen = 0; seen < rounds;) {
    std::shared_lock<SharedMutex> lock;
    if (mutex) lock = std::shared_lock(*mutex);
    const Seen found = read(cache);
    // What was read without a valid lease may be a mixture: it is not used.
    if (mutex && mutex->lost().stop_requested()) continue;
    if (found == Seen::mixture) return false;
    if (found == Seen::cache) ++seen;
    if (lock) lock.unlock();
    if (found == Seen::nothing) std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  return true;
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
    std::cerr << "usage: cache_rebuild STORE|unlocked FOLDER rebuild ROUNDS\n"
                 "       cache_rebuild STORE|unlocked FOLDER read ROUNDS READERS\n";
    return 64;
  }
  lockkeeper::StoreRegistry stores;
  lockkeeper::redis::use(stores);
  std::optional<LockManager> manager;
  if (arguments[0] != "unlocked") manager.emplace(stores.open(arguments[0]));
  LockManager* const locks = manager ? &*manager : nullptr;
  const Cache cache(arguments[1]);
  const int rounds = numberIn(arguments[3]);
  if (arguments[2] == "rebuild") {
    std::cout << "rebuilt it " << rebuildAll(locks, cache, rounds) << " times\n";
    return 0;
  }
  std::atomic<int> fooled{0};
  {
    std::vector<std::jthread> readers;
    for (int reader = arguments.size() > 4 ? numberIn(arguments[4]) : 1; reader > 0; --reader) {
      readers.emplace_back([&] { fooled += readAll(locks, cache, rounds) ? 0 : 1; });
    }
  }
  std::cout << fooled << " readers have seen pages of two rebuilds\n";
  return fooled == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    std::cerr << "cache_rebuild: " << error.what() << "\n";
    return 70;
  }
}
