#include "curl.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <stdexcept>

#include "process.h"

namespace lockkeeper::test {

CurlAnswer curl(const std::vector<std::string>& arguments) {
  std::vector<std::string> command{"curl", "--silent", "--show-error", "--include", "--max-time", "60"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Finished finished = runToEnd(command);
  if (finished.exitCode != 0) throw std::runtime_error("curl: " + finished.errors);
  std::istringstream output(finished.output);
  CurlAnswer answer;
  std::string line;
  do {  // again after a "100 Continue"
    output.ignore(9) >> answer.status;
    std::getline(output, line);
    answer.headers.clear();
    while (std::getline(output, line) && line != "\r") {
      const auto colon = line.find(": ");
      std::string name = line.substr(0, colon);
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
      answer.headers[name] = line.substr(colon + 2, line.size() - colon - 3);
    }
  } while (answer.status == 100);
  answer.body.assign(std::istreambuf_iterator<char>(output), {});
  return answer;
}

}  // namespace lockkeeper::test
