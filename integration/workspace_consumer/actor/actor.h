#ifndef CONSUMER_ACTOR_ACTOR_H_
#define CONSUMER_ACTOR_ACTOR_H_

#include <string>

// A person on a stage, and nothing to do with fraktor's actors.
struct Actor {
  std::string name;
  std::string role;
};

#endif  // CONSUMER_ACTOR_ACTOR_H_
