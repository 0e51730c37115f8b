// Sums over the classes of dense rows of float32 on the device, each row read once, by the tensor cores of half precision.
//
//   z = (x - c_k) u                          of a row of class k; c guesses of the class means, u powers of two
//   A_kj = sum z_j over the rows of class k,   B_ij = sum z_i z_j over all rows
//
// A number is taken as two of half precision, z = h + l to 22 bits, and a product as h h' + h l' + l h': what is left out is at most
// 2^-22 of it. Sixteen rows are added by the tensor cores, which truncate; their sums in single precision, rounded to nearest, and
// every 4096 rows of a block of threads in double precision. Memberships are exact in half precision, so that class sums are
// products as well. A fixed map of rows to blocks of threads and sums in a fixed order: the bits do not differ between runs.
//
//   mma m16n8k16:   A = (h or l)' of sixteen columns,   B = that of eight columns, or memberships of eight classes
//
// In shared memory words (h, h') and (l, l') of a pair of rows are kept column by column: lane (g, t) finds the operand of column g and of
// the rows 2t and 2t + 1 in one load. Known at compile time: D columns, K classes, QUADS (rows on boundaries of sixteen bytes), MINB.
// What is shared by the kernels of halves precedes this.
constexpr int Q = (D + 3) / 4, GROUPS = (4 * Q + 7) / 8, STRIPS = (GROUPS + 1) / 2, CLASS_GROUPS = (K + 7) / 8, PADDED = 8 * GROUPS;
constexpr int PITCH = PADDED + (8 + 32 - PADDED % 32) % 16;   // in words: no two lanes meet in a bank
constexpr int LANES = Q <= 8 ? 8 : Q <= 16 ? 16 : 32, STEP = WARPS * (32 / LANES), PER = 4, ROWS = 2 * PER * STEP;   // of a quad each
constexpr int CHAIN = 4096 / ROWS, LOW = ROWS / 2 * PITCH;   // LOW words from (h, h') to (l, l')

// Tiles of sums: products of columns on and above the diagonal, then memberships, in pairs of strips that share operands.
constexpr int tiles_of(int strip) { return GROUPS - 2 * strip + CLASS_GROUPS; }
constexpr int all_tiles() { int t = 0; for (int i = 0; i < STRIPS; ++i) t += tiles_of(i); return t; }
constexpr int TILES = all_tiles(), SHARE = (TILES + WARPS - 1) / WARPS;
struct Plan { int strip[SHARE], group[SHARE], count; };   // groups from GROUPS on are of classes
constexpr Plan plan_of(int warp) {
    Plan plan{};
    int tile = 0;
    for (int pair = 0; pair < STRIPS; pair += 2)
        for (int group = 2 * pair; group < GROUPS + CLASS_GROUPS; ++group)
            for (int strip = pair; strip < pair + 2 && strip < STRIPS; ++strip)
                if (group >= 2 * strip) {
                    if (tile >= warp * SHARE && tile < (warp + 1) * SHARE) {
                        plan.strip[plan.count] = strip;
                        plan.group[plan.count] = group;
                        ++plan.count;
                    }
                    ++tile;
                }
    return plan;
}
constexpr bool fresh_strip(const Plan& plan, int i) {   // no tile before this one of the warp has used its strip
    for (int k = 0; k < i; ++k) if (plan.strip[k] == plan.strip[i]) return false;
    return true;
}

struct Rows { const float* X; const u8* y; long long n; };

