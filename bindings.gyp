# node-gyp reads this in an installed package, where a release has written the build (scripts/bindings-gyp.mjs).
{ "targets": [] }
