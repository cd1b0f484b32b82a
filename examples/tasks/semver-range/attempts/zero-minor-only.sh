# Wrong: half of the rule. ^0.2.3 is right afterwards, ^0.0.3 is not.
set -u
sed -i 's/  return between(base, version(base.major + 1, 0, 0));/  return base.major === 0 ? tilde(base) : between(base, version(base.major + 1, 0, 0));/' lib/comparators.js
git diff
node test/range.test.js
