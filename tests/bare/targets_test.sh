#!/usr/bin/env bash
# ./run builds every plugin of this configuration, the command and the example: a plugin that only ./test
# builds would be missing for a user with a fresh clone.
#   targets_test.sh RUN-SCRIPT BUILD-FOLDER
set -euo pipefail
targets=$(sed -n 's/.*--build --preset release --target \([a-z_ ]*\).*/\1/p' "$1" | head -n 1)
[ -n "$targets" ] || { echo "no build targets were found in $1"; exit 1; }
cd "$2"
# shellcheck disable=SC2086
built=$(ninja -t commands $targets | grep -oE -- '-o (bin|lib/medley)/[^ ]+' | sed 's/^-o //')
missing=0
for output in $(ninja -t targets all | sed -n 's/^\(lib\/medley\/[^:]*\.so\): .*/\1/p') bin/medley bin/hello; do
  grep -qxF "$output" <<<"$built" || { echo "./run does not build $output"; missing=1; }
done
exit $missing
