#pragma once

/// @file
/// What every LockDriver must keep, as a GoogleTest suite. In one source file of a test program:
///
///     #include <lockkeeper/testing/driver_contract.h>
///     using lockkeeper::testing::DriverContract;
///     INSTANTIATE_TEST_SUITE_P(MyStore, DriverContract,
///                              ::testing::Values(lockkeeper::testing::DriverFactory{
///                                  .name = "mine", .open = openMyDriver, .breakable = true}),
///                              lockkeeper::testing::factoryName);
///
/// Tests of capabilities that the factory does not name are skipped.

#include "lockkeeper/testing/contract/break_tests.h"
#include "lockkeeper/testing/contract/capability_tests.h"
#include "lockkeeper/testing/contract/fence_tests.h"
#include "lockkeeper/testing/contract/grant_tests.h"
#include "lockkeeper/testing/contract/holder_tests.h"
#include "lockkeeper/testing/contract/key_tests.h"
#include "lockkeeper/testing/contract/kinds/batch_tests.h"
#include "lockkeeper/testing/contract/kinds/permit_queue_tests.h"
#include "lockkeeper/testing/contract/kinds/permit_tests.h"
#include "lockkeeper/testing/contract/list_tests.h"
#include "lockkeeper/testing/contract/post_tests.h"
#include "lockkeeper/testing/contract/queue_tests.h"
#include "lockkeeper/testing/contract/renew_tests.h"
#include "lockkeeper/testing/contract/thread_tests.h"
#include "lockkeeper/testing/contract/wait_tests.h"
#include "lockkeeper/testing/contract/waiter_tests.h"
