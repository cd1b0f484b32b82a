#include "scanner.hpp"

#include <cctype>
#include <cstdlib>

#include "expression.hpp"

Scanner::Scanner(const char *text) : text_(text) { advance(); }

Token Scanner::next() {
    Token token = token_;
    advance();
    return token;
}

bool Scanner::take(char symbol) {
    if (token_.kind != TokenKind::symbol || token_.symbol != symbol) return false;
    advance();
    return true;
}

void Scanner::advance() {
    while (text_[at_] == ' ') at_++;
    const char first = text_[at_];
    if (first == '\0') {
        token_ = {TokenKind::end, 0, '\0', at_};
        return;
    }
    if (std::isdigit(static_cast<unsigned char>(first))) {
        char *end = nullptr;
        const double number = std::strtod(text_ + at_, &end);
        token_ = {TokenKind::number, number, '\0', at_};
        at_ = static_cast<std::size_t>(end - text_);
        return;
    }
    for (const char *symbol = "+-*/^()"; *symbol != '\0'; symbol++) {
        if (first != *symbol) continue;
        token_ = {TokenKind::symbol, 0, first, at_};
        at_++;
        return;
    }
    throw SyntaxError{at_};
}
