#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

/* Counts and reports failures; main() returns FAILURES() != 0. */
static int check_failures = 0;

#define CHECK(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            check_failures++;                                                \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);   \
        }                                                                    \
    } while (0)

#define FAILURES() (check_failures)

#endif
