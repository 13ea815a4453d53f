// For tests of actor systems: SystemTest has a system in virtual time; Puppet is an actor whose
// hooks are functions of the test.
#ifndef FRAKTOR_ACTOR_SYSTEM_INTERNAL_SYSTEM_FIXTURE_H_
#define FRAKTOR_ACTOR_SYSTEM_INTERNAL_SYSTEM_FIXTURE_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/cell/lifecycle_messages.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/dead_letters.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/ref/actor_ref.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/supervision/failure.h"
#include "fraktor/actor/supervision/supervisor_strategy.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/actor/tree/internal/actor_tree.h"
#include "fraktor/utils/sync/mutex.h"
#include "fraktor/utils/toolbox/local_toolbox.h"

namespace fraktor::inline v0::system_internal {

using Lines = std::vector<std::string>;

// The lines that actors have written, in order. Any thread.
class Diary {
 public:
  void Add(std::string line) {
    MutexLock lock(mutex_);
    lines_.push_back(std::move(line));
  }
  Lines Take() {
    MutexLock lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  Mutex mutex_;
  Lines lines_ ABSL_GUARDED_BY(mutex_);
};

// Writes log lines as "W pekko://test/user/a: text".
class DiarySink final : public LogSink {
 public:
  void Write(const LogRecord& record) override {
    diary.Add(std::string(1, "DIWE"[static_cast<size_t>(record.level)]) + " " + std::string(record.path) + ": " +
              std::string(record.text));
  }
  Diary diary;
};

// A message with a function that runs in the actor's turn.
struct Act {
  std::function<absl::Status(ActorContext&)> what;
};
inline Act Fail(absl::Status with = absl::InternalError("broken")) {
  return Act{[with](ActorContext&) { return with; }};
}

// The hooks of a Puppet. Null: the default.
struct Hooks {
  std::function<void()> construct = nullptr;
  std::function<absl::Status(ActorContext&)> pre_start = nullptr;
  std::function<void(ActorContext&)> post_stop = nullptr;
  std::function<absl::Status(ActorContext&, const absl::Status&, Envelope*)> pre_restart = nullptr;
  std::function<absl::Status(ActorContext&, const absl::Status&)> post_restart = nullptr;
  std::function<SupervisionDirective(ActorContext&, const Failure&)> decide = nullptr;
  std::function<absl::Status(ActorContext&, const Terminated&)> terminated = nullptr;
  std::function<absl::Status(ActorContext&, Envelope&)> other = nullptr;
  std::function<absl::Status(ActorContext&, absl::StatusOr<Envelope*>)> reply = nullptr;
  std::shared_ptr<const SupervisorStrategy> strategy = nullptr;
};

// Whether the hooks of Puppets run. False after the body of the test, since they refer to its
// variables.
inline bool hooks_are_on = false;

// Writes its life into a diary: "a made", "a PreStart", "a: text", "a PreRestart", "a PostRestart",
// "a PostStop".
class Puppet final : public ActorInstance {
 public:
  Puppet(Diary* diary, std::string name, std::shared_ptr<const Hooks> hooks)
      : diary_(*diary), name_(std::move(name)), hooks_(std::move(hooks)) {
    diary_.Add(name_ + " made");
    if (Has(hooks_->construct)) hooks_->construct();
  }

  absl::Status PreStart(ActorContext& context) override {
    diary_.Add(name_ + " PreStart");
    return !Has(hooks_->pre_start) ? ActorInstance::PreStart(context) : hooks_->pre_start(context);
  }
  void PostStop(ActorContext& context) override {
    diary_.Add(name_ + " PostStop");
    if (Has(hooks_->post_stop)) hooks_->post_stop(context);
  }
  absl::Status PreRestart(ActorContext& context, const absl::Status& reason, Envelope* message) override {
    diary_.Add(name_ + " PreRestart");
    return !Has(hooks_->pre_restart) ? ActorInstance::PreRestart(context, reason, message)
                                     : hooks_->pre_restart(context, reason, message);
  }
  absl::Status PostRestart(ActorContext& context, const absl::Status& reason) override {
    diary_.Add(name_ + " PostRestart");
    return !Has(hooks_->post_restart) ? ActorInstance::PostRestart(context, reason)
                                      : hooks_->post_restart(context, reason);
  }
  const SupervisorStrategy& supervision() const override {
    return !Has(hooks_->strategy) ? ActorInstance::supervision() : *hooks_->strategy;
  }
  SupervisionDirective OnChildFailure(ActorContext& context, const Failure& failure) override {
    return !Has(hooks_->decide) ? ActorInstance::OnChildFailure(context, failure) : hooks_->decide(context, failure);
  }
  absl::Status OnReply(ActorContext& context, ActorRef ask, absl::StatusOr<Envelope*> answer) override {
    return !Has(hooks_->reply) ? ActorInstance::OnReply(context, ask, answer) : hooks_->reply(context, answer);
  }
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (const auto* act = message.TryAs<Act>()) return act->what(context);
    if (const auto* text = message.TryAs<std::string>()) {
      diary_.Add(name_ + ": " + *text);
      return absl::OkStatus();
    }
    if (const auto* ended = message.TryAs<Terminated>(); ended != nullptr && Has(hooks_->terminated)) {
      return hooks_->terminated(context, *ended);
    }
    return !Has(hooks_->other) ? context.Unhandled(message) : hooks_->other(context, message);
  }

