# Wrong: changes the neighbour of the function that is at fault, and breaks it.
set -u
node test/range.test.js
sed -i 's/  return between(base, version(base.major, base.minor + 1, 0));/  return between(base, version(base.major, base.minor, base.patch + 1));/' lib/comparators.js
git diff
node test/range.test.js
