"""rules_shell for a Bazel whose shell rules are built in."""

sh_test = native.sh_test
