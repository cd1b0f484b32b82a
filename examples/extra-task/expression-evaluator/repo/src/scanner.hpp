#pragma once

#include <cstddef>

enum class TokenKind { number, symbol, end };

struct Token {
    TokenKind kind;
    double number;
    char symbol;
    std::size_t position;
};

/// Cuts a text into tokens, one ahead.
class Scanner {
  public:
    explicit Scanner(const char *text);

    const Token &peek() const { return token_; }
    Token next();

    /// Takes the next token if it is this symbol.
    bool take(char symbol);

  private:
    void advance();

    const char *text_;
    std::size_t at_ = 0;
    Token token_{};
};
