#include <cmath>

#include "expression.hpp"
#include "scanner.hpp"

namespace {

/// Recursive descent: one function a level, from loose to tight.
class Parser {
  public:
    explicit Parser(const char *text) : scanner_(text) {}

    double whole() {
        const double value = sum();
        if (scanner_.peek().kind != TokenKind::end) fail();
        return value;
    }

  private:
    double sum() {
        double value = product();
        for (;;) {
            if (scanner_.take('+'))
                value += product();
            else if (scanner_.take('-'))
                value -= product();
            else
                return value;
        }
    }

    double product() {
        double value = power();
        for (;;) {
            if (scanner_.take('*'))
                value *= power();
            else if (scanner_.take('/'))
                value /= power();
            else
                return value;
        }
    }

    double power() {
        const double base = sign();
        if (!scanner_.take('^')) return base;
        return std::pow(base, power());
    }

    double sign() {
        if (scanner_.take('-')) return -sign();
        return atom();
    }

    double atom() {
        if (scanner_.take('(')) {
            const double value = sum();
            if (!scanner_.take(')')) fail();
            return value;
        }
        if (scanner_.peek().kind != TokenKind::number) fail();
        return scanner_.next().number;
    }

    [[noreturn]] void fail() const { throw SyntaxError{scanner_.peek().position}; }

    Scanner scanner_;
};

} // namespace

double evaluate(const char *text) { return Parser(text).whole(); }
