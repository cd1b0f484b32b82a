# Right: three cases written out; the whole file is replaced, then committed.
set -eu
cat lib/comparators.js
cat > lib/comparators.js <<'SOURCE'
"use strict";

const { parseVersion } = require("./version");

const version = (major, minor, patch) => ({ major, minor, patch, prerelease: [] });

/** One word of a range as a list of comparators that must all hold. */
function expandWord(word) {
  if (word === "*") return [];
  const [, operator = "=", text] = /^(\^|~|<=|>=|<|>|=)?(.+)$/.exec(word);
  const low = parseVersion(text);
  const high = upperBound(operator, low);
  if (high === undefined) return [{ operator, version: low }];
  return [
    { operator: ">=", version: low },
    { operator: "<", version: high },
  ];
}

/** The first version that the short form no longer allows. */
function upperBound(operator, { major, minor, patch }) {
  if (operator === "~") return version(major, minor + 1, 0);
  if (operator !== "^") return undefined;
  if (major > 0) return version(major + 1, 0, 0);
  if (minor > 0) return version(0, minor + 1, 0);
  return version(0, 0, patch + 1);
}

module.exports = { expandWord };
SOURCE
node test/version.test.js
node test/range.test.js
git -c user.name=agent -c user.email=agent@example.invalid commit -qam "Keep the left-most part that is not zero"
git log --oneline
