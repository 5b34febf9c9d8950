#!/bin/sh
# follow.sh WATCH: prints each change of a watch, and goes on where it was after an interruption.
# Needs curl. The last position is kept in the file WATCH.position.
set -eu
watch=$1
gateway=${WATCHTIDE_SERVER:-http://127.0.0.1:8080}
position=$watch.position
touch "$position"

while :; do
  curl -sSN --fail --speed-limit 1 --speed-time 40 --get "$gateway/v1/watches/$watch/events" \
    -H 'Accept: application/x-ndjson' -H "Last-Event-ID: $(cat "$position")" |
    while IFS= read -r event; do
      case $event in
        '{"type":"upsert",'* | '{"type":"delete",'*)
          printf '%s\n' "$event"
          ;;
        '{"type":"position",'*)
          id=${event#*'"id":"'}
          printf '%s' "${id%'"}'}" >"$position.new"
          mv "$position.new" "$position"
          ;;
      esac
    done
  sleep 1
done
