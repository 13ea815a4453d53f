#!/usr/bin/env bash
exec python3 docs/snippets_test.py "$@"