// The part of the next rows that a thread has loaded: a quad of columns of PER pairs of rows. One function for all warps, so that
// what differs between them stays small enough for the memory of instructions.
struct Ahead {
    float4 x[PER][2];
    u8 label;   // of the tile after the next
    __device__ __forceinline__ void load(const Rows& rows, long long tile, int pair, int quad) {
        const long long base = tile * ROWS;
        const float* from = rows.X + (base + 2 * pair) * D + 4 * quad;
        if (base + ROWS <= rows.n && quad < Q) {
#pragma unroll
            for (int i = 0; i < PER; ++i)
#pragma unroll
                for (int r = 0; r < 2; ++r) x[i][r] = quad_at<D>(from + (2 * i * STEP + r) * D, 4 * quad);
        } else {
#pragma unroll
            for (int i = 0; i < PER; ++i)
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const bool there = quad < Q && base + 2 * (pair + i * STEP) + r < rows.n;
                    x[i][r] = there ? quad_at<D>(from + (2 * i * STEP + r) * D, 4 * quad) : make_float4(0, 0, 0, 0);
                }
        }
    }
    __device__ __forceinline__ void load_label(const Rows& rows, long long tile) {
        const long long at = tile * ROWS + threadIdx.x;
        label = threadIdx.x < ROWS && at < rows.n ? __ldg(rows.y + at) : u8(K);
    }
    // `table` has c u of the classes, zeros for rows that are not there, and u.
    __device__ __forceinline__ void store(const float4* table, const u8* labels, u32* z, int pair, int quad) const {
        if (quad >= Q) return;
        const float4 u = table[(K + 1) * Q + quad];
#pragma unroll
        for (int i = 0; i < PER; ++i) {
            const int at = pair + i * STEP;
            const u32 both = reinterpret_cast<const unsigned short*>(labels)[at];
            const float4 c = table[(both & 255) * Q + quad], e = table[(both >> 8) * Q + quad], a = x[i][0], b = x[i][1];
            const float p[4] = {fmaf(a.x, u.x, -c.x), fmaf(a.y, u.y, -c.y), fmaf(a.z, u.z, -c.z), fmaf(a.w, u.w, -c.w)};
            const float q[4] = {fmaf(b.x, u.x, -e.x), fmaf(b.y, u.y, -e.y), fmaf(b.z, u.z, -e.z), fmaf(b.w, u.w, -e.w)};
            uint4* to = reinterpret_cast<uint4*>(z + at * PITCH + 4 * quad);
            u32 h[4];
#pragma unroll
            for (int j = 0; j < 4; ++j) h[j] = halves(p[j], q[j]);
            to[0] = make_uint4(h[0], h[1], h[2], h[3]);
            to[LOW / 4] = make_uint4(rest(p[0], q[0], h[0]), rest(p[1], q[1], h[1]), rest(p[2], q[2], h[2]), rest(p[3], q[3], h[3]));
        }
    }
};

