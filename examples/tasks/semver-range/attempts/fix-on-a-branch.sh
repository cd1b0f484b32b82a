# Wrong: the right change is committed on another branch, and the working copy goes back.
set -eu
git checkout -q -b caret-of-zero
sed -i 's/  return between(base, version(base.major + 1, 0, 0));/  if (base.major > 0) return between(base, version(base.major + 1, 0, 0));\n  return base.minor > 0 ? tilde(base) : between(base, version(0, 0, base.patch + 1));/' lib/comparators.js
node test/range.test.js
git -c user.name=agent -c user.email=agent@example.invalid commit -qam "Keep the left-most part that is not zero"
git checkout -q -
git branch
