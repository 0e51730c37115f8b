// What a kernel needs that multiplies by the tensor cores of half precision, after split.cu; QUADS, rows on boundaries of sixteen
// bytes, is defined before.
typedef unsigned char u8;
typedef unsigned int u32;
#define FULL 0xffffffffu
constexpr int WARPS = 4, THREADS = 32 * WARPS;

__device__ __forceinline__ u32 turned(u32 a) {   // of eight by eight numbers
    u32 b;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(b) : "r"(a));
    return b;
}
__device__ __forceinline__ void multiply(float* c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void multiply_first(float* c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {   // onto zeros
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
        : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "f"(0.f));
}
template <int D> __device__ __forceinline__ float4 quad_at(const float* from, int column) {   // zeros from column D on
    if (QUADS) return column < D ? __ldcs(reinterpret_cast<const float4*>(from)) : make_float4(0, 0, 0, 0);
    float4 v = make_float4(0, 0, 0, 0);
    if (column < D) v.x = __ldcs(from);
    if (column + 1 < D) v.y = __ldcs(from + 1);
    if (column + 2 < D) v.z = __ldcs(from + 2);
    if (column + 3 < D) v.w = __ldcs(from + 3);
    return v;
}
