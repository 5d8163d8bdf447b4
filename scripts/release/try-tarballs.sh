#!/bin/sh
# Installs a release's tarballs in an empty project without scripts, renders the example, and compares this machine's
# results with the hashes of docs/reproducibility.md. Needs Node alone, so that it runs on Alpine and Windows too.
#   sh scripts/release/try-tarballs.sh FOLDER PLATFORM
set -eu
folder=$(cd "$1" && pwd)
project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
cd "$project"
echo '{ "name": "consumer", "private": true }' > package.json
npm install --ignore-scripts --no-audit --no-fund "$folder"/latentkit-[0-9]*.tgz "$folder"/latentkit-"$2"-[0-9]*.tgz
npx latentkit init
npx latentkit render examples/first-light.json --input examples/input --out out
npx latentkit doctor --reproducible
