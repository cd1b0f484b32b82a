#include "utf8.h"

size_t utf8_encode(int32_t point, unsigned char *out)
{
    if (point < 0 || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
        return 0;
    if (point < 0x80) {
        out[0] = (unsigned char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (unsigned char)(0xC0 | (point >> 6));
        out[1] = (unsigned char)(0x80 | (point & 0x3F));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (unsigned char)(0xE0 | (point >> 12));
        out[1] = (unsigned char)(0x80 | ((point >> 6) & 0x3F));
        out[2] = (unsigned char)(0x80 | (point & 0x3F));
        return 3;
    }
    out[0] = (unsigned char)(0xF0 | (point >> 18));
    out[1] = (unsigned char)(0x80 | ((point >> 12) & 0x3F));
    out[2] = (unsigned char)(0x80 | ((point >> 6) & 0x3F));
    out[3] = (unsigned char)(0x80 | (point & 0x3F));
    return 4;
}
