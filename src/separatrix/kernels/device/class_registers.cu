// Class sums over dense rows of float32 on the device, each row read once: few classes, whose sums stay in registers.
//
//   counts_k = sum s,   first_kj = sum s (x_j - m_kj),   second_kj = sum s (x_j - m_kj)^2         over the rows of class k
//
// m are guesses of the class means, so that little cancels when second - first^2 / counts is taken. Each warp has a ring of tiles of
// TILE rows in shared memory, which the copy engine fills while others are added: class by class, so that which sums are meant is
// known at compile time; a lane has the columns lane, lane + 32, … After 256 rows of a warp, the warps of a block add in turn to
// sums of double precision: the bits do not differ between runs.
// Known at compile time: D columns, K classes, WEIGHTED, TILE, STAGES, WARPS, MINB. Rows lie
// one after the other, from a boundary of 16 bytes. copies.cu precedes this.
constexpr int THREADS = 32 * WARPS, V = (D + 31) / 32, P = 32 * V, WIDTH = 2 * K * P + K, TURNS = 256 / TILE;
constexpr int ROOM = (TILE * D + 31) / 32 * 32;   // of a tile, in numbers

extern "C" __global__ void __launch_bounds__(THREADS, MINB)
class_pass(const float* __restrict__ X, const u8* __restrict__ y, const float* __restrict__ weights, const float* __restrict__ guess,
           long long n, double* __restrict__ partial) {
    extern __shared__ __align__(128) unsigned char bytes[];
    const int lane = threadIdx.x & 31, own = threadIdx.x >> 5;
    float* ring = reinterpret_cast<float*>(bytes) + own * STAGES * ROOM;
    double* totals = reinterpret_cast<double*>(reinterpret_cast<float*>(bytes) + WARPS * STAGES * ROOM);   // pairs of a column, class by class
    float* centre = reinterpret_cast<float*>(totals + WIDTH + WIDTH % 2);
    __shared__ __align__(8) unsigned long long barriers[WARPS][STAGES];
    for (int i = threadIdx.x; i < WIDTH; i += THREADS) totals[i] = 0;
    for (int i = threadIdx.x; i < K * P; i += THREADS) centre[i] = i % P < D ? guess[(i / P) * D + i % P] : 0.f;
    if (lane == 0) {
        for (int s = 0; s < STAGES; ++s) prepare(place(&barriers[own][s]), 1);
        prepared();
    }
    __syncthreads();

    const long long tiles = (n + TILE - 1) / TILE, step = (long long)gridDim.x * WARPS, begin = (long long)blockIdx.x * WARPS + own;
    auto fetch = [&](long long tile, int stage) {   // a whole tile; the last one may be none
        if (lane == 0 && (tile + 1) * TILE <= n) {
            const u32 barrier = place(&barriers[own][stage]);
            expect(barrier, TILE * D * 4);
            bring(place(ring + stage * ROOM), X + tile * TILE * D, TILE * D * 4, barrier);
        }
    };
    int label;
    float weight;
    auto look = [&](long long tile) {
        const long long at = tile * TILE + lane;
        const bool there = lane < TILE && at < n;
        weight = !there ? 0.f : WEIGHTED ? weights[at] : 1.f;
        label = weight > 0 ? y[at] : 255;
    };
    float first[K][V], second[K][V], counted = 0;   // the last: weight of the class that has the number of the lane
    auto clear = [&]() {
#pragma unroll
        for (int k = 0; k < K; ++k)
#pragma unroll
            for (int v = 0; v < V; ++v) first[k][v] = second[k][v] = 0;
        counted = 0;
    };
    clear();
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) fetch(begin + s * step, s);
    look(begin);
    int turn = 0, stage = 0;
    u32 parity = 0;
    for (long long lead = (long long)blockIdx.x * WARPS; lead < tiles; lead += step) {   // the same number of times in all warps
        const long long tile = lead + own;
        const int k_ = label;
        const float s_ = weight;
        fetch(tile + (STAGES - 1) * step, stage == 0 ? STAGES - 1 : stage - 1);
        look(tile + step);
        float* rows = ring + stage * ROOM;
        if ((tile + 1) * TILE <= n) await(place(&barriers[own][stage]), parity);
        else {
            for (long long i = tile * TILE * D + lane; i < n * D; i += 32) rows[i - tile * TILE * D] = X[i];
            __syncwarp();
        }
#pragma unroll
        for (int k = 0; k < K; ++k) {
            u32 mask = __ballot_sync(FULL, k_ == k);
            if (!mask) continue;
            float c[V];
#pragma unroll
            for (int v = 0; v < V; ++v) c[v] = centre[k * P + lane + 32 * v];
            if (!WEIGHTED && lane == k) counted += float(__popc(mask));
            do {   // two rows at a time
                const int r = __ffs(mask) - 1;
                mask &= mask - 1;
                const bool both = mask != 0;
                const int q = both ? __ffs(mask) - 1 : r;
                mask &= mask - 1;
                const float s = WEIGHTED ? __shfl_sync(FULL, s_, r) : 1.f, t = WEIGHTED ? __shfl_sync(FULL, s_, q) : 1.f;
                if (WEIGHTED && lane == k) counted += both ? s + t : s;
                float x[V], z[V];
#pragma unroll
                for (int v = 0; v < V; ++v) x[v] = rows[r * D + lane + 32 * v];
#pragma unroll
                for (int v = 0; v < V; ++v) z[v] = rows[q * D + lane + 32 * v];
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    x[v] -= c[v];
                    const float sx = WEIGHTED ? s * x[v] : x[v];
                    first[k][v] += sx;
                    second[k][v] = fmaf(sx, x[v], second[k][v]);
                }
                if (both) {
#pragma unroll
                    for (int v = 0; v < V; ++v) {
                        z[v] -= c[v];
                        const float tz = WEIGHTED ? t * z[v] : z[v];
                        first[k][v] += tz;
                        second[k][v] = fmaf(tz, z[v], second[k][v]);
                    }
                }
            } while (mask);
        }
        __syncwarp();
        if (++stage == STAGES) { stage = 0; parity ^= 1; }
        if (++turn == TURNS || lead + step >= tiles) {
            turn = 0;
            for (int w = 0; w < WARPS; ++w) {
                if (w == own) {
                    double2* pairs = reinterpret_cast<double2*>(totals) + lane;
#pragma unroll
                    for (int k = 0; k < K; ++k)
#pragma unroll
                        for (int v = 0; v < V; ++v) {
                            double2 both = pairs[k * P + 32 * v];
                            both.x += double(first[k][v]);
                            both.y += double(second[k][v]);
                            pairs[k * P + 32 * v] = both;
                        }
                    if (lane < K) totals[2 * K * P + lane] += double(counted);
                }
                __syncthreads();
            }
            clear();
        }
    }
    for (int i = threadIdx.x; i < WIDTH; i += THREADS) partial[(long long)blockIdx.x * WIDTH + i] = totals[i];
}

// The sums of the blocks, in a fixed order: 32 columns of sums to a block of threads.
extern "C" __global__ void gather(const double* __restrict__ partial, int blocks, double* __restrict__ out) {
    __shared__ double part[8][32];
    const int j = blockIdx.x * 32 + (threadIdx.x & 31), row = threadIdx.x >> 5;
    double t = 0;
    if (j < WIDTH)
        for (int k = row; k < blocks; k += 8) t += partial[(long long)k * WIDTH + j];
    part[row][threadIdx.x & 31] = t;
    __syncthreads();
    if (row == 0 && j < WIDTH) {
        for (int k = 1; k < 8; ++k) t += part[k][threadIdx.x & 31];
        out[j] = t;
    }
}
