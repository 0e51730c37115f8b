// Sums by class and products of columns over dense rows of float32 on the device, each row read once.
//
//   first_kj = sum z_j   over the rows of class k,      products_ij = sum z_i z_j   over all rows,
//   z = (x - c_y) u        c_k a guess of the mean of class k, or of all; u_j a power of two near one over the spread of column j
//
// A number is taken as two of half precision, z = h + l to 22 bits, and a product as h h' + h l' + l h': what is left out is at most
// 2^-22 of it. With rows a = [membership, h] of sixteen columns and more,
//
//   A'H = [sums of h by class ; sum h h'],      A'L = [sums of l by class ; sum h l'],      products = A'H + A'L + (A'L)'
//
// Two warp groups take tiles of rows apart, which the copy engine brings; others multiply, each 64 columns of A with all of H and L,
// which lie in shared memory. The tensor cores truncate: sums h h' of 64 rows are added to sums in single precision, rounded to
// nearest, and these every CHAIN times in double precision, as the sums h l' are, which are small. A fixed map of tiles to blocks of
// threads and sums in a fixed order: the bits do not differ between runs.
//
// In shared memory eight columns of a row are sixteen bytes, and those of the next row follow them. Known at compile time: D columns,
// K classes, APART (a guess for each class), GROUPS (of eight columns), CLASS_GROUPS (of eight classes), PARTS (warp groups that
// multiply), CHUNKS (of 64 rows in a tile), STAGES (tiles on their way), TURNS (of operands), BATCH (loads
// of a lane before it stores), MANY and FEW (registers of threads that multiply and that
// take apart), and `multiply`, a product of sixteen rows. copies.cu and split.cu precede this.
constexpr int MAKERS = 8, THREADS = 32 * MAKERS + 128 * PARTS, TILE = 64 * CHUNKS, CHAIN = 256;
constexpr int PITCH = 8 * GROUPS + 4, ROOM = TILE * D + 8;                  // in numbers: of a class in the table, and of a tile
constexpr int NEXT_ROWS = 128, NEXT_COLUMNS = TILE * 16 + 16;   // in bytes: to the next eight rows, or columns; no two lanes meet in a bank
constexpr int HIGH = CLASS_GROUPS * NEXT_COLUMNS, LOW = HIGH + GROUPS * NEXT_COLUMNS;   // where h and l of a tile are
constexpr int ENDS = CLASS_GROUPS + 2 * GROUPS, ASKED = 8 * PARTS, TURN = (ENDS > ASKED ? ENDS : ASKED) * NEXT_COLUMNS;
constexpr int HELD = 4 * GROUPS, WIDTH = PARTS * HELD * 128;

__device__ __forceinline__ unsigned long long described(u32 at) {   // sixteen rows of an operand
    return (unsigned long long)(at >> 4 & 0x3fff) | (unsigned long long)(NEXT_ROWS >> 4) << 16 | (unsigned long long)(NEXT_COLUMNS >> 4) << 32;
}
__device__ __forceinline__ float4 four(const float* from) {
    if (D % 4 == 0) return *reinterpret_cast<const float4*>(from);
    return make_float4(from[0], from[1], from[2], from[3]);
}

// Where things lie in shared memory, and barriers: a tile is there, is no longer needed; its operands are made, are no longer needed.
struct Shared { unsigned char *operands, *labels; float *ring, *table; u32 there, read, made, free; };
struct Given { const float* X; const u8* y; long long n, tiles; };

