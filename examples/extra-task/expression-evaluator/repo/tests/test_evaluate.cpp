#include <cmath>
#include <cstdio>

#include "expression.hpp"

static int failures = 0;

static void expect(const char *text, double wanted) {
    const double got = evaluate(text);
    if (std::fabs(got - wanted) < 1e-9) return;
    failures++;
    std::printf("%s: wanted %g, got %g\n", text, wanted, got);
}

static void expect_error(const char *text, std::size_t position) {
    try {
        evaluate(text);
    } catch (const SyntaxError &error) {
        if (error.position == position) return;
    }
    failures++;
    std::printf("%s: wanted an error at %zu\n", text, position);
}

int main() {
    expect("1 + 2 * 3", 7);
    expect("(1 + 2) * 3", 9);
    expect("10 - 4 - 3", 3);
    expect("16 / 4 / 2", 2);
    expect("2 ^ 3 ^ 2", 512);
    expect("1.5 * 4", 6);
    expect("--3", 3);
    expect("2 * -3", -6);
    expect("2 ^ -1", 0.5);
    expect("-2 ^ 2", -4);
    expect("(-2) ^ 2", 4);
    expect("1 - -2 ^ 2", 5);
    expect("2 ^ -2 ^ 2", 0.0625);

    expect_error("", 0);
    expect_error("1 +", 3);
    expect_error("(1", 2);
    expect_error("1 $ 2", 2);
    expect_error("1 2", 2);

    return failures != 0;
}
