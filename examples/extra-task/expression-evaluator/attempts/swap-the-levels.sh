# Wrong: the sign goes above the power, but exponents lose theirs.
set -u
sed -i -e 's/const double base = sign();/const double base = atom();/' \
  -e 's/double value = power();/double value = sign();/' \
  -e 's/= power()\(;\)/= sign()\1/' -e 's/        return atom();/        return power();/' src/parser.cpp
git diff
make test
