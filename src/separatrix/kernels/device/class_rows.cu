// Class sums over dense rows on the device, each row read once.
//
//   counts_k = sum s,   first_kj = sum s (x_j - m_kj),   second_kj = sum s (x_j - m_kj)^2         over the rows of class k
//
// m are guesses of the class means, so that little cancels when second - first^2 / counts is taken. Each warp adds in its own
// shared memory; every 256 rows of a warp go into sums of double precision, warp by warp: the bits do not differ between runs.
// Known at compile time: T (stored numbers), D columns, K classes, MINB.
typedef unsigned char u8;
#define FULL 0xffffffffu
constexpr int THREADS = 256, WARPS = 8, V = (D + 31) / 32, P = 32 * V, R = V <= 4 ? 8 : V <= 8 ? 4 : 2, WIDTH = 2 * K * P + K;
constexpr int TURNS = 256 / R, ROOM = WIDTH + WIDTH % 2;   // of a warp: pairs of the sums of a column, class by class, then counts

extern "C" __global__ void __launch_bounds__(THREADS, MINB)
class_pass(const T* __restrict__ X, long long stride, const u8* __restrict__ y, const float* __restrict__ weights,
           const float* __restrict__ guess, long long n, double* __restrict__ partial) {
    extern __shared__ __align__(16) unsigned char bytes[];
    double* sums = reinterpret_cast<double*>(bytes);
    float* room = reinterpret_cast<float*>(sums + WIDTH);
    float* centre = room + WARPS * ROOM;
    const int lane = threadIdx.x & 31, own = threadIdx.x >> 5;
    float* mine = room + own * ROOM;
    for (int i = threadIdx.x; i < WIDTH; i += THREADS) sums[i] = 0;
    for (int i = threadIdx.x; i < WARPS * ROOM; i += THREADS) room[i] = 0;
    for (int i = threadIdx.x; i < K * P; i += THREADS) centre[i] = i % P < D ? guess[(i / P) * D + i % P] : 0.f;
    __syncthreads();
    auto flush = [&]() {
        __syncthreads();
        for (int i = threadIdx.x; i < WIDTH; i += THREADS) {
            double t = 0;
            for (int w = 0; w < WARPS; ++w) { t += double(room[w * ROOM + i]); room[w * ROOM + i] = 0; }
            sums[i] += t;
        }
        __syncthreads();
    };
    const long long step = (long long)gridDim.x * WARPS * R;
    int turn = 0;
    for (long long start = (long long)blockIdx.x * WARPS * R; start < n; start += step) {
        const long long first = start + own * R;
        float x[R][V];
        const bool whole = start + WARPS * R <= n;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const T* row = X + (first + r) * stride + lane;
#pragma unroll
            for (int v = 0; v < V; ++v)
                x[r][v] = (whole || first + r < n) && (v < V - 1 || lane + 32 * v < D) ? float(__ldcs(row + 32 * v)) : 0.f;
        }
        const long long at = first + lane;
        const bool there = lane < R && at < n;
        const int label = there ? y[at] : 0;
        const float weight = !there ? 0.f : weights ? weights[at] : 1.f;
#pragma unroll
        for (int r = 0; r < R; ++r) {
            const int k = __shfl_sync(FULL, label, r);
            const float s = __shfl_sync(FULL, weight, r);
            if (s > 0) {
                float2* a = reinterpret_cast<float2*>(mine) + k * P;
                const float* c = centre + k * P;
#pragma unroll
                for (int v = 0; v < V; ++v) {
                    const int j = lane + 32 * v;
                    const float z = x[r][v] - c[j], sz = s * z;
                    float2 both = a[j];
                    both.x += sz;
                    both.y += sz * z;
                    a[j] = both;
                }
                if (lane == 0) mine[2 * K * P + k] += s;
            }
        }
        if (++turn == TURNS) { flush(); turn = 0; }
    }
    flush();
    for (int i = threadIdx.x; i < WIDTH; i += THREADS) partial[(long long)blockIdx.x * WIDTH + i] = sums[i];
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
