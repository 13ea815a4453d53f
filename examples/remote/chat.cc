// A chat: a room in one process, people in others.
//
//   chat room                     prints its address, and is open until its input ends
//   chat ADDRESS NAME             says what is typed, and prints what others say
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fraktor/actor/actor.h"
#include "fraktor/actor/serialization/codec.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/remote/association/remoting.h"
#include "fraktor/remote/grpc/grpc_node.h"

// The reference works wherever it gets to: the room talks to it, and watches it.
struct Join {
  std::string name = {};
  fraktor::ActorRef who = {};
};
struct Say {
  std::string text = {};
};
struct Heard {
  std::string text = {};
};

template <>
struct fraktor::Codec<Join> : fraktor::FieldCodec<Join, &Join::name, &Join::who> {
  static constexpr std::string_view kManifest = "chat.join";
};
template <>
struct fraktor::Codec<Say> : fraktor::FieldCodec<Say, &Say::text> {
  static constexpr std::string_view kManifest = "chat.say";
};
template <>
struct fraktor::Codec<Heard> : fraktor::FieldCodec<Heard, &Heard::text> {
  static constexpr std::string_view kManifest = "chat.heard";
};

class Room : public fraktor::Actor<Room, Join, Say> {
 public:
  absl::Status On(Context& context, const Join& join) {
    people_.emplace_back(join.who, join.name);
    TellAll(context, join.name + " has come");
    return context.Watch(join.who);
  }
  void On(Context& context, const Say& say) { TellAll(context, NameOf(context.sender()) + ": " + say.text); }
  // Whether somebody has left, or their machine has lost its power.
  void On(Context& context, const fraktor::Terminated& gone) {
    const std::string name = NameOf(gone.actor);
    std::erase_if(people_, [&](const auto& one) { return one.first == gone.actor; });
    TellAll(context, name + " has left");
  }

 private:
  std::string NameOf(fraktor::ActorRef ref) const {
    for (const auto& [who, name] : people_) {
      if (who == ref) return name;
    }
    return "somebody";
  }
  void TellAll(Context& context, const std::string& text) {
    for (const auto& [who, name] : people_) context.Tell(who, Heard{text});
  }

  std::vector<std::pair<fraktor::ActorRef, std::string>> people_;
};

class Person : public fraktor::Actor<Person, Heard, Say> {
 public:
  Person(fraktor::ActorRef room, std::string name) : room_(room), name_(std::move(name)) {}
  void PreStart(Context& context) { context.Tell(room_, Join{name_, context.self().untyped()}); }
  void On(Context&, const Heard& heard) { std::cout << heard.text << std::endl; }
  void On(Context& context, const Say& say) { context.Tell(room_, say); }

 private:
  const fraktor::ActorRef room_;
  const std::string name_;
};

std::unique_ptr<fraktor::ActorSystem> StartNode(const std::string& name) {
  fraktor::CodecSetup codecs;
  codecs.Add<Join, Say, Heard>();
  // Between machines: MutualTls, and a host that others know.
  fraktor::GrpcNodeOptions options{.name = name, .transport = {.security = fraktor::GrpcSecurity::InsecureLoopback()}};
  options.system.codecs = codecs.Build().value();
  return fraktor::StartGrpcNode(std::move(options)).value();
}

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 1 && words[0] == "room") {
    std::unique_ptr<fraktor::ActorSystem> system = StartNode("chat");
    system->Spawn<Room>("room");
    std::cout << fraktor::Remoting::Of(*system)->address().ToString() << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
    }
    return 0;
  }
  if (words.size() == 2) {
    std::unique_ptr<fraktor::ActorSystem> system = StartNode("person");
    auto person = system->Spawn<Person>("person", system->Resolve(words[0] + "/user/room").value(), words[1]);
    for (std::string line; std::getline(std::cin, line);) person.Tell(Say{line});
    return 0;
  }
  std::cerr << "usage: chat room | chat ADDRESS NAME\n";
  return 2;
}
