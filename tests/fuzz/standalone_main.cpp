// Runs a fuzz target without libFuzzer: <program> <iterations> [<seed>]. The same arguments make the same
// inputs.

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include "fuzz_target.h"

namespace {

using namespace std::string_literals;

constexpr std::size_t longestInput = 4096;

std::string currentInput;

extern "C" void reportInput(int) {
  std::fprintf(stderr, "input:");
  for (const char byte : currentInput) std::fprintf(stderr, " %02x", static_cast<unsigned char>(byte));
  std::fprintf(stderr, "\n");
}

std::size_t below(std::mt19937_64& random, std::size_t bound) {
  return static_cast<std::size_t>(random() % bound);
}

char interestingByte(std::mt19937_64& random) {
  static const std::string bytes = "\r\n\0+-:$*0123456789%@/?&=,#[]{}\xff"s;
  return random() % 4 == 0 ? static_cast<char>(random()) : bytes[below(random, bytes.size())];
}

void mutate(std::string& input, const std::vector<std::string>& seeds, std::mt19937_64& random) {
  const std::size_t at = below(random, input.size() + 1);
  const std::size_t length = std::min(below(random, 16) + 1, input.size() - at);
  switch (random() % 6) {
    case 0:
      input.insert(at, 1, interestingByte(random));
      break;
    case 1:
      if (at < input.size()) input[at] = interestingByte(random);
      break;
    case 2:
      input.erase(at, length);
      break;
    case 3:
      input.insert(below(random, input.size() + 1), input.substr(at, length));
      break;
    case 4:
      input.insert(at, seeds[below(random, seeds.size())]);
      break;
    default:
      input.resize(at);
  }
  if (input.size() > longestInput) input.resize(longestInput);
}

std::uint64_t numberFrom(const char* text) {
  std::uint64_t number = 0;
  std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGABRT, reportInput);
  const std::uint64_t iterations = argc > 1 ? numberFrom(argv[1]) : 200'000;
  std::mt19937_64 random(argc > 2 ? numberFrom(argv[2]) : 1);
  const std::vector<std::string> seeds = fuzzSeeds();
  for (std::uint64_t iteration = 0; iteration < iterations; ++iteration) {
    currentInput = seeds[below(random, seeds.size())];
    for (std::size_t changes = below(random, 8); changes > 0; --changes) mutate(currentInput, seeds, random);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(currentInput.data()), currentInput.size());
  }
  std::printf("%llu inputs\n", static_cast<unsigned long long>(iterations));
  return 0;
}
