# Sourced by the tests of the page: a copy of web/ in $1 with its packages from npm, which are kept while the lock file is
# unchanged. Exits with 77 and a sentence where that is impossible.
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
web=$1
skip() { echo "skipped: $*"; exit 77; }
for program in node npm; do command -v $program >/dev/null || skip "there is no $program; ./setup web installs it"; done
mkdir -p "$web"
rm -rf "$web/src" "$web/test" "$web/dist"
cp -r "$root"/web/{src,test,index.html,package.json,package-lock.json,.npmrc,tsconfig.json,vite.config.ts,install.mjs} "$web"
if ! cmp -s "$web/package-lock.json" "$web/node_modules/installed.json"; then
  (cd "$web" && npm ci --no-audit --no-fund >npm.log 2>&1) || { tail -n 5 "$web/npm.log"; skip "npm cannot install the packages of web/package-lock.json"; }
  cp "$web/package-lock.json" "$web/node_modules/installed.json"
fi
