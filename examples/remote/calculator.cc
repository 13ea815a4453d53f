// A calculator that another process asks.
//
//   calculator serve              prints its address, and works until its input ends
//   calculator ADDRESS 6 x 7      asks it
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"

#include "fraktor/actor/actor.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/grpc/grpc_node.h"

struct Result {
  double value = 0;
};
struct Calculate {
  using Reply = Result;
  double left = 0;
  std::string sign = {};
  double right = 0;
};

// How they look on their way.
template <>
struct fraktor::Codec<Result> : fraktor::FieldCodec<Result, &Result::value> {
  static constexpr std::string_view kManifest = "calculator.result";
};
template <>
struct fraktor::Codec<Calculate>
    : fraktor::FieldCodec<Calculate, &Calculate::left, &Calculate::sign, &Calculate::right> {
  static constexpr std::string_view kManifest = "calculator.calculate";
};

class Calculator : public fraktor::Actor<Calculator, Calculate> {
 public:
  absl::StatusOr<Result> On(Context&, const Calculate& what) {
    if (what.sign == "+") return Result{what.left + what.right};
    if (what.sign == "x") return Result{what.left * what.right};
    if (what.sign == "/" && what.right == 0) return absl::InvalidArgumentError("nobody can divide by zero");
    if (what.sign == "/") return Result{what.left / what.right};
    return absl::InvalidArgumentError("what is " + what.sign + "?");  // The asker gets this instead, wherever it is.
  }
};

std::unique_ptr<fraktor::ActorSystem> StartNode(const std::string& name) {
  fraktor::CodecSetup codecs;
  codecs.Add<Result, Calculate>();
  // Between machines: MutualTls, and a host that others know.
  fraktor::GrpcNodeOptions options{.name = name, .transport = {.security = fraktor::GrpcSecurity::InsecureLoopback()}};
  options.system.codecs = codecs.Build().value();
  return fraktor::StartGrpcNode(std::move(options)).value();
}

int Serve() {
  std::unique_ptr<fraktor::ActorSystem> system = StartNode("calculator");
  system->Spawn<Calculator>("calculator");
  std::cout << fraktor::Remoting::Of(*system)->address().ToString() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
  }
  return 0;
}

int Ask(const std::string& address, const Calculate& question) {
  std::unique_ptr<fraktor::ActorSystem> system = StartNode("asker");
  const fraktor::ActorRef calculator = system->Resolve(address + "/user/calculator").value();
  absl::StatusOr<Result> result = system->AskAndWait<Result>(calculator, question, absl::Seconds(10));
  if (!result.ok()) {
    std::cout << result.status().message() << "\n";
    return 1;
  }
  std::cout << result->value << "\n";
  return 0;
}

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  Calculate question;
  if (words.size() == 1 && words[0] == "serve") return Serve();
  if (words.size() == 4 && absl::SimpleAtod(words[1], &question.left) && absl::SimpleAtod(words[3], &question.right)) {
    question.sign = words[2];
    return Ask(words[0], question);
  }
  std::cerr << "usage: calculator serve | calculator ADDRESS NUMBER + NUMBER (or x, /)\n";
  return 2;
}
