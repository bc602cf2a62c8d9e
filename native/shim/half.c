/* Conversions of half precision that compiled objects call where the processor has none; bits in, bits out. */
#include <stdint.h>
#include <string.h>

#define WEAK __attribute__((weak, visibility("hidden")))

WEAK float __gnu_h2f_ieee(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023, bits;
  if (exponent == 31) {
    bits = sign | 0x7f800000 | fraction << 13;
  } else if (exponent != 0) {
    bits = sign | (exponent + 112) << 23 | fraction << 13;
  } else {
    /* A subnormal half is a normal float. */
    float value = (float)fraction * 0x1p-24f;
    memcpy(&bits, &value, sizeof bits);
    bits |= sign;
  }
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

WEAK uint16_t __gnu_f2h_ieee(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
  uint32_t rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return sign | 0x7e00 | (uint16_t)(rest >> 13 & 1023);
  if (rest >= 0x477ff000) return sign | 0x7c00;
  uint32_t fraction = rest & 0x7fffff, shift = 13;
  uint32_t whole;
  if (rest >= 0x38800000) {
    whole = rest - 0x38000000;
  } else {
    uint32_t exponent = rest >> 23;
    if (exponent < 102) return sign;
    shift = 126 - exponent;
    whole = fraction | 0x800000;
  }
  uint32_t half = whole >> shift, cut = whole & ((1u << shift) - 1), middle = 1u << (shift - 1);
  /* To the nearest, of two equally near to the even one. */
  half += cut > middle || (cut == middle && (half & 1));
  return sign | (uint16_t)half;
}
