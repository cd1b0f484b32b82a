#include "utf8.h"

/* Length of the sequence that a first byte announces; 0 if it cannot be first. */
static size_t announced_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if ((first & 0xE0) == 0xC0)
        return 2;
    if ((first & 0xF0) == 0xE0)
        return 3;
    if ((first & 0xF8) == 0xF0)
        return 4;
    return 0;
}

int32_t utf8_decode(const unsigned char *bytes, size_t length, size_t *used)
{
    static const unsigned char first_mask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    *used = 1;
    if (length == 0)
        return UTF8_INVALID;

    size_t need = announced_length(bytes[0]);
    if (need == 0 || need > length)
        return UTF8_INVALID;

    int32_t point = bytes[0] & first_mask[need];
    for (size_t i = 1; i < need; i++) {
        if ((bytes[i] & 0xC0) != 0x80)
            return UTF8_INVALID;
        point = (point << 6) | (bytes[i] & 0x3F);
    }

    if (point > 0x10FFFF)
        return UTF8_INVALID;
    if (point >= 0xD800 && point <= 0xDFFF)
        return UTF8_INVALID;

    *used = need;
    return point;
}
