#include "wire/protocol/request.h"

#include <charconv>
#include <utility>

namespace lockkeeper::redis {

namespace {

// The number behind the first byte of a line that begins at `at`, and where the next line begins.
std::pair<std::size_t, std::size_t> numberAt(std::string_view commands, std::size_t at) {
  const std::size_t end = commands.find("\r\n", at);
  std::size_t number = 0;
  std::from_chars(commands.data() + at + 1, commands.data() + end, number);
  return {number, end + 2};
}

// Where the command that begins at `at` ends. It is one that we have made, and so well formed.
std::size_t endOfCommand(std::string_view commands, std::size_t at) {
  auto [words, next] = numberAt(commands, at);
  for (; words > 0; --words) {
    const auto [length, begin] = numberAt(commands, next);
    next = begin + length + 2;
  }
  return next;
}

}  // namespace

void Request::add(std::span<const std::string_view> first, std::span<const std::string_view> second,
                  std::span<const std::string_view> third) {
  appendCommandHeader(commands_, first.size() + second.size() + third.size());
  for (const auto& words : {first, second, third}) {
    for (const std::string_view word : words) appendWord(commands_, word);
  }
  ++size_;
}

void Request::addAsking() {
  const std::string commands = std::exchange(commands_, {});
  for (std::size_t at = 0; at < commands.size();) {
    const std::size_t end = endOfCommand(commands, at);
    appendCommand(commands_, {"ASKING"});
    commands_.append(commands, at, end - at);
    at = end;
  }
  size_ *= 2;
}

void Request::dropAskingReplies() {
  std::vector<Reply>& replies = answers_.front().replies;
  for (std::size_t index = 0; 2 * index + 1 < replies.size(); ++index) {
    replies[index] = std::move(replies[2 * index + 1]);
  }
  replies.resize(replies.size() / 2);
  size_ /= 2;
}

}  // namespace lockkeeper::redis
