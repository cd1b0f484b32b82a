# Wrong: makes every power of a negative base negative, so that (-2) ^ 2 is -4 too.
set -u
make test
sed -i 's/        return std::pow(base, power());/        const double result = std::pow(std::fabs(base), power());\n        return base < 0 ? -result : result;/' src/parser.cpp
git diff
make test
