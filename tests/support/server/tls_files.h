#pragma once

#include <filesystem>

#include "temp_folder.h"

namespace lockkeeper::test {

/// Certificates for tests, made with the openssl command when first asked for, once for the process.
class TlsFiles {
 public:
  /// Throws std::runtime_error with openssl's own words when it fails.
  static const TlsFiles& shared();

  std::filesystem::path authority() const { return folder_ / "authority.crt"; }
  /// An authority that has signed nothing.
  std::filesystem::path strangerAuthority() const { return folder_ / "stranger.crt"; }
  /// For localhost and 127.0.0.1.
  std::filesystem::path certificate() const { return folder_ / "server.crt"; }
  std::filesystem::path key() const { return folder_ / "server.key"; }
  /// Signed by the same authority, but for another host's name.
  std::filesystem::path otherHostCertificate() const { return folder_ / "other.crt"; }
  std::filesystem::path otherHostKey() const { return folder_ / "other.key"; }

 private:
  TlsFiles();
  void makeAuthority(const std::string& name);
  void makeCertificate(const std::string& name, const std::string& subjectAltName);

  TempFolder folder_;
};

}  // namespace lockkeeper::test