// The operands of the tiles of a block of threads: each warp makes those of its rows, a lane of four columns.
__device__ __forceinline__ void take_apart(const Given& given, const Shared& shared) {
    constexpr int EACH = TILE / MAKERS, QUADS = 2 * GROUPS, AT_ONCE = 32 / QUADS;   // rows of a warp, and of them at once
    const int lane = threadIdx.x & 31, own = threadIdx.x >> 5, group = lane >> 3, j = 4 * (lane % QUADS);
    const int place_of = HIGH + (lane % QUADS >> 1) * NEXT_COLUMNS + (lane & 1) * 8;
    const float* unit = shared.table + (APART ? K + 1 : 1) * PITCH;
    const float4 u = *reinterpret_cast<const float4*>(unit + j);
    const float4 m = *reinterpret_cast<const float4*>(shared.table + j);
    auto fetch = [&](long long tile, int stage) {   // a whole tile; the last one may be none
        if ((tile + 1) * TILE > given.n) return;
        const u32 barrier = shared.there + 8 * stage;
        expect(barrier, TILE * D * 4 + TILE);
        bring(place(shared.ring + stage * ROOM), given.X + tile * TILE * D, TILE * D * 4, barrier);
        bring(place(shared.labels + stage * TILE), given.y + tile * TILE, TILE, barrier);
    };
    if (threadIdx.x == 0)
        for (int s = 0; s < STAGES; ++s) fetch(blockIdx.x + (long long)s * gridDim.x, s);
    int stage = 0, turn = 0;
    u32 parity = 0, round = 1;   // a turn is free before it is first used
    for (long long tile = blockIdx.x; tile < given.tiles; tile += gridDim.x) {
        if (threadIdx.x == 0 && tile >= gridDim.x) {   // where the tile before was, when all have read it
            const int before = stage == 0 ? STAGES - 1 : stage - 1;
            await(shared.read + 8 * before, stage == 0 ? parity ^ 1 : parity);
            fetch(tile + (long long)(STAGES - 1) * gridDim.x, before);
        }
        __syncwarp();
        float* rows = shared.ring + stage * ROOM;
        u8* labels = shared.labels + stage * TILE;
        if ((tile + 1) * TILE <= given.n) await(shared.there + 8 * stage, parity);
        else {   // rows that are not there become zeros
            for (int i = threadIdx.x; i < TILE * D; i += 32 * MAKERS) {
                const float none = APART ? 0.f : shared.table[i % D] / unit[i % D];
                rows[i] = tile * TILE * D + i < given.n * D ? given.X[tile * TILE * D + i] : none;
            }
            for (int i = threadIdx.x; i < TILE; i += 32 * MAKERS) labels[i] = tile * TILE + i < given.n ? given.y[tile * TILE + i] : u8(K);
            asm volatile("bar.sync 1, %0;" ::"n"(32 * MAKERS) : "memory");
        }
        await(shared.free + 8 * turn, round);
        const float* x = rows + own * EACH * D;
        unsigned char* to = shared.operands + turn * TURN + own * EACH * 16;
        labels += own * EACH;
#pragma unroll
        for (int i = 0; i < EACH; i += 8)
            if (group < CLASS_GROUPS) {
                const u32 k = labels[i + (lane & 7)] - 8 * group;   // of eight classes; none where it is larger
                const u32 one = k & 1 ? 0x3c000000u : 0x3c00u;
                *reinterpret_cast<uint4*>(to + (i + (lane & 7)) * 16 + group * NEXT_COLUMNS) =
                    make_uint4(k >> 1 == 0 ? one : 0, k >> 1 == 1 ? one : 0, k >> 1 == 2 ? one : 0, k >> 1 == 3 ? one : 0);
            }
        if (lane < AT_ONCE * QUADS)
#pragma unroll
            for (int first = 0; first < EACH; first += BATCH * AT_ONCE) {   // loads before stores, which they could not pass
                float4 a[BATCH], c[BATCH];
#pragma unroll
                for (int b = 0; b < BATCH; ++b) {
                    const int r = first + b * AT_ONCE + lane / QUADS;
                    if (EACH % (BATCH * AT_ONCE) && r >= EACH) break;
                    a[b] = four(x + r * D + j);
                    c[b] = APART ? *reinterpret_cast<const float4*>(shared.table + labels[r] * PITCH + j) : m;
                }
#pragma unroll
                for (int b = 0; b < BATCH; ++b) {
                    const int r = first + b * AT_ONCE + lane / QUADS;
                    if (EACH % (BATCH * AT_ONCE) && r >= EACH) break;
                    const float p = fmaf(a[b].x, u.x, -c[b].x), q = fmaf(a[b].y, u.y, -c[b].y);
                    const float s = fmaf(a[b].z, u.z, -c[b].z), t = fmaf(a[b].w, u.w, -c[b].w);
                    const uint2 h = make_uint2(halves(p, q), halves(s, t));
                    *reinterpret_cast<uint2*>(to + r * 16 + place_of) = h;
                    *reinterpret_cast<uint2*>(to + r * 16 + place_of + (LOW - HIGH)) = make_uint2(rest(p, q, h.x), rest(s, t, h.y));
                }
            }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (lane == 0) {
            arrive(shared.read + 8 * stage);
            arrive(shared.made + 8 * turn);
        }
        if (++stage == STAGES) { stage = 0; parity ^= 1; }
        if (++turn == TURNS) { turn = 0; round ^= 1; }
    }
}

