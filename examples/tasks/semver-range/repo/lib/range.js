"use strict";

const { expandWord } = require("./comparators");
const { compareVersions, parseVersion } = require("./version");

/** A range as alternatives, each a list of comparators. */
function parseRange(text) {
  const alternatives = [];
  for (const part of text.split("||")) {
    const words = part.trim().split(/\s+/).filter(Boolean);
    if (words.length === 0) throw new TypeError(`empty range in: ${text}`);
    alternatives.push(words.flatMap(expandWord));
  }
  return alternatives;
}

function holds(comparator, candidate) {
  const order = compareVersions(candidate, comparator.version);
  switch (comparator.operator) {
    case "<":
      return order < 0;
    case "<=":
      return order <= 0;
    case ">":
      return order > 0;
    case ">=":
      return order >= 0;
    default:
      return order === 0;
  }
}

/** True if the version lies in the range. */
function satisfies(versionText, rangeText) {
  const candidate = parseVersion(versionText);
  return parseRange(rangeText).some((all) => all.every((one) => holds(one, candidate)));
}

/** The highest of the versions that lies in the range, or null. */
function maxSatisfying(versionTexts, rangeText) {
  const fitting = versionTexts.filter((text) => satisfies(text, rangeText));
  fitting.sort((a, b) => compareVersions(parseVersion(b), parseVersion(a)));
  return fitting.length === 0 ? null : fitting[0];
}

module.exports = { satisfies, maxSatisfying };
