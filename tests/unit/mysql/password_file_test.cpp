#include <gtest/gtest.h>

#include "getlock/getlock_options.h"
#include "lockkeeper/error.h"
#include "temp_folder.h"
#include "version/version_options.h"

namespace lockkeeper::mysql {
namespace {

std::string passwordIn(const std::string& uri) {
  const StoreUri store = StoreUri::parse(uri);
  return store.scheme() == "mysql+getlock" ? GetLockOptions::fromUri(store).password
                                           : VersionOptions::fromUri(store).password;
}

std::string passwordOrRefusal(const std::string& uri) {
  try {
    return "accepted: " + passwordIn(uri);
  } catch (const ConfigError& error) {
    return error.what();
  }
}

/// On both stores that log in to a MySQL server.
class PasswordFile : public ::testing::TestWithParam<std::string> {
 protected:
  std::string uri(const std::string& login = "shop") const {
    return GetParam() + "://" + login + "@db.shop/locks?passwordFile=" + path_;
  }
  void write(const std::string& content) const { test::writeFile(path_, content); }

  const test::TempFolder folder_;
  const std::string path_ = folder_ / "password";
};

TEST_P(PasswordFile, GivesItsFirstLine) {
  for (const std::string content : {"s3cr3t", "s3cr3t\n", "s3cr3t\r\n", "s3cr3t\nand a remark\n"}) {
    write(content);
    EXPECT_EQ(passwordIn(uri()), "s3cr3t") << content;
  }
}

TEST_P(PasswordFile, IsNamedWhenItCannotBeRead) {
  const std::string named = "the store's parameter 'passwordFile' is '" + path_ + "': ";
  EXPECT_EQ(passwordOrRefusal(uri()), named + "this file cannot be read");
  write("");
  EXPECT_EQ(passwordOrRefusal(uri()), named + "its first line cannot be read");
}

TEST_P(PasswordFile, IsRefusedBesideAPasswordInTheUri) {
  write("s3cr3t\n");
  EXPECT_EQ(passwordOrRefusal(uri("shop:0ther")), "both a password and a passwordFile are given");
}

TEST_P(PasswordFile, IsNotQuotedWhenItsPasswordCannotBeUsed) {
  write(std::string("s3cr\0003t\n", 8));
  EXPECT_EQ(passwordOrRefusal(uri()), "the database's password must not contain NUL");
}

INSTANTIATE_TEST_SUITE_P(Stores, PasswordFile, ::testing::Values("mysql+getlock", "mysql+version"),
                         [](const auto& store) { return store.param.substr(6); });

}  // namespace
}  // namespace lockkeeper::mysql