 private:
  template <class Hook>
  static bool Has(const Hook& hook) {
    return hooks_are_on && hook != nullptr;
  }

  Diary& diary_;
  const std::string name_;
  const std::shared_ptr<const Hooks> hooks_;
};

// A system "test" in virtual time.
class SystemTest : public testing::Test {
 protected:
  SystemTest() : toolbox_(LocalToolbox::Make({}).value()) {
    options_.config.system_name = "test";
    options_.toolbox = toolbox_.get();
    options_.log_sink = &sink_;
    options_.dead_letters.log_limit = 0;
    hooks_are_on = true;
  }
  void TearDown() override { hooks_are_on = false; }

  // The first call makes the system, with `options_`.
  ActorSystem& system() {
    if (system_ == nullptr) {
      system_ = ActorSystem::Create(options_).value();
      Settle();
    }
    return *system_;
  }

  void Settle() {
    const absl::Status idle = toolbox_->RunUntilIdle();
    ASSERT_TRUE(idle.ok()) << idle;
  }
  void RunFor(absl::Duration duration) {
    const absl::Status ran = toolbox_->RunFor(duration);
    ASSERT_TRUE(ran.ok()) << ran;
  }

  PropsPtr PropsFor(std::string name, Hooks hooks = {}, const PropsOptions& options = {}) {
    return MakeProps<Puppet>(options, &diary_, std::move(name), std::make_shared<const Hooks>(std::move(hooks)));
  }
  // Spawns a child of /user.
  ActorRef Spawn(const std::string& name, Hooks hooks = {}, const PropsOptions& options = {}) {
    const absl::StatusOr<ActorRef> spawned = system().TrySpawn(*PropsFor(name, std::move(hooks), options), name);
    EXPECT_TRUE(spawned.ok()) << spawned.status();
    Settle();
    return spawned.ok() ? *spawned : ActorRef();
  }
  ActorRef SpawnUnder(ActorRef parent, const std::string& name, Hooks hooks = {}) {
    absl::StatusOr<ActorRef> child = absl::UnknownError("the parent did not run");
    const PropsPtr props = PropsFor(name, std::move(hooks));
    Let(parent, [&](ActorContext& context) {
      child = context.TrySpawn(*props, name);
      return absl::OkStatus();
    });
    EXPECT_TRUE(child.ok()) << child.status();
    return child.ok() ? *child : ActorRef();
  }

  // Runs a function in the actor's turn, and then all actors until no message is left.
  void Let(ActorRef actor, std::function<absl::Status(ActorContext&)> what) {
    Tell(actor, Act{std::move(what)});
    Settle();
  }
  void Fail(ActorRef actor, absl::Status with = absl::InternalError("broken")) {
    Tell(actor, system_internal::Fail(std::move(with)));
    Settle();
  }
  void Stop(ActorRef actor) {
    system().Stop(actor);
    Settle();
  }
  void Say(ActorRef actor, const char* text) { Tell(actor, std::string(text)); }

  static bool IsAlive(ActorRef actor) { return actor.IsCurrent(); }
  Lines Told() { return diary_.Take(); }
  Lines Logged() { return sink_.diary.Take(); }

  static std::shared_ptr<const SupervisorStrategy> Strategy(SupervisorStrategyOptions options) {
    return std::make_shared<const SupervisorStrategy>(std::move(options));
  }
  static std::function<SupervisionDirective(ActorContext&, const Failure&)> Always(SupervisionDirective directive) {
    return [directive](ActorContext&, const Failure&) { return directive; };
  }

  Diary diary_;
  DiarySink sink_;
  const std::unique_ptr<LocalToolbox> toolbox_;
  ActorSystemOptions options_;
  std::unique_ptr<ActorSystem> system_;
};

}  // namespace fraktor::inline v0::system_internal

#endif  // FRAKTOR_ACTOR_SYSTEM_INTERNAL_SYSTEM_FIXTURE_H_
