#pragma once

#include <functional>
#include <memory>

#include "lockkeeper/driver/driver.h"

namespace lockkeeper::test {

// What is asked of every driver after fork(); each is the body of a test.

/// The child's copy refuses each call, and neither these nor its end harm the parent's.
void inherit(std::shared_ptr<LockDriver> driver);

/// The child may make a driver of its own, for which the locks of its parent are taken.
void makeOneInTheChild(const std::function<std::shared_ptr<LockDriver>()>& open);

}  // namespace lockkeeper::test
