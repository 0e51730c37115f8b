// Two numbers of single precision as two pairs of half precision, high and low: 22 bits of each.
typedef unsigned int u32;
__device__ __forceinline__ u32 halves(float a, float b) {
    u32 h;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(h) : "f"(b), "f"(a));
    return h;
}
__device__ __forceinline__ u32 rest(float a, float b, u32 high) {
    float p, q;
    asm("{.reg .f16 s, t; mov.b32 {s, t}, %2; cvt.f32.f16 %0, s; cvt.f32.f16 %1, t;}" : "=f"(p), "=f"(q) : "r"(high));
    return halves(a - p, b - q);
}