// The sums of a warp: its tiles for the rows that are in shared memory.
template <int WARP> struct Sums {
    static __device__ __forceinline__ void add(float (&sums)[SHARE][4], const u32* here, const u8* labels) {
        constexpr Plan plan = plan_of(WARP);
        const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll 1
        for (int k = 0; k < ROWS; k += 16) {
            const u32* z = here + (k / 2 + t) * PITCH + g;   // four pairs further on are the other half of the rows
            const u32 l0 = reinterpret_cast<const unsigned short*>(labels)[k / 2 + t];
            const u32 l1 = reinterpret_cast<const unsigned short*>(labels)[k / 2 + t + 4];
            u32 a[2][4], b[2][4], p0 = 0, p1 = 0, q0 = 0, q1 = 0;   // of two strips; of a group, high and low
#pragma unroll
            for (int i = 0; i < SHARE; ++i) {
                if (i >= plan.count) break;
                const int strip = plan.strip[i], group = plan.group[i], s = strip & 1;
                if (fresh_strip(plan, i)) {
                    const bool both = 2 * strip + 1 < GROUPS;
#pragma unroll
                    for (int h = 0; h < 4; ++h) {
                        const int at = 16 * strip + 8 * (h & 1) + 4 * PITCH * (h >> 1);
                        a[s][h] = both || !(h & 1) ? z[at] : 0;
                        b[s][h] = both || !(h & 1) ? z[at + LOW] : 0;
                    }
                }
                if (i == 0 || group != plan.group[i > 0 ? i - 1 : 0]) {
                    if (group < GROUPS) {
                        p0 = z[8 * group]; p1 = z[8 * group + 4 * PITCH];
                        q0 = z[8 * group + LOW]; q1 = z[8 * group + 4 * PITCH + LOW];
                    } else {
                        const u32 k0 = 8 * (group - GROUPS) + g;
                        p0 = ((l0 & 255) == k0 ? 0x3c00u : 0u) | ((l0 >> 8) == k0 ? 0x3c000000u : 0u);
                        p1 = ((l1 & 255) == k0 ? 0x3c00u : 0u) | ((l1 >> 8) == k0 ? 0x3c000000u : 0u);
                    }
                }
                float c[4];
                multiply_first(c, b[s][0], b[s][1], b[s][2], b[s][3], p0, p1);
                if (group < GROUPS) multiply(c, a[s][0], a[s][1], a[s][2], a[s][3], q0, q1);
                multiply(c, a[s][0], a[s][1], a[s][2], a[s][3], p0, p1);
#pragma unroll
                for (int r = 0; r < 4; ++r) sums[i][r] += c[r];
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, MINB)
moment_pass(const float* __restrict__ X, const u8* __restrict__ y, const float* __restrict__ given, long long n, double* __restrict__ partial) {
    extern __shared__ __align__(16) unsigned char bytes[];
    u32* z = reinterpret_cast<u32*>(bytes);   // two turns of rows
    float* table = reinterpret_cast<float*>(z + 4 * LOW);
    __shared__ __align__(16) u8 labels[3][ROWS];
    for (int i = threadIdx.x; i < 4 * LOW; i += THREADS) z[i] = 0;
    for (int i = threadIdx.x; i < (K + 2) * 4 * Q; i += THREADS) table[i] = i % (4 * Q) < D ? given[(i / (4 * Q)) * D + i % (4 * Q)] : 0.f;
    const Rows rows{X, y, n};
    const float4* quads = reinterpret_cast<const float4*>(table);
    const int lane = threadIdx.x & 31, own = threadIdx.x >> 5, pair = own * (32 / LANES) + lane / LANES, quad = lane % LANES;
    double* out = partial + ((long long)blockIdx.x * WARPS + own) * (SHARE * 128) + lane;
    float sums[SHARE][4];
#pragma unroll
    for (int i = 0; i < SHARE; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r) sums[i][r] = 0;
    bool begun = false;
    auto flush = [&]() {
#pragma unroll
        for (int i = 0; i < SHARE; ++i)
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                double* at = out + (i * 4 + r) * 32;
                *at = begun ? *at + double(sums[i][r]) : double(sums[i][r]);
                sums[i][r] = 0;
            }
        begun = true;
    };
    Ahead next;
    next.load(rows, blockIdx.x, pair, quad);
    next.load_label(rows, blockIdx.x);
    if (threadIdx.x < ROWS) labels[0][threadIdx.x] = next.label;
    next.load_label(rows, (long long)blockIdx.x + gridDim.x);
    __syncthreads();
    int turn = 0, third = 0, chain = 0;
    for (long long tile = blockIdx.x; tile * ROWS < n; tile += gridDim.x, turn ^= 1) {
        u32* here = z + turn * 2 * LOW;
        const u8* mine = labels[third];
        next.store(quads, mine, here, pair, quad);
        third = third == 2 ? 0 : third + 1;
        if (threadIdx.x < ROWS) labels[third][threadIdx.x] = next.label;
        __syncthreads();
        next.load(rows, tile + gridDim.x, pair, quad);
        next.load_label(rows, tile + 2 * (long long)gridDim.x);
        switch (own) {
            case 0: Sums<0>::add(sums, here, mine); break;
            case 1: Sums<1>::add(sums, here, mine); break;
            case 2: Sums<2>::add(sums, here, mine); break;
            default: Sums<3>::add(sums, here, mine);
        }
        if (++chain == CHAIN) { flush(); chain = 0; }
    }
    flush();
}

// The sums of the blocks, in a fixed order: 32 entries to a block of threads.
extern "C" __global__ void gather(const double* __restrict__ partial, int blocks, double* __restrict__ out) {
    constexpr int WIDTH = WARPS * SHARE * 128;
    __shared__ double part[8][32];
    const int j = blockIdx.x * 32 + (threadIdx.x & 31), row = threadIdx.x >> 5;
    double t = 0;
    for (int k = row; k < blocks; k += 8) t += partial[(long long)k * WIDTH + j];
    part[row][threadIdx.x & 31] = t;
    __syncthreads();
    if (row == 0) {
        for (int k = 1; k < 8; ++k) t += part[k][threadIdx.x & 31];
        out[j] = t;
    }
}
