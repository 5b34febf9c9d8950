#!/bin/sh
# release.sh REPOSITORY COMMIT: makes the flags of a commit the current ones, in one step.
set -eu
commit=$(git -C "$1" rev-parse --verify "$2^{commit}")
[ -d "releases/$commit" ] || git -C "$1" worktree add --quiet --detach "$PWD/releases/$commit" "$commit"
ln -s "releases/$commit" current.new
mv -T current.new current # replaces the link: there is no moment without flags
