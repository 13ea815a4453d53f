"""What a library needs whose sources have mutations (fraktor/persistence/rocksdb/mutation.h)."""

# For local_defines.
MUTATION_DEFINES = select({
    "//tools/build:mutations": ["FRAKTOR_MUTATIONS"],
    "//conditions:default": [],
})