// The sums of a warp group: 64 columns of A.
__device__ __forceinline__ void sum_up(const Given& given, const Shared& shared, double* out) {
    const int own = threadIdx.x - 32 * MAKERS, part = own >> 7, warp = own >> 5 & 3;
    float made[HELD], low[HELD], sums[HELD];
#pragma unroll
    for (int i = 0; i < HELD; ++i) made[i] = low[i] = sums[i] = 0;
    out += part * HELD * 128 + (own & 127);
    bool begun = false;
    auto flush = [&]() {   // half the sums h h' of columns: what is wanted is the result and its transpose
#pragma unroll
        for (int i = 0; i < HELD; ++i) {
            const bool of_class = 8 * part + 2 * warp + (i >> 1 & 1) < CLASS_GROUPS;
            const double t = (of_class ? 1.0 : 0.5) * double(sums[i]) + double(low[i]);
            out[i * 128] = begun ? out[i * 128] + t : t;
            sums[i] = low[i] = 0;
        }
        begun = true;
    };
    int turn = 0, chain = 0;
    u32 parity = 0;
    for (long long tile = blockIdx.x; tile < given.tiles; tile += gridDim.x) {
        await(shared.made + 8 * turn, parity);
        const u32 at = place(shared.operands + turn * TURN);
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            const u32 first = at + 8 * chunk * NEXT_ROWS, mine = first + part * 8 * NEXT_COLUMNS;
#pragma unroll
            for (int i = 0; i < HELD; ++i) asm volatile("" : "+f"(made[i]), "+f"(low[i]) :: "memory");
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int k = 0; k < 8; k += 2) multiply(made, described(mine + k * NEXT_ROWS), described(first + HIGH + k * NEXT_ROWS), k > 0);
#pragma unroll
            for (int k = 0; k < 8; k += 2) multiply(low, described(mine + k * NEXT_ROWS), described(first + LOW + k * NEXT_ROWS), 1);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            if (chunk == CHUNKS - 1 && (own & 127) == 0) arrive(shared.free + 8 * turn);
#pragma unroll
            for (int i = 0; i < HELD; ++i) {
                asm volatile("" : "+f"(made[i]), "+f"(low[i]) :: "memory");
                sums[i] += made[i];
            }
        }
        if (++chain == CHAIN / CHUNKS) { flush(); chain = 0; }
        if (++turn == TURNS) { turn = 0; parity ^= 1; }
    }
    flush();
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
moment_pass(const float* __restrict__ X, const u8* __restrict__ y, const float* __restrict__ given, long long n, double* __restrict__ partial) {
    extern __shared__ __align__(128) unsigned char bytes[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES + 2 * TURNS];
    __shared__ __align__(16) u8 labels[STAGES * TILE];
    constexpr int ROWS_OF_TABLE = (APART ? K + 1 : 1) + 1;   // c u of the classes, zeros for rows that are not there, and u
    float* ring = reinterpret_cast<float*>(bytes + TURNS * TURN);
    const u32 first = place(barriers), later = first + 16 * STAGES;
    const Shared shared{bytes, labels, ring, ring + STAGES * ROOM, first, first + 8 * STAGES, later, later + 8 * TURNS};
    for (int i = threadIdx.x; i < TURNS * TURN / 4; i += THREADS) reinterpret_cast<u32*>(bytes)[i] = 0;
    for (int i = threadIdx.x; i < STAGES * ROOM; i += THREADS) ring[i] = 0;
    for (int i = threadIdx.x; i < ROWS_OF_TABLE * PITCH; i += THREADS)
        shared.table[i] = i % PITCH < D ? given[(i / PITCH) * D + i % PITCH] : 0.f;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) { prepare(shared.there + 8 * s, 1); prepare(shared.read + 8 * s, MAKERS); }
        for (int t = 0; t < TURNS; ++t) { prepare(shared.made + 8 * t, MAKERS); prepare(shared.free + 8 * t, PARTS); }
        prepared();
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const Given all{X, y, n, (n + TILE - 1) / TILE};
    if (threadIdx.x < 32 * MAKERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(FEW));
        take_apart(all, shared);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(MANY));
        sum_up(all, shared, partial + (long long)blockIdx.x * WIDTH);
    }
}

// The sums of the blocks, in a fixed order, as a matrix (64 PARTS, 8 GROUPS): 32 entries to a block of threads.
extern "C" __global__ void gather(const double* __restrict__ partial, int blocks, double* __restrict__ out) {
    __shared__ double part[8][32];
    const int j = blockIdx.x * 32 + (threadIdx.x & 31), row = threadIdx.x >> 5;
    double t = 0;
    for (int k = row; k < blocks; k += 8) t += partial[(long long)k * WIDTH + j];
    part[row][threadIdx.x & 31] = t;
    __syncthreads();
    if (row == 0) {
        for (int k = 1; k < 8; ++k) t += part[k][threadIdx.x & 31];
        const int lane = j & 31, warp = j >> 5 & 3, i = (j >> 7) % HELD, of_part = j / (HELD * 128);
        const int line = 64 * of_part + 16 * warp + 8 * (i >> 1 & 1) + (lane >> 2), column = 8 * (i >> 2) + 2 * (lane & 3) + (i & 1);
        out[line * (8 * GROUPS) + column] = t;
    }
}
