#include "tls_files.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "process.h"

namespace lockkeeper::test {
namespace {

void openssl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "openssl");
  const Finished finished = runToEnd(arguments);
  if (finished.exitCode != 0) throw std::runtime_error("openssl " + arguments.at(1) + ": " + finished.errors);
}

}  // namespace

const TlsFiles& TlsFiles::shared() {
  static const TlsFiles files;
  return files;
}

TlsFiles::TlsFiles() {
  makeAuthority("authority");
  makeAuthority("stranger");
  makeCertificate("server", "DNS:localhost,IP:127.0.0.1");
  makeCertificate("other", "DNS:elsewhere.example");
}

void TlsFiles::makeAuthority(const std::string& name) {
  openssl({"req", "-x509", "-nodes", "-days", "2", "-newkey", "ec", "-pkeyopt",
           "ec_paramgen_curve:prime256v1", "-subj", "/CN=lockkeeper test " + name, "-keyout",
           folder_ / (name + ".key"), "-out", folder_ / (name + ".crt")});
}

void TlsFiles::makeCertificate(const std::string& name, const std::string& subjectAltName) {
  const std::filesystem::path request = folder_ / (name + ".csr");
  const std::filesystem::path extensions = folder_ / (name + ".ext");
  writeFile(extensions, "subjectAltName=" + subjectAltName + "\n");
  openssl({"req", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj",
           "/CN=" + name, "-keyout", folder_ / (name + ".key"), "-out", request});
  openssl({"x509", "-req", "-days", "2", "-in", request, "-CA", folder_ / "authority.crt", "-CAkey",
           folder_ / "authority.key", "-CAcreateserial", "-extfile", extensions, "-out",
           folder_ / (name + ".crt")});
}

}  // namespace lockkeeper::test
