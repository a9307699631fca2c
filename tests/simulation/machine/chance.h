#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <vector>

namespace lockkeeper::simulation {

/// Random numbers for one purpose, so that they stay the same when another purpose needs more of them
/// (SplitMix64).
class Chance {
 public:
  Chance(std::uint64_t seed, std::uint64_t purpose) noexcept : state_(mixed(seed) ^ mixed(~purpose)) {}

  std::uint64_t operator()() noexcept { return mixed(state_ += 0x9E3779B97F4A7C15U); }

  /// A number in [0, bound].
  std::uint64_t upTo(std::uint64_t bound) noexcept {
    const std::uint64_t number = (*this)();
    return bound == std::numeric_limits<std::uint64_t>::max() ? number : number % (bound + 1);
  }

  bool happens(double probability) noexcept {
    return static_cast<double>((*this)() >> 11U) < probability * 9007199254740992.0;
  }

 private:
  static std::uint64_t mixed(std::uint64_t number) noexcept {
    number = (number ^ (number >> 30U)) * 0xBF58476D1CE4E5B9U;
    number = (number ^ (number >> 27U)) * 0x94D049BB133111EBU;
    return number ^ (number >> 31U);
  }

  std::uint64_t state_;
};

/// What a history can do without: each is left out when the history is shrunk, if it fails all the same.
enum class Event : std::size_t {
  fault,       ///< Of a process, the server or the way between them.
  torn,        ///< A connection breaks while bytes are sent.
  slow,        ///< Bytes that take long.
  shortRead,   ///< recv() gives less than there is.
  operation,   ///< Of a worker.
  preemption,  ///< A thread that could go on gives way to another.
};
inline constexpr std::size_t eventKinds = 6;

/// The numbers of the events of each kind that may happen; null: all.
using Kept = std::array<std::shared_ptr<const std::set<std::uint32_t>>, eventKinds>;

/// The occasions for events of one kind, numbered as they come.
class Occasions {
 public:
  Occasions(std::uint64_t seed, Event kind, const Kept& kept) noexcept
      : chance_(seed, 100 + static_cast<std::uint64_t>(kind)), kept_(kept[static_cast<std::size_t>(kind)]) {}

  bool happens(double probability) {
    const std::uint32_t number = next_++;
    return chance_.happens(probability) && isKept(number);
  }

  /// For events that have numbers of their own.
  bool isKept(std::uint32_t number) {
    if (kept_ && !kept_->contains(number)) return false;
    happened_.push_back(number);
    return true;
  }

  const std::vector<std::uint32_t>& happened() const noexcept { return happened_; }

 private:
  Chance chance_;
  std::shared_ptr<const std::set<std::uint32_t>> kept_;
  std::uint32_t next_ = 0;
  std::vector<std::uint32_t> happened_;
};

}  // namespace lockkeeper::simulation
