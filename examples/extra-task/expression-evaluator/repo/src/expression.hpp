#pragma once

#include <cstddef>

/// Thrown for text that is no expression; `position` counts from 0.
struct SyntaxError {
    std::size_t position;
};

/// The value of an expression. Throws SyntaxError.
double evaluate(const char *text);
