"use strict";

const { parseVersion } = require("./version");

const version = (major, minor, patch) => ({ major, minor, patch, prerelease: [] });

/** One word of a range as a list of comparators that must all hold. */
function expandWord(word) {
  if (word === "*") return [];
  const match = /^(\^|~|<=|>=|<|>|=)?(.+)$/.exec(word);
  const operator = match[1] === undefined ? "=" : match[1];
  const base = parseVersion(match[2]);
  if (operator === "^") return caret(base);
  if (operator === "~") return tilde(base);
  return [{ operator, version: base }];
}

function between(low, high) {
  return [
    { operator: ">=", version: low },
    { operator: "<", version: high },
  ];
}

function tilde(base) {
  return between(base, version(base.major, base.minor + 1, 0));
}

function caret(base) {
  return between(base, version(base.major + 1, 0, 0));
}

module.exports = { expandWord };
