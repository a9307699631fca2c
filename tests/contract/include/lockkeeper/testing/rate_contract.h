#pragma once

/// @file
/// What every RateDriver must keep, as a GoogleTest suite. In one source file of a test program:
///
///     #include <lockkeeper/testing/rate_contract.h>
///     using lockkeeper::testing::RateContract;
///     INSTANTIATE_TEST_SUITE_P(MyStore, RateContract,
///                              ::testing::Values(lockkeeper::testing::RateFactory{
///                                  .name = "mine", .open = [](auto clock) { return openMyDriver(clock); }}),
///                              lockkeeper::testing::rateFactoryName);

#include "lockkeeper/testing/rate/bound_tests.h"
#include "lockkeeper/testing/rate/chain_tests.h"
#include "lockkeeper/testing/rate/change_tests.h"
#include "lockkeeper/testing/rate/law_tests.h"
#include "lockkeeper/testing/rate/limiter_tests.h"
#include "lockkeeper/testing/rate/model_tests.h"
#include "lockkeeper/testing/rate/queue_tests.h"
#include "lockkeeper/testing/rate/refund_tests.h"
#include "lockkeeper/testing/rate/together_tests.h"
