// The other process of link_benchmark: a node, or a bare gRPC server.
//
//   link_peer bare | fraktor | mtls ROOTS CERTIFICATE KEY          // prints "ready PORT"; ends with its input
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fraktor/benchmarks/remote/bare_stream.h"
#include "fraktor/benchmarks/remote/link_node.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) return 2;
  std::unique_ptr<fraktor::BareServer> bare;
  std::unique_ptr<fraktor::LinkNode> node;
  if (arguments[0] == "bare") {
    bare = std::make_unique<fraktor::BareServer>();
    std::cout << "ready " << bare->port() << std::endl;
  } else {
    const std::vector<std::string> files(arguments.begin() + 1, arguments.end());
    node = std::make_unique<fraktor::LinkNode>("there", fraktor::LinkSecurity(files));
    node->SpawnTargets();
    std::cout << "ready " << node->port() << std::endl;
  }
  for (std::string line; std::getline(std::cin, line);) {
  }
  return 0;
}
