// Histories of arbitrary lines: each is judged, or refused by an exception that names the line.

#include <sstream>
#include <stdexcept>
#include <string>

#include "check/history_file.h"
#include "fuzz_target.h"
#include "lockkeeper/testing/history/check.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream file(std::string(reinterpret_cast<const char*>(data), size));
  try {
    const lockkeeper::cli::HistoryFile read = lockkeeper::cli::readHistory(file);
    if (read.history) lockkeeper::testing::history::check(*read.history);
  } catch (const std::invalid_argument& fault) {
    requireOneLine(fault);
  }
  return 0;
}

std::vector<std::string> fuzzSeeds() {
  const std::string begin = "{\"history\":1,\"fences\":true,\"fifo\":true}\n";
  const std::string lock =
      R"({"time":1,"phase":"invoke","process":"p","id":1,"op":"lock","key":"k","kind":"exclusive","within":50})"
      "\n"
      R"({"time":2,"phase":"queued","process":"p","id":1})"
      "\n"
      R"({"time":3,"phase":"ok","process":"p","id":1,"fence":7,"until":900})"
      "\n";
  const std::string rest =
      R"({"time":4,"phase":"invoke","process":"p","id":2,"op":"write","grant":1,"key":"v","value":1})"
      "\n"
      R"({"time":5,"phase":"unknown","process":"p","id":2})"
      "\n"
      R"({"time":6,"phase":"lost","process":"p","id":1})"
      "\n"
      R"({"time":7,"phase":"died","process":"p"})"
      "\n"
      R"({"time":8,"phase":"end","key":"k"})"
      "\n";
  const std::string other =
      R"({"time":2,"phase":"invoke","process":"q","id":1,"op":"lock","key":"k","kind":"permits","permits":1,"limit":2})"
      "\n"
      R"({"time":9,"phase":"ok","process":"q","id":1,"fence":8,"until":99})"
      "\n";
  const std::string limit =
      R"({"policy":"sms","rate":"2/s","burst":2,"kind":"token-bucket"})"
      "\n"
      R"({"time":1,"phase":"invoke","process":"r","id":1,"op":"take","policy":"sms","key":"k","units":2})"
      "\n"
      R"({"time":2,"phase":"ok","process":"r","id":1,"at":1764295200000000})"
      "\n";
  return {begin,
          lock,
          rest,
          other,
          limit,
          begin + lock + rest,
          begin + lock + other,
          begin + limit,
          begin + lock + other + rest};
}
