#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "lockkeeper/error.h"
#include "wait_until.h"

namespace lockkeeper::test {

/// Calls again and again until it succeeds: until then it may throw any Error but that of a wrong
/// configuration, because a store is away, or slow on a busy machine.
template <class Call>
void succeedsInTheEnd(Call&& call, std::chrono::milliseconds bound = std::chrono::seconds{20}) {
  std::string last;
  EXPECT_TRUE(waitUntil(
      [&] {
        try {
          call();
          return true;
        } catch (const Error& error) {
          EXPECT_NE(error.code(), ErrorCode::config) << error.what();
          last = error.what();
          return false;
        }
      },
      bound))
      << last;
}

}  // namespace lockkeeper::test
